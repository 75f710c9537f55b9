"""The policies: how good a hole is for a shape, as plain functions.

Each is asked only about holes that fit, and answers with a merit (the larger the better, whole
numbers) and the devices to take. Equal holes get equal answers, so an answer can be remembered.
Ties between nodes are not settled here: the node with the lowest number goes first, always.
Sources: ``placement.md`` 1.10, 4.1 and 4.4.
"""

import math
from bisect import bisect_right
from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

from scheduling.engine.scoring.holes import WHOLE, Hole, Shape, after, loosest, tightest, ways
from scheduling.engine.scoring.popularity import Popularity

STEPS = 50
# The gradient (thousandths of a device) from which on each further step is reached: a sigmoid,
# fine around zero and coarse far from it. Coarse on purpose: many nodes then tie, the lowest
# number wins, work concentrates, and nodes stay whole for large shapes.
_STEPS_FROM = tuple(math.ceil(WHOLE * math.log(step / (STEPS - step))) for step in range(1, STEPS))


class Seat(NamedTuple):
    """A place in a hole: how good it is, and which devices, by index."""

    merit: int
    devices: tuple[int, ...]


Policy = Callable[[Hole, Shape], Seat]


def fragmentation(popularity: Popularity, hole: Hole, shape: Shape) -> Seat:
    """Rate by how much of a fragment the pod removes: the steepest descent goes first.

    The devices are those of the steepest exact gradient; of equal ones the tightest, then the
    lowest index. Without any shape in the distribution all merits are equal.
    """
    before = popularity.fragment(hole)
    best: tuple[int, ...] = ()
    gradient = None
    for devices in ways(hole, shape):
        descent = before - popularity.fragment(after(hole, shape, devices))
        if gradient is None or descent > gradient:
            best, gradient = devices, descent
    assert gradient is not None, "a policy is asked only about holes that fit"
    return Seat(bisect_right(_STEPS_FROM, gradient // max(popularity.total, 1)), best)


def binpack(hole: Hole, shape: Shape, weights: Sequence[int] = ()) -> Seat:
    """Rate by how full the node then is, in what the pod asks for: the fullest goes first.

    ``weights``: of each ordinary resource, then of devices; none given means all equal. What a
    node has none of does not count. Takes the tightest devices.
    """
    return Seat(_fullness(hole, shape, weights), tightest(hole, shape))


def spread(hole: Hole, shape: Shape, weights: Sequence[int] = ()) -> Seat:
    """Rate the other way round: the emptiest node and the devices with most left go first."""
    return Seat(-_fullness(hole, shape, weights), loosest(hole, shape))


def _fullness(hole: Hole, shape: Shape, weights: Sequence[int]) -> int:
    """Return how full the node will be, in thousandths."""
    asked = (*shape.amounts, shape.devices * shape.share)
    free = (*hole.amounts, sum(hole.devices))
    size = (*hole.size, len(hole.devices) * WHOLE)
    counted = tuple(weights) or (1,) * len(asked)
    full = weight = 0
    for ask, left, whole, each in zip(asked, free, size, counted, strict=True):
        if ask and whole:
            full += each * WHOLE * (whole - left + ask) // whole
            weight += each
    return full // weight if weight else 0


def policy_of(name: str, popularity: Popularity) -> Policy:
    """Return the policy of this name. Raises KeyError for any other name."""
    known: dict[str, Policy] = {
        "fragmentation": partial(fragmentation, popularity),
        "binpack": binpack,
        "spread": spread,
    }
    return known[name]
