"""Partial admission: the largest number of pods with which a gang can start (FORMAT 5.7)."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scheduling.engine import partial
from scheduling.engine.cycle import decide
from scheduling.engine.feasibility import check_workload
from scheduling.engine.invariants import violations
from scheduling.engine.metering import split
from scheduling.engine.plan import Admit, Evict, Hold, Plan
from scheduling.engine.snapshot import Assignment, Claim, Memory, Workload
from scheduling.engine.terms import BlockerCode, PendingReason, QueueingStrategy
from tests.engine.builders import RACK, RECLAIM_LOWER, World, pods, required, world
from tests.engine.simulator import Simulator
from tests.engine.strategies import worlds


def plan_of(made: World) -> Plan:
    snapshot = made.build()
    plan = decide(snapshot)
    assert violations(snapshot, plan) == ()
    return plan


def granted(plan: Plan, key: str) -> tuple[int, ...]:
    """Return the admitted counts; nothing for a workload that waits."""
    admits = (d for d in plan.decisions if isinstance(d, Admit) and d.workload == key)
    return tuple(a.count for d in admits for a in d.assignments)


def evicted(plan: Plan) -> list[str]:
    return [d.workload for d in plan.decisions if isinstance(d, Evict)]


def held(plan: Plan, key: str) -> Hold:
    (hold,) = [d for d in plan.decisions if isinstance(d, Hold) and d.workload == key]
    return hold


@pytest.mark.parametrize(
    ("count", "least", "quota", "nodes", "expected"),
    [
        (8, None, 8, 8, (8,)),
        (8, None, 7, 8, ()),
        (8, 4, 8, 8, (8,)),  # the whole count first
        (8, 4, 7, 8, (7,)),  # quota is what lacks
        (8, 4, 8, 6, (6,)),  # nodes are what lacks
        (8, 4, 5, 6, (5,)),
        (8, 4, 4, 8, (4,)),
        (8, 4, 3, 8, ()),  # fewer than it is content with
        (8, 1, 1, 1, (1,)),
        (8, 8, 7, 8, ()),
        (1000, 1, 613, 1000, (613,)),
    ],
)
def test_the_largest_count_that_fits_is_granted(count, least, quota, nodes, expected):
    made = world().nodes(-(-nodes // 100), min(nodes, 100)).queue("cq", quota, None)
    plan = plan_of(made.pending("g", "cq", pods(count, min_count=least)))
    assert granted(plan, "g") == expected
    placed = sum(n for d in plan.decisions if isinstance(d, Admit) for n in nodes_of(d))
    assert placed == sum(expected)


def nodes_of(admit: Admit) -> list[int]:
    return [pods for a in admit.assignments for pods in a.nodes.values()]


def test_several_pod_sets_give_way_together():
    """8 and 4 pods, content with 4 and 2: the missing ones are spread by what each may lack."""
    pod_sets = (pods(8, 1, "a", min_count=4), pods(4, 1, "b", min_count=2), pods(1, 1, "c"))
    made = world().nodes(4).queue("cq", 10, None).pending("g", "cq", *pod_sets)
    assert granted(plan_of(made), "g") == (6, 3, 1)


def test_work_behind_a_reduced_gang_finds_the_rest_taken():
    made = world().nodes(2).queue("cq", 8, None)
    made.pending("g", "cq", pods(12, min_count=4)).pending("h", "cq")
    plan = plan_of(made)
    assert granted(plan, "g") == (8,)
    assert granted(plan, "h") == ()


def test_a_required_domain_bounds_the_count():
    made = world().topology().nodes(4).queue("cq", 16, None)
    made.pending("g", "cq", pods(12, min_count=2, topology=required(RACK)))
    assert granted(plan_of(made), "g") == (8,)


def rivals() -> World:
    made = world().nodes(1, 8).queue("cq", 8, None, preemption=RECLAIM_LOWER)
    return made.running("low", "cq", gpus=4, on={"h100-node-01": 1})


def test_the_whole_count_with_evictions_goes_before_fewer_pods_without():
    made = rivals().pending("g", "cq", pods(8, min_count=4), priority=9)
    plan = plan_of(made)
    assert evicted(plan) == ["low"]
    assert plan.memory.claims[0].assignments[0].count == 8


def test_fewer_pods_may_evict_where_the_whole_count_cannot():
    made = rivals().running("equal", "cq", gpus=2, priority=9, on={"h100-node-01": 1})
    made.pending("g", "cq", pods(8, min_count=4), priority=9)
    snapshot = made.build()
    plan = plan_of(made)
    assert evicted(plan) == ["low"]
    assert plan.memory.claims[0].assignments[0].count == 6
    simulator = Simulator(snapshot)
    simulator.run()
    assert simulator.admitted() == {"equal", "g"}
    (work,) = [w for w in simulator.snapshot.workloads if w.key == "g"]
    assert work.admission is not None
    assert work.admission.assignments[0].count == 6
    assert simulator.evictions == [("low", "g")]


def test_a_claim_for_fewer_pods_gives_way_to_room_for_all():
    made = world().nodes(1, 8).queue("cq", 8, None)
    made.pending("g", "cq", pods(8, min_count=4))
    where = (Assignment("main", 5, {"nvidia.com/gpu": "h100-sxm"}, {"h100-node-01": 5}),)
    made.memory = Memory(claims=(Claim("g", where, (), 2000.0),))
    assert granted(plan_of(made), "g") == (8,)


@pytest.mark.parametrize(("count", "stands"), [(3, False), (4, True), (8, True), (9, False)])
def test_a_claim_stands_for_any_number_of_pods_that_the_gang_takes(count, stands):
    made = world().nodes(2, 8).queue("cq", 16, None, preemption=RECLAIM_LOWER)
    made.running("busy", "cq", gpus=8, priority=9, on={"h100-node-01": 1}, releasing=True)
    made.running("more", "cq", gpus=8, priority=9, on={"h100-node-02": 1})
    made.pending("g", "cq", pods(8, min_count=4))
    where = (Assignment("main", count, {"nvidia.com/gpu": "h100-sxm"}, {"h100-node-01": count}),)
    made.memory = Memory(claims=(Claim("g", where, ("busy",), 2000.0),))
    snapshot = replace(made.build(), workloads=made.workloads)
    kept = [c.assignments[0].count for c in decide(snapshot).memory.claims]
    assert (kept == [count]) is stands


def test_why_it_waits_is_told_by_the_fewest_pods():
    made = world().nodes(1).queue("cq", 3, None).pending("g", "cq", pods(8, min_count=4))
    made.running("r", "cq", gpus=1, on={"h100-node-01": 1}, priority=9)
    hold = held(plan_of(made), "g")
    short = [b for b in hold.blockers if b.code is BlockerCode.IMPOSSIBLE]
    assert [(b.needed, b.available) for b in short] == [(4, 3)]
    made.queues["cq"] = replace(made.queues["cq"], groups=world().queue("x", 4).queues["x"].groups)
    hold = held(plan_of(made), "g")
    assert hold.reason is PendingReason.WAITING_FOR_QUOTA
    quota = [b for b in hold.blockers if b.code is BlockerCode.QUOTA_NOMINAL]
    assert [(b.needed, b.available) for b in quota] == [(4, 3)]


def test_what_is_impossible_is_judged_by_the_fewest_pods():
    made = world().nodes(1).queue("cq", 4, None)
    snapshot = made.build()
    work = Workload("g", "g", "cq", 0, 1.0, (pods(8, min_count=4),))
    assert [f.code for f in check_workload(snapshot, work)] == ["NEEDS_WHOLE_CLUSTER"]
    never = replace(work, pod_sets=(pods(8, min_count=5),))
    assert "NEVER_FITS_QUEUE" in [f.code for f in check_workload(snapshot, never)]


def test_a_strict_queue_waits_behind_a_gang_that_could_start_smaller():
    strict = QueueingStrategy.STRICT_FIFO
    made = world().nodes(1).queue("cq", 4, None, queueing_strategy=strict)
    made.running("r", "cq", gpus=2, on={"h100-node-01": 1})
    made.pending("g", "cq", pods(4, min_count=3)).pending("h", "cq")
    assert granted(plan_of(made), "h") == ()


def test_the_second_ceiling_bounds_the_count_too():
    made = world().nodes(2).queue("cq", 8, None).queue("cap", 5, None)
    made.pending("g", "cq", pods(8, min_count=2), ceiling_queue="cap")
    assert granted(plan_of(made), "g") == (5,)


def test_what_was_granted_is_metered_and_charged():
    made = world().nodes(2).queue("cq", 6, None).pending("g", "cq", pods(8, min_count=4))
    simulator = Simulator(made.build())
    simulator.run()
    assert [(s.workload, s.amount) for s in split(simulator.snapshot)] == [("g", 6)]


def test_reducible_gangs_of_one_shape_cost_one_search():
    made = world().nodes(1).queue("cq", 4, None).running("r", "cq", gpus=2, priority=9)
    for number in range(50):
        made.pending(f"g{number:02d}", "cq", pods(64, min_count=3))
    assert decide(made.build()).work["pod_sets_tried"] < 20


def test_the_search_costs_a_doubling_and_finds_the_boundary():
    work = Workload("g", "g", "cq", 0, 1.0, (pods(1000, min_count=1),))
    tried: list[int] = []

    def fits(sized: Workload) -> int | None:
        tried.append(sized.pod_sets[0].count)
        return sized.pod_sets[0].count if sized.pod_sets[0].count <= 613 else None

    assert partial.search(work, fits) == 613
    assert len(tried) <= 10


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.integers(1, 9), st.integers(1, 9)), min_size=1, max_size=4))
def test_sizes_go_down_one_pod_at_a_time_to_the_minima(counts):
    pod_sets = tuple(
        pods(max(pair), 1, f"p{i}", min_count=min(pair)) for i, pair in enumerate(counts)
    )
    work = Workload("g", "g", "cq", 0, 1.0, pod_sets)
    totals = [
        sum(p.count for p in partial.reduced(work, size).pod_sets)
        for size in range(partial.most_missing(work) + 1)
    ]
    assert totals == sorted(totals, reverse=True)
    assert totals[0] == sum(p.count for p in pod_sets)
    least = partial.smallest(work)
    assert [p.count for p in least.pod_sets] == [p.min_count for p in pod_sets]
    for size in range(partial.most_missing(work) + 1):
        sized = partial.reduced(work, size).pod_sets
        whole = tuple(Assignment(p.name, p.count, {}) for p in sized)
        assert partial.grants(work, whole)


@settings(max_examples=40, deadline=None)
@given(worlds(), st.integers(1, 4))
def test_reducible_work_keeps_every_law_and_comes_to_rest(snapshot, more):
    """Every gang of the world is grown, and content with what it was."""
    work = tuple(
        replace(
            w,
            pod_sets=tuple(
                replace(p, count=p.count + more, min_count=p.count) for p in w.pod_sets
            ),
        )
        for w in snapshot.workloads
    )
    Simulator(replace(snapshot, workloads=work)).run()
