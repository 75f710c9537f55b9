"""Elastic workloads: a grown copy asks for the difference and replaces what it is a copy of."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from scheduling.engine.cycle import decide
from scheduling.engine.invariants import violations
from scheduling.engine.kueue.cycle import HeadOutcome, decide_heads
from scheduling.engine.machines import GPU, Flavor
from scheduling.engine.plan import Admit, Evict, Hold, Plan
from scheduling.engine.profile import Profile
from scheduling.engine.snapshot import (
    Claim,
    Cohort,
    FlavorQuotas,
    Memory,
    Quota,
    ResourceGroup,
    Snapshot,
)
from scheduling.engine.standing import standing
from scheduling.engine.terms import (
    BlockerCode,
    BorrowWithinCohort,
    Fairness,
    StopPolicy,
    WithinClusterQueue,
)
from scheduling.engine.usage import charged, held_usage
from tests.engine.builders import (
    H100,
    RACK,
    RECLAIM_ANY,
    RECLAIM_LOWER,
    World,
    node,
    pods,
    required,
    world,
)
from tests.engine.simulator import Simulator
from tests.engine.strategies import worlds

ONE, TWO = "h100-node-01", "h100-node-02"


def plan_of(made: World) -> Plan:
    snapshot = made.build()
    plan = decide(snapshot)
    assert violations(snapshot, plan) == ()
    return plan


def admit_of(plan: Plan, key: str) -> Admit:
    (admit,) = [d for d in plan.decisions if isinstance(d, Admit) and d.workload == key]
    return admit


def hold_of(plan: Plan, key: str) -> Hold:
    (hold,) = [d for d in plan.decisions if isinstance(d, Hold) and d.workload == key]
    return hold


def evicted(plan: Plan) -> list[str]:
    return [d.workload for d in plan.decisions if isinstance(d, Evict)]


def growing(quota: int, *, to: int, nodes: int = 3, **changes: object) -> World:
    """Four pods that run on node 1, and a copy with ``to`` pods."""
    made = world().nodes(nodes).queue("cq", quota, None, **changes)
    made.running("old", "cq", pods(4), on={ONE: 4})
    return made.pending("new", "cq", pods(to), replaces="old")


def test_a_copy_keeps_the_pods_that_run_and_asks_for_the_others_only():
    plan = plan_of(growing(6, to=6))
    admit = admit_of(plan, "new")
    assert admit.replaces == "old"
    (assignment,) = admit.assignments
    assert assignment.count == 6
    assert assignment.nodes == {ONE: 4, TWO: 2}
    assert evicted(plan) == []


def test_the_original_is_charged_until_then_and_nothing_is_charged_twice():
    """T6: 4 of 6 GPUs run, the copy needs 6: with 5 it waits, and nobody got the others."""
    simulator = Simulator(growing(5, to=6).build())
    simulator.run()
    assert simulator.admitted() == {"old"}
    simulator.snapshot = replace(growing(6, to=6).build(), memory=simulator.snapshot.memory)
    simulator.run()
    assert simulator.admitted() == {"new"}
    assert sum(held_usage(w)[H100] for w in simulator.snapshot.workloads) == 6


def test_nobody_else_gets_what_the_copy_takes_in_the_same_cycle():
    made = growing(6, to=6)
    made.pending("late", "cq", gpus=1)
    plan = plan_of(made)
    assert admit_of(plan, "new").replaces == "old"
    assert hold_of(plan, "late")


def test_why_a_copy_waits_is_told_by_the_difference():
    hold = hold_of(plan_of(growing(5, to=6)), "new")
    (quota, *_) = [b for b in hold.blockers if b.code is BlockerCode.QUOTA_NOMINAL]
    assert (quota.needed, quota.available) == (2, 1)


def test_a_copy_borrows_what_lies_above_nominal():
    made = world().nodes(3).queue("cq", 4, borrow=4).queue("lender", 4)
    made.running("old", "cq", pods(4), on={ONE: 4}).pending("new", "cq", pods(6), replaces="old")
    assert admit_of(plan_of(made), "new").borrows == {GPU: 2}


def test_further_pods_get_the_flavor_of_the_others_or_none():
    made = world()
    made.flavors = {n: Flavor(n, {"tier": n}) for n in ("first", "second")}
    made.node_list = [
        replace(node(1, 8), labels={"tier": "first"}),
        replace(node(2, 8), labels={"tier": "second"}),
    ]
    quotas = (FlavorQuotas("first", {GPU: Quota(8)}), FlavorQuotas("second", {GPU: Quota(5)}))
    made.queue("cq", cohort=None, groups=(ResourceGroup((GPU,), quotas),))
    made.running("old", "cq", pods(4), on={TWO: 4}, flavor="second")
    made.pending("new", "cq", pods(5), replaces="old")
    admit = admit_of(plan_of(made), "new")
    assert [a.flavors for a in admit.assignments] == [{GPU: "second"}]
    assert admit.assignments[0].nodes == {TWO: 5}
    made.workloads[-1] = replace(made.workloads[-1], pod_sets=(pods(6),))
    assert hold_of(plan_of(made), "new")  # although the first flavor has eight


def test_further_pods_join_the_required_domain_of_the_others():
    made = world().topology().nodes(4).queue("cq", 16, None)
    together = pods(4, topology=required(RACK))
    made.running("old", "cq", together, on={ONE: 4})
    made.pending("new", "cq", replace(together, count=8), replaces="old")
    assert admit_of(plan_of(made), "new").assignments[0].nodes == {ONE: 4, TWO: 4}
    made.workloads[-1] = replace(made.workloads[-1], pod_sets=(replace(together, count=9),))
    assert hold_of(plan_of(made), "new")  # rack 1 has room, but it is another rack


def test_new_pod_sets_are_asked_for_whole():
    made = world().nodes(2).queue("cq", 8, None)
    made.running("old", "cq", pods(4), on={ONE: 4})
    made.pending("new", "cq", pods(4), pods(2, 1, "extra"), replaces="old")
    admit = admit_of(plan_of(made), "new")
    assert [(a.pod_set, a.count, a.nodes) for a in admit.assignments] == [
        ("main", 4, {ONE: 4}),
        ("extra", 2, {TWO: 2}),
    ]


def test_a_copy_that_shrank_starts_at_once_and_leaves_the_fewest():
    made = world().nodes(2).queue("cq", 6, None)
    made.running("old", "cq", pods(6), on={ONE: 4, TWO: 2})
    made.pending("new", "cq", pods(4), replaces="old")
    assert admit_of(plan_of(made), "new").assignments[0].nodes == {ONE: 4}


def test_finished_pods_of_the_original_are_not_asked_for_again():
    made = world().queue("cq", 6, None)
    made.running("old", "cq", pods(4), reclaimable={"main": 2})
    made.pending("new", "cq", pods(6), replaces="old")
    simulator = Simulator(made.build())
    simulator.run()
    (new,) = simulator.snapshot.workloads
    assert [a.count for a in standing(new)] == [4]


def test_a_copy_may_evict_others_for_the_difference_but_never_its_original():
    made = growing(6, to=6, preemption=RECLAIM_LOWER)
    made.running("other", "cq", gpus=2, priority=1, on={TWO: 1})
    made.workloads[1] = replace(made.workloads[1], priority=9)
    simulator = Simulator(made.build())
    simulator.run()
    assert simulator.evictions == [("other", "new")]
    assert simulator.admitted() == {"new"}
    lonely = growing(5, to=6, preemption=RECLAIM_LOWER)
    lonely.workloads[1] = replace(lonely.workloads[1], priority=9)
    assert evicted(plan_of(lonely)) == []


def test_what_was_kept_for_the_difference_is_worthless_once_the_original_is_gone():
    made = growing(8, to=6, preemption=RECLAIM_LOWER)
    where = charged_on(TWO, 2)
    made.memory = Memory(claims=(Claim("new", where, (), 9e9),))
    assert admit_of(plan_of(made), "new").assignments[0].nodes == {ONE: 4, TWO: 2}
    made.workloads = [w for w in made.workloads if w.key == "new"]
    admit = admit_of(plan_of(made), "new")
    assert admit.replaces == ""
    assert admit.assignments[0].count == 6


def charged_on(name: str, count: int):
    made = world().running("x", "cq", pods(count), on={name: count})
    admission = made.workloads[0].admission
    assert admission is not None
    return admission.assignments


@pytest.mark.parametrize(
    "change", ["finished", "releasing", "evicted now", "other queue", "other pods"]
)
def test_without_a_running_original_all_pods_are_asked_for(change):
    made = growing(8, to=6)
    old = made.workloads[0]
    if change == "finished":
        made.workloads.pop(0)
    elif change == "releasing":
        made.workloads[0] = replace(old, releasing=True)
    elif change == "evicted now":
        made.workloads[0] = replace(old, blocked=BlockerCode.QUEUE_STOPPED)
    elif change == "other queue":
        made.queue("other", 8, None)
        made.workloads[0] = replace(old, queue="other")
    else:
        made.workloads[0] = replace(old, pod_sets=(pods(4, 2),))
    plan = plan_of(made)
    admits = [d for d in plan.decisions if isinstance(d, Admit)]
    if change in ("finished", "other queue"):
        assert [(a.replaces, a.assignments[0].count) for a in admits] == [("", 6)]
    else:
        assert admits == []  # six more do not fit beside four that still stand


def test_of_two_copies_one_replaces_and_the_other_asks_for_all():
    made = growing(6, to=5).pending("second", "cq", pods(6), replaces="old")
    plan = plan_of(made)
    assert admit_of(plan, "new").replaces == "old"
    assert hold_of(plan, "second")


def test_work_outside_every_queue_grows_too():
    made = world().nodes(2).running("old", None, pods(4), on={ONE: 4})
    made.pending("new", None, pods(6), replaces="old")
    admit = admit_of(plan_of(made), "new")
    assert (admit.replaces, admit.assignments[0].nodes) == ("old", {ONE: 4, TWO: 2})


def test_an_original_on_a_cordoned_node_stays_there_and_grows_elsewhere():
    made = growing(8, to=6)
    made.node_list[0] = replace(made.node_list[0], schedulable=False)
    assert admit_of(plan_of(made), "new").assignments[0].nodes == {ONE: 4, TWO: 2}


def test_a_copy_in_a_stopped_queue_waits_and_its_original_runs_on():
    plan = plan_of(growing(8, to=6, stop_policy=StopPolicy.HOLD))
    assert hold_of(plan, "new")
    assert evicted(plan) == []


def test_copies_of_different_originals_are_not_parked_with_each_other():
    """The first copy may evict the second one's original, but not the other way round."""
    made = world().queue("cq", 4, None, preemption=RECLAIM_LOWER)
    made.running("old-a", "cq", pods(2), priority=5).running("old-b", "cq", pods(2), priority=1)
    made.pending("new-b", "cq", pods(4), priority=3, replaces="old-b")
    made.pending("new-a", "cq", pods(4), priority=3, replaces="old-a")
    assert evicted(plan_of(made)) == ["old-b"]


