"""Numbered nodes and, for each shape that is asked for, the order in which to take them.

The orders are kept: after a pod came or went only its node is looked at again, and only by the
shapes that are asked for.
"""

import heapq
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from scheduling.engine.machines import WHOLE
from scheduling.engine.scoring.holes import Hole, Shape, after, fits
from scheduling.engine.scoring.policies import Policy, Seat

REMEMBERED = 200_000  # seats kept; then the memory starts anew
_STALE = 2  # an order with more than this many entries for each node is swept


class Place(NamedTuple):
    """Where a pod stands: the node's number and the indices of its devices."""

    number: int
    devices: tuple[int, ...]


class _Entry(NamedTuple):
    """One node in an order; of no worth once the node has changed since."""

    demerit: int
    number: int
    version: int
    devices: tuple[int, ...]


class _Order:
    """The nodes that fit one shape, best first, and those not looked at since they changed."""

    def __init__(self, numbers: Mapping[int, object]) -> None:
        self.entries: list[_Entry] = []
        self.changed = set(numbers)


class Board:
    """What is free on each node now; ``holes`` by the number that settles ties.

    ``work`` counts how often a node was ``looked`` at for a shape, how often that needed a
    ``scored`` seat (equal holes and shapes are rated once), and the pods ``placed``.
    """

    def __init__(self, holes: Mapping[int, Hole], policy: Policy) -> None:
        self._holes = dict(holes)
        self._policy = policy
        self._versions = dict.fromkeys(self._holes, 0)
        self._orders: dict[Shape, _Order] = {}
        self._seats: dict[tuple[Hole, Shape], Seat] = {}
        self.work: Counter[str] = Counter()

    def hole(self, number: int) -> Hole:
        """Return what is free on the node."""
        return self._holes[number]

    def holes(self) -> Iterator[tuple[int, Hole]]:
        """Yield every node's number and what is free there."""
        yield from self._holes.items()

    def best(self, shape: Shape) -> Place | None:
        """Return where a pod of this shape should stand; None where it fits nowhere.

        Largest merit first, then the lowest number. Cost: O(log nodes) for each node that has
        changed since this shape was last asked for, all of them the first time.
        """
        order = self._orders.get(shape)
        if order is None:
            order = self._orders[shape] = _Order(self._holes)
        self._look_again(order, shape)
        entries = order.entries
        while entries and entries[0].version != self._versions[entries[0].number]:
            heapq.heappop(entries)
        return Place(entries[0].number, entries[0].devices) if entries else None

    def take(self, place: Place, shape: Shape) -> None:
        """Let a pod stand there. The place must be open to it."""
        self._write(place.number, after(self._holes[place.number], shape, place.devices))
        self.work["placed"] += 1

    def give(self, place: Place, shape: Shape) -> None:
        """Take the pod away again: exactly what was taken is free again."""
        self._write(place.number, after(self._holes[place.number], shape, place.devices, -1))

    def _write(self, number: int, hole: Hole) -> None:
        assert all(amount >= 0 for amount in hole.amounts), "a node holds more than it has"
        assert all(0 <= free <= WHOLE for free in hole.devices), "a device holds more than it has"
        self._holes[number] = hole
        self._versions[number] += 1
        for order in self._orders.values():
            order.changed.add(number)

    def _look_again(self, order: _Order, shape: Shape) -> None:
        self.work["looked"] += len(order.changed)
        for number in order.changed:
            hole = self._holes[number]
            if fits(hole, shape):
                seat = self._seat(hole, shape)
                entry = _Entry(-seat.merit, number, self._versions[number], seat.devices)
                heapq.heappush(order.entries, entry)
        order.changed.clear()
        if len(order.entries) > _STALE * len(self._holes):
            fresh = [e for e in order.entries if e.version == self._versions[e.number]]
            heapq.heapify(fresh)
            order.entries = fresh

    def _seat(self, hole: Hole, shape: Shape) -> Seat:
        seat = self._seats.get((hole, shape))
        if seat is None:
            if len(self._seats) >= REMEMBERED:
                self._seats.clear()
            seat = self._seats[hole, shape] = self._policy(hole, shape)
            self.work["scored"] += 1
        return seat
