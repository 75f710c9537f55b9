"""Beyond the recorded scenarios: what no cycle of ``Profile.kueue()`` may ever do.

The answers are checked by ``naive.py``, which shares nothing with the engine.
"""

from collections import Counter
from collections.abc import Iterator
from random import Random
from typing import Any

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from scheduling.engine.kueue.cycle import Board, Entry, HeadOutcome, Round, decide_heads
from scheduling.engine.profile import Profile
from scheduling.engine.scenario import loop
from scheduling.engine.scenario.reader import read_scenario
from scheduling.engine.snapshot import Assignment, PodSet, Snapshot, Workload
from scheduling.engine.terms import TopologyMode
from tests.engine.kueue.wild import LEVELS, wild_scenario
from tests.engine.naive import Tree, charged, free_of, may_use, usage_of

KUEUE = Profile.kueue()
Free = dict[str, Counter[str]]  # by node and resource
seeds = st.integers(0, 2**32 - 1)  # a smaller seed is no simpler world, so nothing is shrunk


def broken(snapshot: Snapshot, decided: Round) -> Iterator[str]:
    """Yield a sentence for each rule that the heads of one cycle break."""
    work = {one.key: one for one in snapshot.workloads}
    queues = [entry.queue.name for entry in decided.entries]
    if len(set(queues)) < len(queues):
        yield "two heads of one queue"
    usage, free = usage_of(snapshot), free_of(snapshot)
    taken = Counter(key for e in decided.entries for key in victims(e))
    for key, times in taken.items():
        if times > 1 or work[key].admission is None:
            yield f"{key} is evicted {times} times or does not run"
    for entry in decided.entries:
        if entry.outcome is HeadOutcome.PREEMPTING:
            if not entry.victims:
                yield f"{entry.workload.key} preempts nobody"
            make_room(free, entry, work)  # later heads may count on what the victims leave
        if entry.outcome is not HeadOutcome.ADMITTED:
            continue
        head, assignments = work[entry.workload.key], entry.nomination.assignments
        asked = charged(head, assignments)
        if not Tree(snapshot, usage).fits(entry.queue.name, asked):
            yield f"{head.key} has no quota"
        usage[entry.queue.name] = usage.get(entry.queue.name, Counter()) + asked
        yield from misplaced(snapshot, head, assignments, free)


def victims(entry: Entry) -> frozenset[str]:
    none: frozenset[str] = frozenset()
    return entry.victim_keys if entry.outcome is HeadOutcome.PREEMPTING else none


def make_room(free: Free, entry: Entry, work: dict[str, Workload]) -> None:
    """Let the victims of a preemptor leave, and the preemptor stand."""
    for key in entry.victim_keys:
        admission = work[key].admission
        assert admission is not None
        stand(free, work[key], admission.assignments, -1)
    stand(free, work[entry.workload.key], entry.nomination.assignments)


def stand(free: Free, one: Workload, assignments: tuple[Assignment, ...], sign: int = 1) -> None:
    sets = {pod_set.name: pod_set for pod_set in one.pod_sets}
    for assignment in assignments:
        for node, pods in assignment.nodes.items():
            for resource, amount in sets[assignment.pod_set].requests.items():
                free[node][resource] -= sign * amount * pods


def misplaced(
    snapshot: Snapshot,
    head: Workload,
    assignments: tuple[Assignment, ...],
    free: Free,
) -> Iterator[str]:
    """Yield what is wrong with counts, flavors and nodes of one admission; take the room."""
    sets = {pod_set.name: pod_set for pod_set in head.pod_sets}
    groups: dict[str, set[str]] = {}
    for one in assignments:
        pod_set = sets[one.pod_set]
        if not (pod_set.min_count or pod_set.count) <= one.count <= pod_set.count:
            yield f"{head.key} starts with {one.count} of {pod_set.count} pods"
        if not may_use(snapshot, pod_set, one.flavors.values()):
            yield f"{head.key} may not use {one.flavors}"
        yield from off_ground(snapshot, head, pod_set, one, free)
        if pod_set.topology is not None and pod_set.topology.group:
            level = pod_set.topology.level or ""
            groups.setdefault(pod_set.topology.group, set()).update(domains(snapshot, one, level))
    stand(free, head, assignments)
    yield from (f"{head.key} splits a group" for found in groups.values() if len(found) > 1)


