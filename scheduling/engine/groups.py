"""Pod sets of one group: a leader with its workers, or all roles of a job, in one domain.

Among the domains in which everybody has room, the rule is the one for a single pod set
(``nearness.py``): the closest tier, in it the fewest domains and the least room left over.
Inside a domain the most demanding pod set is placed first and the others beside it. Where that
leaves somebody out, the others go first, pod by pod where they cost it least: so a leader and
its workers are placed wherever there is a way (``FORMAT.md`` 10.6).
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from scheduling.engine.nearness import Places, Wish, Wood
from scheduling.engine.placement import Rooms
from scheduling.engine.slices import at_depth
from scheduling.engine.standing_room import StandingRoom
from scheduling.engine.survivors import rejoin
from scheduling.engine.topology import Path

MOST_COMPARED = 16  # domains of one tier in which the whole group fits
MOST_SINGLY = 4096  # pods times hosts that are tried one by one

Member = tuple[StandingRoom, Wish]


def place_group(rooms: Rooms, members: Sequence[Member]) -> tuple[Places, ...] | None:
    """Return places for every member, in order, or None. The tables are as they were.

    Cost: O(hosts x levels) for each tier and member, plus the hosts of the domains tried.
    """
    woods = [Wood(ground.capacity, wish.layers) for ground, wish in members]
    first = members[0][1]
    lowest = first.depth if first.must and first.depth else 1
    deepest = min((wood.deepest for wood in woods), default=0)
    for tier in range(deepest, lowest - 1, -1):
        found = _in_tier(rooms, members, woods, tier)
        if found is not None:
            return found
    if first.must:
        return None
    return _Inside(rooms, members, ()).place()


def _in_tier(
    rooms: Rooms, members: Sequence[Member], woods: Sequence[Wood], tier: int
) -> tuple[Places, ...] | None:
    """Return the best of the placements in one domain of a tier."""
    best: tuple[tuple[tuple[int, ...], int, Path], tuple[Places, ...]] | None = None
    compared = 0
    for room, path in _candidates(members, woods, tier):
        placed = _Inside(rooms, members, path).place()
        if placed is None:
            continue
        merit = (_used(placed, tier), room, path)
        if best is None or merit < best[0]:
            best = merit, placed
        compared += 1
        if compared == MOST_COMPARED:
            break
    return best[1] if best else None


def _candidates(
    members: Sequence[Member], woods: Sequence[Wood], tier: int
) -> list[tuple[int, Path]]:
    """Return the domains in which each member by itself has room, the snuggest first."""
    rooms = [{d.path: d.room for d in at_depth(wood.root, tier)} for wood in woods]
    counts = [wish.count for _, wish in members]
    common = set(rooms[0]).intersection(*rooms[1:])
    return sorted(
        (sum(room[path] for room in rooms), path)
        for path in common
        if all(room[path] >= count for room, count in zip(rooms, counts, strict=True))
    )


def _used(placed: Sequence[Places], tier: int) -> tuple[int, ...]:
    hosts = {path for places in placed for path in places}
    deepest = max(len(path) for path in hosts)
    return tuple(len({path[:depth] for path in hosts}) for depth in range(tier + 1, deepest + 1))


class _Inside:
    """The group in one domain."""

    def __init__(self, rooms: Rooms, members: Sequence[Member], path: Path) -> None:
        self._rooms, self._members = rooms, members
        self._capacity = [_within(ground.capacity, path) for ground, _ in members]
        self._order = sorted(range(len(members)), key=self._demand)

    def _demand(self, index: int) -> tuple[float, int]:
        """Return a key that puts first whoever needs the largest part of the room it finds."""
        room = sum(self._capacity[index].values()) or 1
        return -self._members[index][1].count / room, index

    def place(self) -> tuple[Places, ...] | None:
        """Return places for all, or None."""
        return self._in_turn() or self._others_first()

    def _in_turn(self) -> tuple[Places, ...] | None:
        """Place the most demanding first, and the others beside those that are placed."""
        found: dict[int, Places] = {}
        with self._rooms[0].trial():
            for index in self._order:
                placed = self._beside(index, found)
                if placed is None:
                    return None
                self._members[index][0].take(placed)
                found[index] = placed
        return tuple(found[index] for index in range(len(self._members)))

    def _others_first(self) -> tuple[Places, ...] | None:
        """Place the others where they cost the most demanding least, then that one."""
        main, *others = self._order
        found: dict[int, Places] = {}
        with self._rooms[0].trial():
            for index in others:
                placed = self._cheapest(index, main, found)
                if placed is None:
                    return None
                found[index] = placed
            last = self._beside(main, found)
        if last is None:
            return None
        found[main] = last
        return tuple(found[index] for index in range(len(self._members)))

    def _beside(self, index: int, found: Mapping[int, Places]) -> Places | None:
        ground, wish = self._members[index]
        touched = {path for places in found.values() for path in places}
        capacity = ground.again(self._capacity[index], touched)
        loose = replace(wish, must=False)
        kept: dict[Path, int] = {}
        if not wish.layers:  # pods of others complete no slice
            for places in found.values():
                for path, pods in places.items():
                    kept[path] = kept.get(path, 0) + pods
        return rejoin(capacity, kept, loose)

    def _cheapest(self, index: int, main: int, found: Mapping[int, Places]) -> Places | None:
        """Place pods one by one, each on the host on which the main member loses least room."""
        ground, wish = self._members[index]
        touched = {path for places in found.values() for path in places}
        capacity = ground.again(self._capacity[index], touched)
        if wish.layers or len(capacity) * wish.count > MOST_SINGLY:
            return None
        placed: Places = {}
        for _ in range(wish.count):
            costs = (
                (self._cost(path, ground, main), n, path) for path, n in capacity.items() if n
            )
            _, _, path = min(costs, default=(0, 0, ()))
            if not path:
                return None
            ground.take({path: 1})
            placed[path] = placed.get(path, 0) + 1
            capacity = ground.again(capacity, [path])
        return placed

    def _cost(self, path: Path, ground: StandingRoom, main: int) -> int:
        """Return how many pods of the main member a pod on that host would keep out."""
        of_main = self._members[main][0]
        before = of_main.again(self._capacity[main], [path]).get(path, 0)
        with self._rooms[0].trial():
            ground.take({path: 1})
            after = of_main.again(self._capacity[main], [path]).get(path, 0)
        return before - after


def _within(capacity: Mapping[Path, int], domain: Path) -> dict[Path, int]:
    return {p: pods for p, pods in capacity.items() if p[: len(domain)] == domain}
