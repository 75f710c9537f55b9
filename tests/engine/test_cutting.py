"""Which pods of a gang are surplus follows from the nodes that a preemptor needs."""

import pytest

from scheduling.engine.cycle import decide
from scheduling.engine.invariants import violations
from scheduling.engine.plan import Evict, Plan, Shrink
from scheduling.engine.snapshot import Assignment, PodSet, SliceLayer, Snapshot, TopologyRequest
from scheduling.engine.state import State
from scheduling.engine.terms import TopologyMode
from scheduling.engine.whatif import what_if
from tests.engine.builders import BLOCK, RACK, RECLAIM_LOWER, World, node, pods, required, world


def placed(made: World, key: str, pod_set: PodSet, on: dict[int, int], **changes) -> World:
    """Let pods of a running gang stand on nodes, by their numbers."""
    nodes = {node(number).name: count for number, count in on.items()}
    made.running(key, "q", pod_set, on=nodes, **changes)
    return made


def hall(nodes: int) -> World:
    return world().topology().nodes(nodes).queue("q", 100, None, preemption=RECLAIM_LOWER)


def decided(snapshot: Snapshot) -> Plan:
    plan = decide(snapshot)
    assert violations(snapshot, plan) == ()
    return plan


def takings(plan: Plan) -> tuple[list[str], dict[str, dict[str, int]]]:
    """Return who is evicted whole, and what others lose on which node."""
    evicted = [d.workload for d in plan.decisions if isinstance(d, Evict)]
    lost = {
        d.workload: {n[-2:]: k for one in d.pods for n, k in one.nodes.items()}
        for d in plan.decisions
        if isinstance(d, Shrink)
    }
    return evicted, lost


def test_the_pods_that_are_in_the_way_go_and_not_the_whole_gang() -> None:
    """By default the pods of the third node would go, which has no room for four all the same."""
    made = hall(3)
    placed(made, "wide", pods(11), {1: 4, 2: 4, 3: 3}, min_member=7)
    placed(made, "fixed", pods(1), {3: 1}, preemptible=False)
    plan = decided(made.pending("urgent", "q", gpus=4, priority=5).build())
    assert takings(plan) == ([], {"wide": {"01": 4}})


def test_what_leaves_least_for_most_goes() -> None:
    made = hall(3)
    placed(made, "wide", pods(10), {1: 4, 2: 2, 3: 4}, min_member=5)
    placed(made, "low", pods(1), {2: 1}, preemptible=False)
    plan = decided(made.pending("urgent", "q", gpus=3, priority=5).build())
    assert takings(plan) == ([], {"wide": {"02": 2}})


def test_where_too_little_surplus_stands_a_gang_goes_whole() -> None:
    made = hall(3)
    placed(made, "wide", pods(11), {1: 4, 2: 4, 3: 3}, min_member=8)
    placed(made, "fixed", pods(1), {3: 1}, preemptible=False)
    plan = decided(made.pending("urgent", "q", gpus=4, priority=5).build())
    assert takings(plan) == (["wide"], {})


def test_surplus_of_two_gangs_on_one_node_goes_together() -> None:
    made = hall(3)
    placed(made, "a", pods(6), {1: 2, 2: 2, 3: 2}, min_member=4)
    placed(made, "b", pods(5), {1: 2, 2: 2, 3: 1}, min_member=3)
    placed(made, "fixed", pods(1), {3: 1}, preemptible=False)
    plan = decided(made.pending("urgent", "q", gpus=4, priority=5).build())
    assert takings(plan) == ([], {"a": {"01": 2}, "b": {"01": 2}})


def test_a_required_domain_is_emptied_of_surplus() -> None:
    """Two racks of two nodes: in the second one work stands that may not go."""
    made = hall(4)
    placed(made, "wide", pods(15), {1: 4, 2: 4, 3: 4, 4: 3}, min_member=7)
    placed(made, "fixed", pods(1), {4: 1}, preemptible=False)
    made.pending("urgent", "q", pods(2, 4, topology=required(RACK)), priority=5)
    assert takings(decided(made.build())) == ([], {"wide": {"01": 4, "02": 4}})


