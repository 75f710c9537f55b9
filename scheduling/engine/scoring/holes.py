"""Holes and shapes: what is free on one node, and what one pod asks for.

The words of every score, and of every count of pods that fit. How pods share devices is said
here and nowhere else. Source: ``placement.md`` 4.1.
"""

from collections.abc import Iterable, Iterator
from operator import gt, mul, sub
from typing import NamedTuple

from scheduling.engine.machines import WHOLE

ENDLESS = 2**63  # pods that ask for nothing; a pod of the product always takes a slot


class Shape(NamedTuple):
    """What one pod asks of its node.

    ``amounts`` are of the ordinary resources (CPU, memory), in an order that the caller keeps.
    Of each of ``devices`` devices it asks ``share`` thousandths. ``kinds`` are the kinds of
    nodes that will do; empty means any. ``counted`` is what it asks where devices are not told
    apart: the ``amounts`` with its whole devices among them; None: it cannot stand there.
    """

    amounts: tuple[int, ...]
    devices: int = 0
    share: int = WHOLE
    kinds: frozenset[str] = frozenset()
    counted: tuple[int, ...] | None = None


class Hole(NamedTuple):
    """What is free on a node, all that a score depends on: equal holes have equal scores.

    ``devices`` holds the free thousandths of each device, by index; none where devices are
    counted among the ``amounts``.
    """

    amounts: tuple[int, ...]
    devices: tuple[int, ...] = ()
    kind: str = ""


def asked(hole: Hole, shape: Shape) -> tuple[int, ...] | None:
    """Return the amounts that a pod asks of this node; None: it cannot stand on such a node."""
    return shape.amounts if hole.devices or not shape.devices else shape.counted


def fits(hole: Hole, shape: Shape) -> bool:
    """Return whether a pod of this shape can stand in the hole."""
    if shape.kinds and hole.kind not in shape.kinds:
        return False
    amounts = asked(hole, shape)
    if amounts is None or any(map(gt, amounts, hole.amounts)):
        return False
    return not hole.devices or sum(f >= shape.share for f in hole.devices) >= shape.devices


def fitting(hole: Hole, shape: Shape) -> int:
    """Return how many pods of this shape can stand in the hole together."""
    amounts = asked(hole, shape)
    if amounts is None or (shape.kinds and hole.kind not in shape.kinds):
        return 0
    pods = ENDLESS
    for free, amount in zip(hole.amounts, amounts, strict=True):
        if amount:
            pods = min(pods, free // amount)
    if pods > 0 and shape.devices and hole.devices:
        pods = min(pods, _on_devices(hole.devices, shape))
    return max(0, pods)


def _on_devices(devices: Iterable[int], shape: Shape) -> int:
    """Return how many pods find their devices; no pod takes two shares of one device."""
    lanes = [free // shape.share for free in devices if free >= shape.share]
    pods = sum(lanes) // shape.devices
    while sum(min(pods, lane) for lane in lanes) < pods * shape.devices:
        pods -= 1
    return pods


def after(hole: Hole, shape: Shape, devices: Iterable[int], pods: int = 1) -> Hole:
    """Return what is left when so many pods stand there, on the devices of these indices.

    An index stands for one share. A negative number of pods gives back; so do negative shares.
    """
    left = list(hole.devices)
    for device in devices if left else ():
        left[device] -= shape.share if pods > 0 else -shape.share
    gone = asked(hole, shape) or shape.amounts
    if pods != 1:
        gone = tuple(map(mul, gone, (pods,) * len(gone)))
    return hole._replace(amounts=tuple(map(sub, hole.amounts, gone)), devices=tuple(left))


def meet(one: Hole, other: Hole) -> Hole:
    """Return what is free in both: what fits in this fits in either."""
    amounts = tuple(map(min, one.amounts, other.amounts))
    return one._replace(amounts=amounts, devices=tuple(map(min, one.devices, other.devices)))


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
    if shape.devices != 1 or not hole.devices:
        yield tightest(hole, shape)
        return
    seen = set()
    for device in _fitting(hole, shape):
        if hole.devices[device] not in seen:
            seen.add(hole.devices[device])
            yield (device,)
