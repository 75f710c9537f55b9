"""Placing as Kueue does, in halls larger and deeper than the recorded ones.

The rules are restated from ``FORMAT.md`` 10; nothing here uses the search.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from random import Random
from typing import Any

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from scheduling.engine.kueue.domains import Ask, Leaf, place
from scheduling.engine.profile import Profile
from scheduling.engine.scenario.loop import run
from scheduling.engine.scenario.reader import read_scenario
from scheduling.engine.snapshot import TopologyRequest
from scheduling.engine.terms import TopologyMode
from tests.engine.kueue.halls import LEVELS, hall

REQUIRED, PREFERRED, LOOSE = TopologyMode
LAWS = settings(max_examples=60, deadline=None, phases=(Phase.explicit, Phase.generate))
seeds = st.integers(0, 2**32 - 1)  # a smaller seed is no simpler hall, so nothing is shrunk
Placed = Mapping[str, int]


@dataclass(frozen=True)
class Case:
    """One gang in one forest: leaves, what is asked, and at which depths."""

    leaves: tuple[Leaf, ...]
    ask: Ask
    depth: int | None
    slice_depth: int

    @property
    def size(self) -> int:
        return self.ask.request.slice_size

    def domains(self, placed: Placed, depth: int) -> Counter[tuple[str, ...]]:
        """Pods by domain of a depth; 0 is the outermost."""
        found: Counter[tuple[str, ...]] = Counter()
        for leaf in self.leaves:
            found[leaf.path[: depth + 1]] += placed.get(leaf.name, 0)
        return +found

    def capacity(self, path: tuple[str, ...]) -> int:
        """Whole slices that fit below: each domain of the slices' level counts its own."""
        rooms: Counter[tuple[str, ...]] = Counter()
        for leaf in self.leaves:
            if leaf.path[: len(path)] == path:
                rooms[leaf.path[: self.slice_depth + 1]] += leaf.free["gpu"]
        return sum(pods // self.size for pods in rooms.values())


def case_of(random: Random) -> Case:
    """A forest of four levels, up to 120 hosts; pods of one GPU, no leader."""
    leaves = []
    for zone in range(random.randint(1, 3)):
        for block in range(random.randint(1, 4)):
            for rack in range(random.randint(1, 4)):
                for host in range(random.randint(1, 4)):
                    path = (f"z{zone}", f"b{block}", f"r{rack}", f"{zone}{block}{rack}{host}")
                    leaves.append(Leaf(path, path[-1], {"gpu": random.choice((0, 1, 2, 4, 8))}))
    mode = random.choice((REQUIRED, PREFERRED, LOOSE))
    depth = None if mode is LOOSE else random.randrange(len(LEVELS))
    level = None if depth is None else LEVELS[depth]
    slice_depth, size = len(LEVELS) - 1, 1
    if random.randrange(2):
        slice_depth, size = random.randrange(depth or 0, len(LEVELS)), random.choice((2, 3, 4))
    slice_level = LEVELS[slice_depth] if size > 1 else None
    request = TopologyRequest(mode, level, slice_level=slice_level, slice_size=size)
    ask = Ask(request, random.randint(1, 24 // size) * size, {"gpu": 1})
    return Case(tuple(leaves), ask, depth, slice_depth)


def broken(case: Case) -> Iterator[str]:
    """Yield a sentence for each rule that the placement breaks."""
    found = place(LEVELS, case.leaves, case.ask)
    mode, slices = case.ask.request.mode, case.ask.count // case.size
    tops = {leaf.path[:1] for leaf in case.leaves}
    at = {leaf.path[: (case.depth or 0) + 1] for leaf in case.leaves}
    if found is None:
        if mode is not REQUIRED and sum(map(case.capacity, tops)) >= slices:
            yield "there was room"
        if mode is REQUIRED and any(case.capacity(path) >= slices for path in at):
            yield "one domain had room"
        return
    (placed,) = found
    free = {leaf.name: leaf.free["gpu"] for leaf in case.leaves}
    if sum(placed.values()) != case.ask.count:
        yield "not all pods are placed"
    if any(not 0 < pods <= free[name] for name, pods in placed.items()):
        yield "a host is oversold"
    if any(pods % case.size for pods in case.domains(placed, case.slice_depth).values()):
        yield "a slice is cut"
    yield from not_the_best(case, placed, slices)


def not_the_best(case: Case, placed: Placed, slices: int) -> Iterator[str]:
    """Where one domain of the asked level is enough, it is one, and the tightest."""
    if case.depth is None:
        return
    used = case.domains(placed, case.depth)
    rooms = {leaf.path[: case.depth + 1] for leaf in case.leaves}
    enough = [room for path in rooms if (room := case.capacity(path)) >= slices]
    if enough and len(used) > 1:
        yield "several domains where one would do"
    if enough and case.capacity(next(iter(used))) > min(enough):
        yield "a roomier domain than needed"


@LAWS
@given(seeds)
def test_where_pods_stand(seed: int) -> None:
    assert list(broken(case_of(Random(seed)))) == []


@LAWS
@given(seeds)
def test_the_order_of_hosts_means_nothing(seed: int) -> None:
    random = Random(seed)
    case = case_of(random)
    turned = random.sample(case.leaves, len(case.leaves))
    assert place(LEVELS, turned, case.ask) == place(LEVELS, case.leaves, case.ask)


@pytest.mark.long
def test_where_pods_stand_in_many_forests() -> None:
    for seed in range(20_000):
        assert list(broken(case_of(Random(seed)))) == [], seed


def check_hall(value: dict[str, Any]) -> None:
    """Run a hall to its end: everybody admitted stands whole, lawfully, and nobody on top."""
    outcome = run(read_scenario(value), Profile.kueue())
    assert outcome["quiescent"]
    last = {one["workload"]: one for cycle in outcome["cycles"] for one in cycle["admitted"]}
    admitted = {name: last[name] for name in outcome["final"]["admitted"]}
    assert len(admitted) >= len(value["workloads"]) // 4
    work = {one["name"]: one for one in value["workloads"]}
    load: Counter[tuple[str, str]] = Counter()
    for name, admission in admitted.items():
        for asked, got in zip(work[name]["pod_sets"], admission["pod_sets"], strict=True):
            pods = {d["values"][-1]: d["count"] for d in got["topology"]["domains"]}
            assert sum(pods.values()) == got["count"] == asked["count"]
            assert list(scattered(value, asked["topology_request"], pods)) == [], name
            for host, count in pods.items():
                load[host, "pods"] += count
                for resource, amount in asked["requests"].items():
                    load[host, resource] += amount * count
    for node in value["nodes"]:
        for resource, amount in node["allocatable"].items():
            left = amount - node.get("used", {}).get(resource, 0)
            assert load[node["name"], resource] <= left, node["name"]
            assert node.get("ready", True) or not load[node["name"], resource]


def scattered(value: dict[str, Any], request: dict[str, Any], pods: Placed) -> Iterator[str]:
    labels = {n["name"]: {**n["labels"], "host": n["name"]} for n in value["nodes"]}

    def domains(level: str) -> Counter[tuple[str, ...]]:
        upper = LEVELS[: LEVELS.index(level) + 1]
        found: Counter[tuple[str, ...]] = Counter()
        for host, count in pods.items():
            found[tuple(labels[host][one] for one in upper)] += count
        return found

    if "required" in request and len(domains(request["required"])) > 1:
        yield "not in one domain"
    if "slice_required" in request:
        counts = domains(request["slice_required"]).values()
        if any(count % request["slice_size"] for count in counts):
            yield "a slice is cut"


@pytest.mark.parametrize("seed", range(3))
def test_a_hall_of_racks_and_blocks(seed: int) -> None:
    check_hall(hall(Random(seed), 150, 3, 25))


@pytest.mark.long
@pytest.mark.parametrize("seed", range(4))
def test_a_hall_of_two_thousand_nodes(seed: int) -> None:
    check_hall(hall(Random(seed), 2000, 4, 60))
