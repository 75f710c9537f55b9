"""Which devices of a node a pod gets: islands, parts of devices, their memory, turns.

An island is a set of devices that are near each other. A pod of several devices gets them from
as few islands as can be; inside an island any set is as near as any other, so the lowest aligned
block is taken (the buddy rule of one node). Every choice is a function of what is free and what
is asked, so it can be remembered. Source: ``placement.md`` 5, 6 (44-46).
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import accumulate, pairwise
from typing import NamedTuple

from scheduling.engine.machines import WHOLE, Devices
from scheduling.engine.terms import DeviceLocality

ALIGNED = (1, 2, 4, 8)  # sizes of blocks that start at a multiple of themselves
BY_MEMORY = 0  # in the place of a share: as much of the device as the memory is of its memory

Part = Sequence[int]  # devices of one island that can take one pod's part each


class Layout(NamedTuple):
    """How the devices of a node are arranged: the same for as long as the node is.

    ``islands``: each device is in one of them; none declared: all are near each other.
    ``turns``: how many pods share one device in turns; 1: each device is its pod's alone.
    ``memory``: of each device, in MiB; 0: not declared.
    """

    islands: tuple[tuple[int, ...], ...] = ()
    turns: int = 1
    memory: int = 0

    @property
    def turn(self) -> int:
        """Return the thousandths that one turn is."""
        return WHOLE // self.turns

    @property
    def full(self) -> int:
        """Return the thousandths of a device that nobody uses: as many as its turns make."""
        return self.turn * self.turns


PLAIN = Layout()


class Ask(NamedTuple):
    """What one pod asks of each of so many ``devices``: thousandths, and MiB of memory.

    ``share`` ``WHOLE`` is a whole GPU, and one turn where devices are shared in turns.
    ``alone``: nobody else may use the device even there.
    """

    devices: int
    share: int = WHOLE
    memory: int = 0
    locality: DeviceLocality = DeviceLocality.ANY
    alone: bool = False

    def share_on(self, layout: Layout) -> int:
        """Return the thousandths that it takes of each device.

        Who asks for memory alone takes a turn, else the part that its memory is, and all of a
        device whose memory nobody declared.
        """
        if layout is PLAIN and self.share:
            return self.share
        if self.alone:
            return layout.full
        if self.share == WHOLE or (self.share == BY_MEMORY and layout.turns > 1):
            return layout.turn
        if self.share == BY_MEMORY:
            known = layout.memory
            return max(1, self.memory * WHOLE // known) if known else layout.full
        return min(self.share, layout.full)

    def memory_on(self, layout: Layout) -> int:
        """Return the MiB that it takes of each device."""
        return layout.memory if self.alone else self.memory


class Spare(NamedTuple):
    """What is free on the devices of a node, by index: thousandths, and MiB where declared."""

    free: tuple[int, ...]
    memory: tuple[int, ...] = ()
    layout: Layout = PLAIN

    def less(self, ask: Ask, devices: Iterable[int]) -> "Spare":
        """Return what is left when the pod stands on the devices of these indices.

        An index may come several times, once for each pod.
        """
        return self._moved(ask, devices, -1)

    def more(self, ask: Ask, devices: Iterable[int]) -> "Spare":
        """Return what is free once it has gone: exactly what it took is given back."""
        return self._moved(ask, devices, 1)

    def ordered(self) -> "Spare":
        """Return the same without the numbering: devices and islands by what is free on them."""
        if self.layout is PLAIN:
            return Spare(tuple(sorted(self.free)))
        memory = self.memory or (0,) * len(self.free)
        islands = self.layout.islands or (range(len(self.free)),)
        parts = sorted(sorted((self.free[d], memory[d]) for d in island) for island in islands)
        every = [device for part in parts for device in part]
        starts = [0, *accumulate(map(len, parts))]
        spans = tuple(tuple(range(a, b)) for a, b in pairwise(starts))
        layout = self.layout._replace(islands=spans if self.layout.islands else ())
        left = tuple(mib for _, mib in every) if self.memory else ()
        return Spare(tuple(free for free, _ in every), left, layout)

    def _moved(self, ask: Ask, devices: Iterable[int], sign: int) -> "Spare":
        free, memory = list(self.free), list(self.memory)
        share, mib = sign * ask.share_on(self.layout), sign * ask.memory_on(self.layout)
        for device in devices:
            if device < len(free):  # else it has failed since, and holds nothing
                free[device] += share
                if memory:
                    memory[device] += mib
        return Spare(tuple(free), tuple(memory), self.layout)


def spare_of(devices: Devices) -> Spare:
    """Return what is free on the devices of a node with nobody on it.

    A device that no island names is an island of its own.
    """
    named = {device for island in devices.islands for device in island}
    islands = [tuple(sorted(island)) for island in devices.islands if island]
    islands += [(d,) for d in range(devices.count) if islands and d not in named]
    layout = Layout(tuple(sorted(islands)), devices.replicas, devices.memory or 0)
    layout = PLAIN if layout == PLAIN else layout
    memory = (layout.memory,) * devices.count if layout.memory else ()
    return Spare((layout.full,) * devices.count, memory, layout)


def whole_turns(spare: Spare) -> int:
    """Return how many whole devices, or turns, are free; negative where one is overcommitted."""
    turn = spare.layout.turn
    over = sum(free // turn for free in spare.free if free < 0)
    return over or sum(free // turn for free in spare.free)


def suffice(spare: Spare, ask: Ask) -> bool:
    """Return whether the devices have room for one such pod."""
    if spare.layout is PLAIN and ask.share:  # nearly all nodes: counting is enough
        return sum(free >= ask.share for free in spare.free) >= ask.devices
    fitting = _open(spare, ask)
    if len(fitting) < ask.devices:
        return False
    everywhere = ask.locality in (DeviceLocality.ANY, DeviceLocality.PREFER)
    if everywhere or not ask.devices or not spare.layout.islands:
        return True
    islands = _fewest(_parts(spare, fitting), ask.devices)
    if ask.locality is DeviceLocality.REQUIRE:
        return islands == 1
    return islands <= _fewest(spare.layout.islands, ask.devices)


def useful(spare: Spare, ask: Ask) -> int | None:
    """Return the thousandths that are free on devices of use to such a pod; None: on none.

    Of use is a device with room for the pod's part, in an island with enough of them where the
    pod insists on one.
    """
    if spare.layout is PLAIN and ask.share:
        enough = [free for free in spare.free if free >= ask.share]
        return sum(enough) if len(enough) >= ask.devices else None
    if not suffice(spare, ask):
        return None
    parts: Iterable[Part] = [_open(spare, ask)]
    if ask.locality is DeviceLocality.REQUIRE:
        parts = (p for p in _parts(spare, _open(spare, ask)) if len(p) >= ask.devices)
    return sum(spare.free[device] for part in parts for device in part)


def room(spare: Spare, ask: Ask, most: int) -> int:
    """Return how many such pods find devices together, ``most`` at the most.

    Pods of one device each, or of whole ones, find as many however they are put. Others are put
    one after the other, as :func:`chosen` does.
    """
    if spare.layout is PLAIN and ask.devices == 1 and ask.share:
        return min(most, sum(free // ask.share for free in spare.free if free > 0))
    if _settled(spare, ask):
        pods = 0
        while pods < most and suffice(spare, ask):
            spare, pods = spare.less(ask, chosen(spare, ask)), pods + 1
        return pods
    fitting = _open(spare, ask)
    if ask.devices == 1:
        return min(most, sum(_turns(spare, ask, device) for device in fitting))
    near = ask.locality in (DeviceLocality.REQUIRE, DeviceLocality.RESTRICTED)
    parts = _parts(spare, fitting) if near else [fitting]
    return min(most, sum(len(part) // ask.devices for part in parts))


def _turns(spare: Spare, ask: Ask, device: int) -> int:
    """Return how many pods of one device each have room on this one."""
    pods, mib = spare.free[device] // ask.share_on(spare.layout), ask.memory_on(spare.layout)
    return min(pods, spare.memory[device] // mib) if spare.memory and mib else pods


def _settled(spare: Spare, ask: Ask) -> bool:
    """Return whether there is one choice for every policy: a bad one would keep others out.

    Parts of several devices, and whole ones that only several islands have.
    """
    if ask.devices <= 1:
        return False
    if ask.share_on(spare.layout) < spare.layout.full:
        return True
    if ask.locality is not DeviceLocality.RESTRICTED:
        return False
    return bool(spare.layout.islands) and _fewest(spare.layout.islands, ask.devices) > 1


def chosen(spare: Spare, ask: Ask, *, tight: bool = True) -> tuple[int, ...]:
    """Return the devices that such a pod gets; it must fit.

    As few islands as can be. Of several that would do: the one whose devices have least left
    (most, unless ``tight``), then the one with the fewest (most) open devices, then the lowest
    index. Inside it a block of whole devices, or those that fit most tightly (loosely).
    """
    tight = tight or _settled(spare, ask)
    left, found = ask.devices, list[int]()
    parts = _parts(spare, _open(spare, ask))
    while parts and left > max(map(len, parts)):
        largest = max(parts, key=lambda part: (len(part), -part[0]))
        parts.remove(largest)
        found += largest
        left -= len(largest)
    if left:
        sign = 1 if tight else -1
        roomy = [part for part in parts if len(part) >= left]
        tries = [(_inside(spare, ask, part, left, tight=tight), len(part)) for part in roomy]
        assert tries, "devices are chosen only where the pod fits"
        found += min(tries, key=lambda t: (*_rank(spare, t, sign), min(t[0])))[0]
    return tuple(sorted(found))


def _rank(spare: Spare, choice: tuple[Part, int], sign: int) -> tuple[int, int]:
    devices, size = choice
    return sign * sum(spare.free[device] for device in devices), sign * size


def sets(spare: Spare, ask: Ask) -> Iterator[tuple[int, ...]]:
    """Yield the sets of devices that differ in what they leave, the tightest first.

    Of several devices in one island only the tightest set is named: with whole devices all sets
    are equal. A set from several islands is named only where no single one can hold the pod.
    """
    parts = [part for part in _parts(spare, _open(spare, ask)) if len(part) >= ask.devices]
    plain = ask.devices != 1 and not spare.layout.islands
    if not parts or not ask.devices or plain or _settled(spare, ask):
        yield chosen(spare, ask)
        return
    seen = set()
    for mark, devices in sorted(_marked(spare, ask, parts)):
        if mark not in seen:
            seen.add(mark)
            yield devices


def crossed(spare: Spare, devices: Iterable[int]) -> int:
    """Return in how many islands these devices lie; where none are declared, in one."""
    if not spare.layout.islands:
        return 1
    taken = set(devices)
    return sum(not taken.isdisjoint(island) for island in spare.layout.islands)


def _open(spare: Spare, ask: Ask) -> list[int]:
    """Return the devices that can take the pod's part, by index."""
    share, memory = ask.share_on(spare.layout), ask.memory_on(spare.layout)
    if not spare.memory or not memory:
        return [i for i, free in enumerate(spare.free) if free >= share]
    both = zip(spare.free, spare.memory, strict=True)
    return [i for i, (free, mib) in enumerate(both) if free >= share and mib >= memory]