# -- the kueue profile -------------------------------------------------------------------------
def round_of(made: World):
    return decide_heads(made.build(), Profile.kueue())


def test_the_kueue_profile_admits_a_copy_for_the_difference():
    (entry,) = round_of(growing(6, to=6)).entries
    assert entry.outcome is HeadOutcome.ADMITTED
    assert entry.replaces == "old"
    assert [a.count for a in entry.assignments] == [6]
    assert entry.nomination.usage[H100] == 2


def test_the_kueue_profile_never_makes_an_original_the_victim_of_its_copy():
    any_ = replace(RECLAIM_LOWER, within_cluster_queue=WithinClusterQueue.LOWER_PRIORITY)
    made = growing(5, to=6, preemption=any_)
    made.workloads[1] = replace(made.workloads[1], priority=9)
    (entry,) = round_of(made).entries
    assert entry.outcome is not HeadOutcome.PREEMPTING


@pytest.mark.parametrize(
    ("priority", "copy", "rival"),
    [
        (9, HeadOutcome.ADMITTED, HeadOutcome.SKIPPED),  # the copy first: nobody left to evict
        (3, HeadOutcome.SKIPPED, HeadOutcome.PREEMPTING),  # the rival first: nobody to replace
    ],
)
def test_the_kueue_profile_evicts_or_replaces_but_not_both(priority, copy, rival):
    borrowing = replace(RECLAIM_LOWER, borrow_within_cohort=BorrowWithinCohort.LOWER_PRIORITY)
    made = world().queue("a", 4).queue("b", 2, preemption=borrowing).queue("c", 4)
    made.running("old", "a", pods(6))
    made.pending("new", "a", pods(7), replaces="old", priority=priority)
    made.pending("rival", "b", pods(6), priority=5)
    outcomes = {e.workload.key: e.outcome for e in round_of(made).entries}
    assert outcomes == {"new": copy, "rival": rival}


