"""Which domains pods take: tables from the specification, laws, and an exhaustive oracle."""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scheduling.engine.nearness import Wish, Wood
from scheduling.engine.slices import Domain, Layer, grain_of, grown, share_out
from scheduling.engine.topology import Path

BLOCK, RACK, HOST = 1, 2, 3


def hosts(**rooms: int) -> dict[Path, int]:
    """Hosts by name: ``a1x`` is host ``a1x`` of rack ``a1`` in block ``a``."""
    return {(name[0], name[:2], name): pods for name, pods in rooms.items()}


def flat(**rooms: int) -> dict[Path, int]:
    """Hosts by name: ``a1`` is host ``a1`` of rack ``a``."""
    return {(name[0], name): pods for name, pods in rooms.items()}


def named(placed: Mapping[Path, int] | None) -> dict[str, int] | None:
    return None if placed is None else {path[-1]: pods for path, pods in placed.items()}


@dataclass(frozen=True)
class Case:
    id: str
    rooms: dict[Path, int]
    wish: Wish
    want: dict[str, int] | None


S4 = (Layer(RACK, 4),)
NESTED = (Layer(BLOCK, 8), Layer(RACK, 4))

CASES = [
    Case(
        "KAI: zone A with racks 2+1+1+1, zone B with racks 2+2+2, three pods",
        flat(a1=2, a2=1, a3=1, a4=1, b1=2, b2=2, b3=2),
        Wish(3, depth=1, must=True),
        {"a1": 2, "a2": 1},
    ),
    Case(
        "E5: twenty units in 19, 10, 10 leave 19 whole",
        {("a",): 19, ("b",): 10, ("c",): 10},
        Wish(20, depth=1),
        {"b": 10, "c": 10},
    ),
    Case(
        "E4 with nothing asked for: splinters are used up before a larger room is broken",
        {("a",): 2, ("b",): 1, ("c",): 1},
        Wish(2),
        {"b": 1, "c": 1},
    ),
    Case(
        "T6 a: two pods, each rack has room for one",
        flat(a1=1, b1=1, c1=1),
        Wish(2, depth=1, must=True),
        None,
    ),
    Case(
        "T6 b: four pods prefer a rack: two racks of one block, never those of two blocks",
        hosts(a0x=1, a0y=1, a1x=1, a1y=1, b0x=1, b0y=1),
        Wish(4, depth=RACK),
        {"a0x": 1, "a0y": 1, "a1x": 1, "a1y": 1},
    ),
    Case(
        "a block with fewer racks goes before one with less room left",
        hosts(a0x=2, a1x=2, b0x=3, b1x=1, b2x=1, c0x=4, c1x=2),
        Wish(5, depth=BLOCK, must=True),
        {"c0x": 4, "c1x": 1},
    ),
    Case(
        "a rack with fewer hosts goes before one with less room left",
        hosts(a0x=1, a0y=1, a0z=1, b0x=2, b0y=2),
        Wish(3, depth=RACK, must=True),
        {"b0x": 2, "b0y": 1},
    ),
    Case(
        "a slice needs its whole rack: three and three are no room for two slices of four",
        hosts(a0x=3, a1x=3, b0x=5),
        Wish(8, S4, depth=BLOCK, must=True),
        None,
    ),
    Case(
        "slices of four, two racks of one block",
        hosts(a0x=3, a0y=2, a1x=4, b0x=9),
        Wish(8, S4, depth=BLOCK, must=True),
        {"b0x": 8},
    ),
    Case(
        "no slice is cut where a rack has room for more than a slice",
        hosts(a0x=6, a1x=6),
        Wish(8, S4, depth=BLOCK, must=True),
        {"a0x": 4, "a1x": 4},
    ),
    Case(
        "slices alone: the tightest racks that hold one, even in two blocks",
        hosts(a0x=9, b0x=4, c0x=5),
        Wish(8, S4),
        {"b0x": 4, "c0x": 4},
    ),
    Case(
        "slices of eight in blocks, made of slices of four in racks",
        hosts(a0x=5, a1x=7, a2x=2, b0x=3, b1x=3, b2x=3, c0x=4, c1x=4),
        Wish(16, NESTED, depth=BLOCK),
        {"a0x": 4, "a1x": 4, "c0x": 4, "c1x": 4},
    ),
    Case(
        "nine pods in a block are no slice of eight where its racks hold three each",
        hosts(a0x=3, a1x=3, a2x=3),
        Wish(8, NESTED, depth=BLOCK),
        None,
    ),
    Case("a count that no slices add up to", hosts(a0x=9), Wish(6, S4), None),
    Case("no hosts at all", {}, Wish(1, depth=1), None),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_where_pods_go(case: Case) -> None:
    assert named(Wood(case.rooms, case.wish.layers).place(case.wish)) == case.want


def test_slices_count_whole_in_the_roomiest_domain() -> None:
    rooms = hosts(a0x=5, a1x=3, b0x=6)
    assert Wood(rooms).largest(BLOCK) == 8
    assert Wood(rooms, S4).largest(BLOCK) == 4
    assert Wood(rooms, S4).largest(RACK) == 4


# ---- laws ------------------------------------------------------------------------------------
PATHS = [(b, b + r, b + r + h) for b, r, h in product("ab", "01", "xy")]
rooms_st = st.dictionaries(st.sampled_from(PATHS), st.integers(0, 5), max_size=8)
layers_st = st.sampled_from(
    [
        (),
        (Layer(BLOCK, 2),),
        (Layer(RACK, 2),),
        (Layer(RACK, 3),),
        (Layer(HOST, 2),),
        (Layer(BLOCK, 4), Layer(RACK, 2)),
        (Layer(BLOCK, 4), Layer(HOST, 2)),
        (Layer(BLOCK, 8), Layer(RACK, 4), Layer(HOST, 2)),
    ]
)
wish_st = st.builds(
    Wish,
    count=st.integers(1, 12),
    layers=layers_st,
    depth=st.sampled_from([None, 1, 2, 3]),
    must=st.booleans(),
)


def lawful(rooms: Mapping[Path, int], wish: Wish, placed: Mapping[Path, int]) -> bool:
    """Restate what a placement must be; nothing of the tree is used."""
    if sum(placed.values()) != wish.count or any(not 0 < n <= rooms[p] for p, n in placed.items()):
        return False
    if wish.must and wish.depth and len({path[: wish.depth] for path in placed}) > 1:
        return False
    for layer in wish.layers:
        per = Counter[Path]()
        for path, pods in placed.items():
            per[path[: layer.depth]] += pods
        if any(pods % layer.size for pods in per.values()):
            return False
    return True


def every(rooms: Mapping[Path, int], wish: Wish) -> Iterator[dict[Path, int]]:
    """Yield every lawful placement there is."""
    ranges = (range(min(pods, wish.count) + 1) for pods in rooms.values())
    for counts in product(*ranges):
        if sum(counts) == wish.count:
            placed = {p: n for p, n in zip(rooms, counts, strict=True) if n}
            if lawful(rooms, wish, placed):
                yield placed


@given(rooms=rooms_st, wish=wish_st)
def test_whoever_is_placed_is_placed_lawfully(rooms, wish) -> None:
    placed = Wood(rooms, wish.layers).place(wish)
    assert placed is None or lawful(rooms, wish, placed)


@given(rooms=rooms_st, wish=wish_st)
@settings(max_examples=60)
def test_a_place_is_found_wherever_there_is_one(rooms, wish) -> None:
    placed = Wood(rooms, wish.layers).place(wish)
    assert (placed is None) is (next(every(rooms, wish), None) is None)


def tier(placed: Mapping[Path, int]) -> int:
    """Return the depth of the lowest domain that holds all pods."""
    first, last = min(placed), max(placed)
    return sum(first[: n + 1] == last[: n + 1] for n in range(len(first)))


def used(placed: Mapping[Path, int]) -> tuple[int, ...]:
    return tuple(len({path[:depth] for path in placed}) for depth in (BLOCK, RACK, HOST))


@given(rooms=rooms_st, wish=wish_st.filter(lambda wish: wish.depth is not None))
@settings(max_examples=60)
def test_nobody_could_stand_closer_and_in_one_domain_of_racks_nobody_on_fewer(rooms, wish) -> None:
    placed = Wood(rooms, wish.layers).place(wish)
    if placed is None:
        return
    closest = max(tier(other) for other in every(rooms, wish))
    assert tier(placed) == closest
    if closest >= RACK:
        best = min(used(other) for other in every(rooms, wish) if tier(other) == closest)
        assert used(placed) == best


@given(rooms=rooms_st, wish=wish_st)
def test_the_order_of_hosts_means_nothing(rooms, wish) -> None:
    turned = dict(reversed(rooms.items()))
    assert Wood(rooms, wish.layers).place(wish) == Wood(turned, wish.layers).place(wish)


@given(rooms=st.lists(st.integers(1, 9), min_size=1, max_size=7), count=st.integers(1, 30))
def test_a_share_takes_the_fewest_domains_and_leaves_the_least_over(rooms, count) -> None:
    domains = [Domain((f"d{index}",), room) for index, room in enumerate(rooms)]
    if sum(rooms) < count:
        return
    shares = share_out(domains, count)
    assert sum(gets for _, gets in shares) == count
    assert all(0 < gets <= domain.room for domain, gets in shares)
    sets = [
        (bits.bit_count(), sum(rooms[n] for n in range(len(rooms)) if bits >> n & 1))
        for bits in range(1, 1 << len(rooms))
    ]
    best = min(chosen for chosen in sets if chosen[1] >= count)
    assert (len(shares), sum(domain.room for domain, _ in shares)) == best


def test_a_grain_rules_from_its_level_upwards() -> None:
    assert grain_of(NESTED, 3) == (8, 8, 4, 1)
    assert grain_of((), 2) == (1, 1, 1)


def test_a_room_counts_what_can_be_handed_down() -> None:
    root = grown(hosts(a0x=5, a1x=7, b0x=4), grain_of(NESTED, 3))
    assert root.room == 8
    assert [(domain.path, domain.room) for domain in root.children] == [(("a",), 8), (("b",), 0)]