def sliced(count: int, *layers: tuple[str, int]) -> PodSet:
    slices = tuple(SliceLayer(*layer) for layer in layers)
    return pods(count, topology=TopologyRequest(TopologyMode.UNCONSTRAINED, slices=slices))


def test_surplus_in_slices_goes_by_whole_slices() -> None:
    """Six pods in two nodes of each rack: a slice is six of them, whichever node has more."""
    made = hall(4)
    placed(made, "wide", sliced(12, (RACK, 6)), {1: 3, 2: 3, 3: 4, 4: 2}, min_member=6)
    plan = decided(made.pending("urgent", "q", pods(6), priority=5).build())
    assert takings(plan) == ([], {"wide": {"03": 4, "04": 2}})


def test_of_nested_slices_the_outer_ones_go() -> None:
    made = hall(8)
    everywhere = dict.fromkeys(range(1, 9), 4)
    placed(made, "wide", sliced(32, (BLOCK, 16), (RACK, 8)), everywhere, min_member=16)
    (lost,) = takings(decided(made.pending("u", "q", gpus=4, priority=5).build()))[1].values()
    assert sum(lost.values()) == 16
    assert set(lost) in ({"01", "02", "03", "04"}, {"05", "06", "07", "08"})


@pytest.mark.parametrize("why", ["some slice is not whole", "its nodes lie nowhere"])
def test_slices_that_nobody_can_tell_apart_stay_together(why: str) -> None:
    made = hall(4)
    level, on = RACK, {1: 4, 2: 2, 3: 4, 4: 2}
    if why == "some slice is not whole":
        on = {1: 4, 2: 3, 3: 4, 4: 1}
    else:
        level = "floor"
    placed(made, "wide", sliced(12, (level, 6)), on, min_member=6)
    state = State(made.build())
    assert [work.key for work in state.running.of("q")] == ["wide"]


def test_the_next_preemptor_of_the_same_cycle_takes_what_is_left_of_the_surplus() -> None:
    made = hall(3)
    placed(made, "wide", pods(11), {1: 4, 2: 4, 3: 3}, min_member=3)
    placed(made, "fixed", pods(1), {3: 1}, preemptible=False)
    for number in range(3):
        made.pending(f"urgent{number}", "q", gpus=4, priority=5)
    evicted, _ = takings(plan := decided(made.build()))
    shrinks = [d for d in plan.decisions if isinstance(d, Shrink)]
    nodes = {name for d in shrinks for one in d.pods for name in one.nodes}
    assert (evicted, len(shrinks), len(nodes)) == ([], 2, 2)


def test_a_search_leaves_the_surplus_cut_as_it_was() -> None:
    made = hall(3)
    placed(made, "wide", pods(11), {1: 4, 2: 4, 3: 3}, min_member=7)
    state = State(made.pending("urgent", "q", gpus=4, priority=5).build())

    def cut() -> dict[str, tuple[Assignment, ...]]:
        return {w.key: w.admission.assignments for w in state.running.of("q") if w.admission}

    before, books = cut(), state.books.parts.of(state.workloads["wide"])
    assert state.preemptor.find(state.workloads["urgent"], frozenset()) is not None
    assert (cut(), state.books.parts.of(state.workloads["wide"])) == (before, books)


def test_an_edit_tells_whose_surplus_it_takes() -> None:
    made = hall(3)
    placed(made, "wide", pods(12), {1: 4, 2: 4, 3: 4}, min_member=7)
    before = made.build()
    after = made.pending("urgent", "q", gpus=4, priority=5).build()
    told = what_if(before, after)
    (loss,) = told.evictions
    assert (told.evicted, told.shrunk, told.moved) == ((), ("wide",), ())
    assert (loss.preemptor, loss.pods) == ("urgent", 4)
    assert loss.lost_gpu_hours > 0
    assert what_if(after, after).shrunk == ()