# -- laws --------------------------------------------------------------------------------------
@settings(max_examples=40, deadline=None)
@given(worlds(), st.data())
def test_copies_of_running_work_keep_every_law(snapshot: Snapshot, data):
    """Run a world to rest, let some of it grow, and run on: nothing is charged twice."""
    simulator = Simulator(snapshot)
    simulator.run()
    running = sorted(simulator.admitted())
    grown = data.draw(st.lists(st.sampled_from(running), unique=True)) if running else []
    known = {w.key: w for w in simulator.snapshot.workloads}
    for key in grown:
        work = known[key]
        more = tuple(
            replace(p, count=max(1, p.count + data.draw(st.integers(-1, 2))))
            for p in work.pod_sets
        )
        simulator.submit(replace(work, key=f"{key}+", pod_sets=more, admission=None, replaces=key))
    simulator.run()
    for work in simulator.snapshot.workloads:
        if work.admission is not None:
            counts = [a.count for a in work.admission.assignments]
            assert counts == [p.count for p in work.pod_sets]
            assert charged(work, work.admission.assignments) == held_usage(work)


@pytest.mark.parametrize("fairness", list(Fairness))
def test_the_original_of_a_copy_that_has_evicted_is_nobodys_victim_in_that_cycle(fairness):
    """Else what the copy's victim leaves would be kept for a difference that is gone."""
    made = world().queue("a", 2, "co", preemption=RECLAIM_ANY)
    made.queue("b", 2, "co", preemption=RECLAIM_ANY)
    made.running("low", "b", pods(1), priority=1).running("orig", "b", pods(3), priority=2)
    made.pending("copy", "b", pods(4), priority=2, replaces="orig")
    made.pending("owner", "a", pods(3))
    snapshot = replace(made.build(), cohorts={"co": Cohort("co", fairness=fairness)})
    plan = decide(snapshot)
    assert violations(snapshot, plan) == ()
    preemptors = {d.preemptor for d in plan.decisions if isinstance(d, Evict)}
    assert preemptors != {"copy", "owner"}
