"""Who was admitted in this cycle may still stand elsewhere, if one more gang can start for it."""

import pytest

from scheduling.engine import newcomers
from scheduling.engine.cycle import decide
from scheduling.engine.invariants import violations
from scheduling.engine.plan import Admit, Evict, Plan
from tests.engine.builders import HOST, RACK, RECLAIM_LOWER, World, pods, required, world

NODE1, NODE2 = "h100-node-01", "h100-node-02"
PICKY = pods(1, 4, node_selector={HOST: NODE1})


def plan_of(made: World) -> Plan:
    snapshot = made.build()
    plan = decide(snapshot)
    assert violations(snapshot, plan) == ()
    return plan


def seats(plan: Plan) -> dict[str, dict[str, int]]:
    """Pods by node of everybody admitted, the pod sets together."""
    return {
        d.workload: {node: n for a in d.assignments for node, n in a.nodes.items()}
        for d in plan.decisions
        if isinstance(d, Admit)
    }


def two_nodes(gpus: int = 8) -> World:
    return world().topology().nodes(2).queue("team", gpus, None, preemption=RECLAIM_LOWER)


def test_an_early_gang_gives_its_node_to_one_that_can_stand_nowhere_else() -> None:
    plan = plan_of(two_nodes().pending("any", "team", gpus=4).pending("picky", "team", PICKY))
    assert seats(plan) == {"any": {NODE2: 1}, "picky": {NODE1: 1}}


def test_a_gang_that_needs_a_whole_rack_gets_one_from_several() -> None:
    made = world().topology().nodes(6).queue("team", 24, None)
    for number in range(4):
        wanted = {HOST: f"h100-node-0{number + 1}"} if number in (0, 3) else {}
        made.pending(f"g{number}", "team", pods(1, 4, node_selector=wanted))
    made.pending("rack", "team", pods(2, 4, topology=required(RACK)))
    assert seats(plan_of(made))["rack"] == {"h100-node-05": 1, "h100-node-06": 1}


def test_running_work_never_moves() -> None:
    made = (
        two_nodes().running("any", "team", gpus=4, on={NODE1: 1}).pending("picky", "team", PICKY)
    )
    assert seats(plan_of(made)) == {}


def test_nobody_is_evicted_for_whom_a_newcomer_can_make_room() -> None:
    made = two_nodes(12).nodes(1).running("low", "team", gpus=4, on={NODE2: 1})
    made.pending("any", "team", gpus=4, priority=5).pending("picky", "team", PICKY, priority=5)
    plan = plan_of(made)
    assert seats(plan) == {"any": {"h100-node-03": 1}, "picky": {NODE1: 1}}
    assert [d for d in plan.decisions if isinstance(d, Evict)] == []


def test_who_moves_keeps_as_many_pods_as_it_was_given() -> None:
    made = two_nodes().pending("fewer", "team", pods(5, 1, topology=required(HOST), min_count=1))
    assert seats(plan_of(made)) == {"fewer": {NODE1: 4}}
    made.pending("picky", "team", PICKY)
    assert seats(plan_of(made)) == {"fewer": {NODE2: 4}, "picky": {NODE1: 1}}


def test_a_gang_beyond_the_quota_moves_nobody() -> None:
    plan = plan_of(two_nodes(7).pending("any", "team", gpus=4).pending("picky", "team", PICKY))
    assert seats(plan) == {"any": {NODE1: 1}}
    assert plan.work["newcomers_seated"] == 0


def test_seating_is_bounded_by_counted_work(monkeypatch: pytest.MonkeyPatch) -> None:
    made = two_nodes().pending("any", "team", gpus=4).pending("picky", "team", PICKY)
    assert plan_of(made).work["newcomers_seated"] == 4  # lifted and asked, then two seated
    monkeypatch.setattr(newcomers, "MAX_LOOKS", 2 * 3)
    assert seats(plan_of(made)) == {"any": {NODE1: 1}}


def test_where_nothing_helps_the_search_ends_soon() -> None:
    """Two orders of two gangs are all there are."""
    made = world().topology().nodes(2).queue("team", 8, None)
    made.node_list[1:] = []
    made.pending("first", "team", pods(1, 3)).pending("second", "team", pods(1, 2))
    plan = plan_of(made)
    assert seats(plan) == {"first": {NODE1: 1}}
    assert plan.work["newcomers_seated"] <= 2 + 4 * 2