def off_ground(
    snapshot: Snapshot,
    head: Workload,
    pod_set: PodSet,
    one: Assignment,
    free: Free,
) -> Iterator[str]:
    placing = any(snapshot.flavors[f].topology for f in one.flavors.values())
    if not placing:
        return
    if sum(one.nodes.values()) != one.count:
        yield f"{head.key} places {sum(one.nodes.values())} of {one.count} pods"
    yield from overloaded(snapshot, head, pod_set, one, free)
    yield from torn_apart(snapshot, head, pod_set, one)


def overloaded(
    snapshot: Snapshot,
    head: Workload,
    pod_set: PodSet,
    one: Assignment,
    free: Free,
) -> Iterator[str]:
    """Each pod set by itself and without pod slots, as Kueue looks within one cycle."""
    nodes = {node.name: node for node in snapshot.nodes}
    wanted = [snapshot.flavors[name].node_labels.items() for name in one.flavors.values()]
    for name, pods in one.nodes.items():
        node = nodes[name]
        if not node.usable or not all(labels <= node.labels.items() for labels in wanted):
            yield f"{head.key} stands on {name}, which is not of its flavor or takes nobody"
        for resource, amount in pod_set.requests.items():
            if amount and amount * pods > free[name][resource]:
                yield f"{name} is oversold of {resource}"


def torn_apart(
    snapshot: Snapshot, head: Workload, pod_set: PodSet, one: Assignment
) -> Iterator[str]:
    request = pod_set.topology
    if request is None:
        return
    required = request.mode is TopologyMode.REQUIRED and request.level
    if required and len(domains(snapshot, one, request.level or "")) > 1:
        yield f"{head.key} is spread over several {request.level}s"
    if request.slice_level:
        nodes, per = {node.name: node for node in snapshot.nodes}, Counter[str]()
        for name, pods in one.nodes.items():
            per[path(nodes[name].labels, request.slice_level)] += pods
        if any(pods % request.slice_size for pods in per.values()):
            yield f"{head.key} cuts a slice"


def domains(snapshot: Snapshot, one: Assignment, level: str) -> set[str]:
    nodes = {node.name: node for node in snapshot.nodes}
    return {path(nodes[name].labels, level) for name in one.nodes}


def path(labels: Any, level: str) -> str:
    return "/".join(labels[upper] for upper in LEVELS[: LEVELS.index(level) + 1])


def check(seed: int) -> None:
    """Run one scenario under both profiles; every cycle of Kueue's is looked at twice."""
    value = wild_scenario(Random(seed))
    scenario = read_scenario(value)
    found: list[str] = []

    def watched(snapshot: Snapshot, profile: Profile, board: Board) -> Round:
        decided = decide_heads(snapshot, profile, board)
        if decided != decide_heads(snapshot, profile):
            found.append("a kept board and a fresh one decide differently")
        found.extend(broken(snapshot, decided))
        return decided

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(loop, "decide_heads", watched)
        outcome = loop.run(scenario, KUEUE)
    assert found == [], seed
    final, names = outcome["final"], {work["name"] for work in value["workloads"]}
    somewhere = [*final["admitted"], *final["pending"], *final.get("finished", [])]
    assert len(set(somewhere)) == len(somewhere), seed
    gone = {e["workload"] for e in value["events"] if e["type"] == "delete"}
    assert names - gone <= set(somewhere), seed
    assert loop.run(scenario, Profile.recommended())["quiescent"], seed


@given(seeds)
@settings(max_examples=40, deadline=None, phases=(Phase.explicit, Phase.generate))
def test_every_cycle_keeps_the_rules(seed: int) -> None:
    check(seed)


@pytest.mark.long
def test_every_cycle_of_many_scenarios_keeps_the_rules() -> None:
    for seed in range(5000):
        check(seed)
