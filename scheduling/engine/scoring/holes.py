"""Holes and shapes: what is free on one node, and what one pod asks for.

The words of every score, and of every count of pods that fit. Which devices go together is said
in ``devices.py`` and nowhere else. Source: ``placement.md`` 4.1 and 5.
"""

from collections.abc import Iterable, Iterator
from operator import gt, mul, sub
from typing import NamedTuple

from scheduling.engine.machines import WHOLE
from scheduling.engine.scoring.devices import (
    PLAIN,
    Ask,
    Layout,
    Spare,
    chosen,
    room,
    sets,
    suffice,
)
from scheduling.engine.terms import DeviceLocality

ENDLESS = 2**63  # pods that ask for nothing; a pod of the product always takes a slot


class Shape(NamedTuple):
    """What one pod asks of its node.

    ``amounts`` are of all resources that are counted, in an order that the caller keeps. Of
    each of ``devices`` devices it asks ``share`` thousandths and ``memory`` MiB, as
    :class:`~scheduling.engine.scoring.devices.Ask` says. ``kinds`` are the kinds of nodes that
    will do; empty means any. ``counted``: its devices are among the amounts as well; only such
    a pod may stand where devices are not told apart.
    """

    amounts: tuple[int, ...]
    devices: int = 0
    share: int = WHOLE
    kinds: frozenset[str] = frozenset()
    counted: bool = False
    memory: int = 0
    locality: DeviceLocality = DeviceLocality.ANY
    alone: bool = False

    @property
    def ask(self) -> Ask:
        """Return what it asks of devices."""
        return Ask(self.devices, self.share, self.memory, self.locality, self.alone)


class Keep(NamedTuple):
    """What a GPU node keeps for its free GPUs from pods that ask for none.

    ``each``: of each amount, the part that one GPU has of the whole node. Amounts from ``plain``
    on count GPUs. ``hard``: such a pod may not stand where it would take of it; else such nodes
    are only the last to be taken.
    """

    each: tuple[int, ...]
    plain: int
    hard: bool = False


class Hole(NamedTuple):
    """What is free on a node, all that a score depends on: equal holes have equal scores.

    ``devices`` holds the free thousandths of each device, ``memory`` its free MiB, by index;
    none where devices are counted among the ``amounts`` alone. ``memory`` is empty where no
    node says how much there is. ``keep`` is None where there are no GPUs. ``columns``: how many
    of the amounts, the last ones, count the devices once more.
    """

    amounts: tuple[int, ...]
    devices: tuple[int, ...] = ()
    kind: str = ""
    memory: tuple[int, ...] = ()
    layout: Layout = PLAIN
    keep: Keep | None = None
    columns: int = 0

    @property
    def spare(self) -> Spare:
        """Return what is free on its devices."""
        return Spare(self.devices, self.memory, self.layout)


def idle(hole: Hole, plain: int | None) -> int:
    """Return the thousandths of devices that are free; amounts from ``plain`` on count them."""
    return sum(hole.devices) + WHOLE * sum(counted(hole, hole.amounts, plain))


def counted(hole: Hole, amounts: tuple[int, ...], plain: int | None) -> tuple[int, ...]:
    """Return the devices among the amounts, without those that the hole tells apart."""
    return () if plain is None else amounts[plain : len(amounts) - hole.columns]


def kept(hole: Hole, shape: Shape) -> tuple[int, ...]:
    """Return what the node keeps of each amount from such a pod; () where it keeps nothing."""
    keep = hole.keep
    if keep is None or shape.devices or any(shape.amounts[keep.plain :]):
        return ()
    free = max(0, idle(hole, keep.plain))
    return tuple(-(-each * free // WHOLE) for each in keep.each)


def spares(hole: Hole, shape: Shape) -> bool:
    """Return whether the pod leaves the node's free GPUs their part of all amounts."""
    together = zip(hole.amounts, shape.amounts, kept(hole, shape), strict=False)
    return all(free - amount >= part for free, amount, part in together if amount)


def suits(hole: Hole, shape: Shape) -> bool:
    """Return whether such a pod may stand on such a node at all, however full it is."""
    if shape.kinds and hole.kind not in shape.kinds:
        return False
    return shape.counted or bool(hole.devices) or not shape.devices


def fits(hole: Hole, shape: Shape) -> bool:
    """Return whether a pod of this shape can stand in the hole."""
    if not suits(hole, shape) or any(map(gt, shape.amounts, hole.amounts)):
        return False
    if hole.keep is not None and hole.keep.hard and not spares(hole, shape):
        return False
    if not hole.devices or not shape.devices:
        return True
    return suffice(hole.spare, shape.ask)


def fitting(hole: Hole, shape: Shape) -> int:
    """Return how many pods of this shape can stand in the hole together."""
    if not suits(hole, shape):
        return 0
    pods, amounts = ENDLESS, hole.amounts
    if hole.keep is not None and hole.keep.hard and (parts := kept(hole, shape)):
        amounts = tuple(map(sub, amounts, parts))
    for free, amount in zip(amounts, shape.amounts, strict=True):
        if amount:
            pods = min(pods, free // amount)
    if pods > 0 and shape.devices and hole.devices:
        pods = room(hole.spare, shape.ask, pods)
    return max(0, pods)


def after(hole: Hole, shape: Shape, devices: Iterable[int], pods: int = 1) -> Hole:
    """Return what is left when so many pods stand there, on the devices of these indices.

    An index stands for the part of one pod. A negative number of pods gives back exactly what
    as many have taken.
    """
    gone = shape.amounts
    if pods != 1:
        gone = tuple(map(mul, gone, (pods,) * len(gone)))
    amounts = tuple(map(sub, hole.amounts, gone))
    if not hole.devices or not shape.devices:
        return hole._replace(amounts=amounts)
    spare, ask = hole.spare, shape.ask
    left = spare.less(ask, devices) if pods > 0 else spare.more(ask, devices)
    return hole._replace(amounts=amounts, devices=left.free, memory=left.memory)


def meet(one: Hole, other: Hole) -> Hole:
    """Return what is free in both: what fits in this fits in either."""
    return one._replace(
        amounts=tuple(map(min, one.amounts, other.amounts)),
        devices=tuple(map(min, one.devices, other.devices)),
        memory=tuple(map(min, one.memory, other.memory)),
    )


def tightest(hole: Hole, shape: Shape) -> tuple[int, ...]:
    """Return the devices that fit most tightly; of equally free ones the lowest index."""
    return chosen(hole.spare, shape.ask) if hole.devices else ()


def loosest(hole: Hole, shape: Shape) -> tuple[int, ...]:
    """Return the devices with most left; of equally free ones the lowest index."""
    return chosen(hole.spare, shape.ask, tight=False) if hole.devices else ()


def ways(hole: Hole, shape: Shape) -> Iterator[tuple[int, ...]]:
    """Yield the sets of devices that differ in what they leave, the tightest first."""
    return sets(hole.spare, shape.ask) if hole.devices else iter(((),))
