"""What is free on a node, what a pod asks of one, and what is left: the words of every score.

Source: ``placement.md`` 4.1.
"""

from collections.abc import Iterable, Iterator
from operator import gt, sub
from typing import NamedTuple

from scheduling.engine.machines import WHOLE


class Shape(NamedTuple):
    """What one pod asks of its node.

    ``amounts`` are of the ordinary resources (CPU, memory), in an order that the caller keeps.
    Of each of ``devices`` devices it asks ``share`` thousandths. ``kinds`` are the kinds of
    nodes that will do; empty means any.
    """

    amounts: tuple[int, ...]
    devices: int = 0
    share: int = WHOLE
    kinds: frozenset[str] = frozenset()


class Hole(NamedTuple):
    """What is free on a node, all that a score depends on: equal holes have equal scores.

    ``devices`` holds the free thousandths of each device, by index.
    """

    amounts: tuple[int, ...]
    devices: tuple[int, ...] = ()
    kind: str = ""


def fits(hole: Hole, shape: Shape) -> bool:
    """Return whether a pod of this shape can stand in the hole."""
    if shape.kinds and hole.kind not in shape.kinds:
        return False
    if any(map(gt, shape.amounts, hole.amounts)):
        return False
    return sum(free >= shape.share for free in hole.devices) >= shape.devices


def after(hole: Hole, shape: Shape, devices: Iterable[int]) -> Hole:
    """Return what is left when the pod stands there, on the devices of these indices."""
    left = list(hole.devices)
    for device in devices:
        left[device] -= shape.share
    amounts = tuple(map(sub, hole.amounts, shape.amounts))
    return hole._replace(amounts=amounts, devices=tuple(left))


def tightest(hole: Hole, shape: Shape) -> tuple[int, ...]:
    """Return the devices that fit most tightly; of equally free ones the lowest index."""
    return tuple(_fitting(hole, shape)[: shape.devices])


def loosest(hole: Hole, shape: Shape) -> tuple[int, ...]:
    """Return the devices with most left; of equally free ones the lowest index."""
    fitting = _fitting(hole, shape)
    fitting.sort(key=hole.devices.__getitem__, reverse=True)  # reverse keeps equal ones in order
    return tuple(fitting[: shape.devices])


def _fitting(hole: Hole, shape: Shape) -> list[int]:
    fitting = [i for i, free in enumerate(hole.devices) if free >= shape.share]
    fitting.sort(key=hole.devices.__getitem__)
    return fitting


def ways(hole: Hole, shape: Shape) -> Iterator[tuple[int, ...]]:
    """Yield the sets of devices that differ in what they leave, the tightest first.

    Of several devices only the tightest set is named: with whole devices all sets are equal.
    """
    if shape.devices != 1:
        yield tightest(hole, shape)
        return
    seen = set()
    for device in _fitting(hole, shape):
        if hole.devices[device] not in seen:
            seen.add(hole.devices[device])
            yield (device,)
