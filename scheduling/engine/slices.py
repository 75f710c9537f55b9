"""Slices: pods that share a domain, so many at a time, also slices made of slices (K62).

The *grain* of a level is how many pods must go into one of its domains together: 16 where a
block takes slices of 16, 4 in its racks where those consist of slices of 4. A room that is a
multiple of its grain, down to the hosts, can be handed down without cutting a slice
(``admission.md`` 3.7). Levels count from 0, the whole cluster; 1 is the outermost.
"""

from collections.abc import Iterable
from typing import NamedTuple

from scheduling.engine.snapshot import SliceLayer, TopologyRequest

Grain = tuple[int, ...]  # by level; behind the last one 1


class Layer(NamedTuple):
    """Slices of ``size`` pods, each inside one domain of ``level``."""

    level: int
    size: int


def layers_of(levels: tuple[str, ...], asked: Iterable[SliceLayer]) -> tuple[Layer, ...] | None:
    """Return slices by level, outer ones first; None: some level is not there."""
    asked = tuple(asked)
    if any(layer.level not in levels for layer in asked):
        return None
    return tuple(Layer(levels.index(layer.level) + 1, layer.size) for layer in asked)


def preferred_of(levels: tuple[str, ...], request: TopologyRequest | None) -> Layer | None:
    """Return the slice that should share a domain; None: nobody asks, or slices are required."""
    if request is None or request.preferred_slice is None or request.layers:
        return None
    found = layers_of(levels, (request.preferred_slice,))
    return found[0] if found else None


def grain_of(layers: Iterable[Layer]) -> Grain:
    """Return the grain of every level down to the innermost slices': none where there are none.

    It is the size of the outermost slices whose level is not above.
    """
    grain: list[int] = []
    for layer in layers:
        grain += [layer.size] * (layer.level + 1 - len(grain))
    return tuple(grain)


def grain_at(grain: Grain, level: int) -> int:
    """Return the grain of a level."""
    return grain[level] if level < len(grain) else 1


def whole(pods: int, grain: int) -> int:
    """Return as many of the pods as make up whole grains."""
    return pods - pods % grain
