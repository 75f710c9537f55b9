"""Pod sets of one group: a leader with its workers, or all roles of a job, in one domain.

Among the domains in which everybody has room, the rule is the one for a single pod set
(``search.py``): the closest tier, in it the fewest domains and the least room left over.
Inside a domain the most demanding pod set is placed first and the others beside it. Where that
leaves somebody out, the others go first, pod by pod where they cost it least: so a leader and
its workers are placed wherever there is a way (``FORMAT.md`` 10.6).
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from scheduling.engine.capacity import Rooms
from scheduling.engine.company import Domain, Places, at_depth, grown
from scheduling.engine.slices import grain_of
from scheduling.engine.snapshot import Assignment
from scheduling.engine.standing_room import StandingRoom
from scheduling.engine.survivors import Wish, rejoin
from scheduling.engine.topology import Path

MOST_COMPARED = 16  # domains of one tier in which the whole group fits
MOST_TRIED = 256  # domains of a tier that is closer than it must be
MOST_SINGLY = 4096  # pods times hosts that are tried one by one

Member = tuple[StandingRoom, Wish]
Placed = tuple[Assignment, ...]


def place_group(rooms: Rooms, members: Sequence[Member]) -> Placed | None:
    """Return an assignment of every member, in order, or None. The tables are as they were.

    Of the tier that is required every domain is tried. Cost: O(hosts x levels) for each tier and
    member, plus the hosts of the domains tried.
    """
    roots = [grown(room.capacity, grain_of(wish.layers)) for room, wish in members]
    required = members[0][1].level
    for tier in range(_deepest(members), max(1, required) - 1, -1):
        found = _in_tier(rooms, members, roots, tier)
        if found is not None:
            return found
    if required:
        return None
    return _Inside(rooms, members, [room.capacity for room, _ in members]).place()


def _deepest(members: Sequence[Member]) -> int:
    return max((len(path) for room, _ in members for path in room.capacity), default=0)


def _in_tier(
    rooms: Rooms, members: Sequence[Member], roots: Sequence[Domain], tier: int
) -> Placed | None:
    """Return the best of the placements in one domain of a tier."""
    best: tuple[tuple[tuple[int, ...], int, Path], Placed] | None = None
    compared, capacities = 0, [_by_domain(room.capacity, tier) for room, _ in members]
    most = None if tier == members[0][1].level else MOST_TRIED
    for room, path in _candidates(members, roots, tier)[:most]:
        placed = _Inside(rooms, members, [capacity[path] for capacity in capacities]).place()
        if placed is None:
            continue
        merit = (_used(members, placed, tier), room, path)
        if best is None or merit < best[0]:
            best = merit, placed
        compared += 1
        if compared == MOST_COMPARED:
            break
    return best[1] if best else None


def _candidates(
    members: Sequence[Member], roots: Sequence[Domain], tier: int
) -> list[tuple[int, Path]]:
    """Return the domains in which each member by itself has room, the snuggest first."""
    rooms = [{d.path: d.room for d in at_depth(root, tier)} for root in roots]
    counts = [wish.count for _, wish in members]
    common = set(rooms[0]).intersection(*rooms[1:])
    return sorted(
        (sum(room[path] for room in rooms), path)
        for path in common
        if all(room[path] >= count for room, count in zip(rooms, counts, strict=True))
    )


def _by_domain(capacity: Mapping[Path, int], tier: int) -> dict[Path, dict[Path, int]]:
    """Return what the hosts of each domain of a tier can hold."""
    domains: dict[Path, dict[Path, int]] = {}
    for path, pods in capacity.items():
        domains.setdefault(path[:tier], {})[path] = pods
    return domains


def _used(members: Sequence[Member], placed: Placed, tier: int) -> tuple[int, ...]:
    """Return how many domains of each level below a tier are used."""
    paths = members[0][0].paths
    hosts = {paths[name] for assignment in placed for name in assignment.nodes}
    deepest = max(len(path) for path in hosts)
    return tuple(len({path[:depth] for path in hosts}) for depth in range(tier + 1, deepest + 1))


_Put = Callable[[int, Mapping[int, Assignment]], Places | None]


class _Inside:
    """The group in one domain."""

    def __init__(
        self, rooms: Rooms, members: Sequence[Member], capacity: Sequence[Mapping[Path, int]]
    ) -> None:
        self._rooms, self._members, self._capacity = rooms, members, capacity
        self._order = sorted(range(len(members)), key=self._demand)

    def _demand(self, index: int) -> tuple[float, int]:
        """Return a key that puts first whoever needs the largest part of the room it finds."""
        room = sum(self._capacity[index].values()) or 1
        return -self._members[index][1].count / room, index

    def place(self) -> Placed | None:
        """Return an assignment for each, or None."""
        main, *others = self._order
        return self._in_turn(self._order, self._beside) or self._in_turn(
            [*others, main], lambda index, found: self._cheapest(index, main, found)
        )

    def _in_turn(self, order: Sequence[int], put: _Put) -> Placed | None:
        """Place one after the other; each sees the earlier ones."""
        found: dict[int, Assignment] = {}
        with self._rooms[0].trial():
            for index in order:
                placed, room = put(index, found), self._members[index][0]
                if placed is None:
                    return None
                found[index] = room.assignment(placed)
                room.take(found[index])
        return tuple(found[index] for index in range(len(self._members)))

    def _beside(self, index: int, found: Mapping[int, Assignment]) -> Places | None:
        """Place a member near those that are placed; pods of others complete no slice."""
        room, wish = self._members[index]
        kept = self._standing(found)
        capacity = room.again(self._capacity[index], kept)
        alone = wish.layers or wish.preferred
        return rejoin(capacity, {} if alone else kept, replace(wish, level=0))

    def _standing(self, found: Mapping[int, Assignment]) -> Counter[Path]:
        paths = self._members[0][0].paths
        kept: Counter[Path] = Counter()
        for assignment in found.values():
            kept.update({paths[name]: pods for name, pods in assignment.nodes.items()})
        return kept

    def _cheapest(self, index: int, main: int, found: Mapping[int, Assignment]) -> Places | None:
        """Place pods one by one, each on the host on which the main member loses least room."""
        room, wish = self._members[index]
        if index == main:
            return self._beside(index, found)
        capacity = room.again(self._capacity[index], self._standing(found))
        if wish.layers or wish.preferred or len(capacity) * wish.count > MOST_SINGLY:
            return None
        placed: Counter[Path] = Counter()
        with self._rooms[0].trial():
            for _ in range(wish.count):
                costs = ((self._cost(p, room, main), n, p) for p, n in capacity.items() if n)
                best = min(costs, default=None)
                if best is None:
                    return None
                room.take(room.assignment({best[2]: 1}))
                placed[best[2]] += 1
                capacity = room.again(capacity, [best[2]])
        return dict(placed)

    def _cost(self, path: Path, room: StandingRoom, main: int) -> int:
        """Return how many pods of the main member a pod on that host would keep out."""
        of_main, capacity = self._members[main][0], self._capacity[main]
        before = of_main.again(capacity, [path]).get(path, 0)
        with self._rooms[0].trial():
            room.take(room.assignment({path: 1}))
            after = of_main.again(capacity, [path]).get(path, 0)
        return before - after
