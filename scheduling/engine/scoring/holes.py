"""What is free on a node, what a pod asks of one, and what is left: the words of every score.

Which devices go together is said in ``devices.py``. Source: ``placement.md`` 4.1 and 5.
"""

from collections.abc import Iterable, Iterator
from operator import add, gt, sub
from typing import NamedTuple

from scheduling.engine.machines import WHOLE
from scheduling.engine.scoring.devices import PLAIN, Ask, Layout, Spare, chosen, sets, suffice
from scheduling.engine.terms import DeviceLocality


class Shape(NamedTuple):
    """What one pod asks of its node.

    ``amounts`` are of the ordinary resources (CPU, memory), in an order that the caller keeps.
    Of each of ``devices`` devices it asks ``share`` thousandths and ``memory`` MiB, as
    :class:`~scheduling.engine.scoring.devices.Ask` says. ``kinds`` are the kinds of nodes that
    will do; empty means any.
    """

    amounts: tuple[int, ...]
    devices: int = 0
    share: int = WHOLE
    kinds: frozenset[str] = frozenset()
    memory: int = 0
    locality: DeviceLocality = DeviceLocality.ANY
    alone: bool = False

    @property
    def ask(self) -> Ask:
        """Return what it asks of devices."""
        return Ask(self.devices, self.share, self.memory, self.locality, self.alone)


class Hole(NamedTuple):
    """What is free on a node, all that a score depends on: equal holes have equal scores.

    ``devices`` holds the free thousandths of each device, ``memory`` its free MiB, by index;
    ``memory`` is empty where the node does not declare any.
    """

    amounts: tuple[int, ...]
    devices: tuple[int, ...] = ()
    kind: str = ""
    memory: tuple[int, ...] = ()
    layout: Layout = PLAIN

    @property
    def spare(self) -> Spare:
        """Return what is free on its devices."""
        return Spare(self.devices, self.memory, self.layout)


def fits(hole: Hole, shape: Shape) -> bool:
    """Return whether a pod of this shape can stand in the hole."""
    if shape.kinds and hole.kind not in shape.kinds:
        return False
    if any(map(gt, shape.amounts, hole.amounts)):
        return False
    if hole.layout is PLAIN and shape.share:  # nearly all nodes: counting is enough
        return sum(free >= shape.share for free in hole.devices) >= shape.devices
    return not shape.devices or suffice(hole.spare, shape.ask)


def after(hole: Hole, shape: Shape, devices: Iterable[int]) -> Hole:
    """Return what is left when the pod stands there, on the devices of these indices."""
    left = hole.spare.less(shape.ask, devices)
    amounts = tuple(map(sub, hole.amounts, shape.amounts))
    return hole._replace(amounts=amounts, devices=left.free, memory=left.memory)


def before(hole: Hole, shape: Shape, devices: Iterable[int]) -> Hole:
    """Return what is free once the pod on these devices has gone: it undoes :func:`after`."""
    more = hole.spare.more(shape.ask, devices)
    amounts = tuple(map(add, hole.amounts, shape.amounts))
    return hole._replace(amounts=amounts, devices=more.free, memory=more.memory)


def tightest(hole: Hole, shape: Shape) -> tuple[int, ...]:
    """Return the devices that fit most tightly; of equally free ones the lowest index."""
    return chosen(hole.spare, shape.ask)


def loosest(hole: Hole, shape: Shape) -> tuple[int, ...]:
    """Return the devices with most left; of equally free ones the lowest index."""
    return chosen(hole.spare, shape.ask, tight=False)


def ways(hole: Hole, shape: Shape) -> Iterator[tuple[int, ...]]:
    """Yield the sets of devices that differ in what they leave, the tightest first."""
    return sets(hole.spare, shape.ask)