def _parts(spare: Spare, fitting: list[int]) -> list[Part]:
    """Return the open devices of each island that has any."""
    if not spare.layout.islands:
        return [fitting]
    usable = set(fitting)
    parts = ([d for d in island if d in usable] for island in spare.layout.islands)
    return [part for part in parts if part]


def _fewest(parts: Iterable[Part], count: int) -> int:
    """Return how many islands it takes at least to have ``count`` devices."""
    islands = 0
    for size in sorted(map(len, parts), reverse=True):
        if count <= 0:
            break
        islands, count = islands + 1, count - size
    return islands


def _inside(spare: Spare, ask: Ask, part: Part, count: int, *, tight: bool) -> Part:
    """Return ``count`` devices of one island."""
    if ask.share_on(spare.layout) == spare.layout.full:
        return _block(spare, part, count)
    return sorted(part, key=_left(spare, tight=tight))[:count]


def _left(spare: Spare, *, tight: bool) -> Callable[[int], tuple[int, int, int]]:
    """Return the key that puts the devices with least (most) left first."""
    sign, memory = 1 if tight else -1, spare.memory or (0,) * len(spare.free)
    return lambda device: (sign * spare.free[device], sign * memory[device], device)


def _block(spare: Spare, part: Part, count: int) -> Part:
    """Return the lowest aligned block of whole devices; else the lowest ones.

    Positions count inside the island. Where no island is declared, nothing is aligned.
    """
    usable = set(part)
    for island in spare.layout.islands if count in ALIGNED else ():
        for start in range(0, len(island) - count + 1, count):
            if usable.issuperset(island[start : start + count]):
                return island[start : start + count]
    return part[:count]


def _marked(
    spare: Spare, ask: Ask, parts: Iterable[Part]
) -> Iterator[tuple[tuple[int, int, int], tuple[int, ...]]]:
    """Yield sets inside one island, each after all that tells what it leaves from others."""
    memory = spare.memory or (0,) * len(spare.free)
    for part in parts:
        size = len(part) if spare.layout.islands else 0
        each: Iterable[Part] = ((d,) for d in part)
        if ask.devices != 1:
            each = [_inside(spare, ask, part, ask.devices, tight=True)]
        for devices in each:
            left = sum(spare.free[d] for d in devices)
            yield (left, size, sum(memory[d] for d in devices)), tuple(sorted(devices))
