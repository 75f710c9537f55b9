"""Who loses for whom in a tree that shares, and that nobody alternates."""

from dataclasses import replace

import pytest

from scheduling.engine.cycle import decide
from scheduling.engine.plan import Admit, Evict
from scheduling.engine.snapshot import Preemption, Quota, Snapshot
from scheduling.engine.terms import (
    Fairness,
    FairStrategy,
    PreemptionReason,
    ReclaimWithinCohort,
    WithinClusterQueue,
)
from tests.engine.builders import H100, RECLAIM_ANY, World, pods, world
from tests.engine.simulator import Simulator

SHARE, HISTORY, NONE = Fairness.SHARE, Fairness.HISTORY, Fairness.NONE
FINAL, INITIAL = FairStrategy.FINAL_SHARE, FairStrategy.INITIAL_SHARE
FOREIGN = Preemption(reclaim_within_cohort=ReclaimWithinCohort.ANY)


def evictions(snapshot: Snapshot) -> list[tuple[str, PreemptionReason]]:
    return [(d.workload, d.right) for d in decide(snapshot).decisions if isinstance(d, Evict)]


def t1(fairness: Fairness) -> World:
    """Kueue #10131: twelve GPUs, all used by the spot queues of three cohorts."""
    made = world().nodes(3).cohort("root", fairness=fairness)
    for number, (name, guaranteed, priority) in enumerate(
        (("a", 2, 9), ("b", 2, 5), ("c", 8, 1)), 1
    ):
        made.cohort(name, "root")
        made.queue(f"{name}-guar", guaranteed, name, borrow=0, preemption=RECLAIM_ANY)
        made.queue(f"{name}-spot", 0, name)
        node = {f"h100-node-{number:02d}": 1}
        made.running(f"{name}-job", f"{name}-spot", gpus=4, on=node, priority=priority)
    return made.pending("wanted", "c-guar", gpus=4)


@pytest.mark.parametrize(
    ("fairness", "victim"), [(SHARE, "b-job"), (HISTORY, "b-job"), (NONE, "c-job")]
)
def test_one_victim_and_always_the_same(fairness, victim) -> None:
    """T1: A and B hold the same share and B's job is less urgent; classic: the least urgent."""
    snapshot = t1(fairness).build()
    orders = [snapshot.workloads[n:] + snapshot.workloads[:n] for n in range(4)] * 5
    for order in orders:
        cohorts = dict(reversed(snapshot.cohorts.items()))
        turned = replace(snapshot, workloads=order, cohorts=cohorts)
        assert evictions(turned) == [(victim, PreemptionReason.IN_COHORT_RECLAMATION)]
    sim = Simulator(snapshot)
    sim.run()
    assert sim.admitted() == {"a-job", "b-job", "c-job", "wanted"} - {victim}


def shared(gpus: int = 8, rights: Preemption = FOREIGN, **changes: object) -> World:
    made = world().nodes(gpus // 4).cohort("llm", nominal=gpus, fairness=SHARE)
    return made.queue("cq-a", preemption=rights, **changes).queue("cq-b", preemption=rights)


def fill(made: World, queue: str, *sizes: int, priority: int = 0) -> World:
    """Running work on the first node with room, so many GPUs each."""
    for gpus in sizes:
        free = dict.fromkeys((node.name for node in made.node_list), 4)
        for work in made.workloads:
            for assignment in work.admission.assignments if work.admission else ():
                for name in assignment.nodes:
                    free[name] -= work.pod_sets[0].requests["nvidia.com/gpu"]
        node = next(name for name, left in sorted(free.items()) if left >= gpus)
        key = f"{queue}-{len(made.workloads)}"
        made.running(key, queue, gpus=gpus, on={node: 1}, priority=priority)
    return made


def test_who_holds_less_takes_back_until_the_shares_meet() -> None:
    made = fill(shared(), "cq-a", *[1] * 8)
    for number in range(8):
        made.pending(f"b-{number}", "cq-b")
    sim = Simulator(made.build())
    sim.run()
    held = [key for key in sim.admitted() if key.startswith("b-")]
    assert len(held) == 4
    assert {p for _, p in sim.evictions} == set(held)


@pytest.mark.parametrize(("weight", "held"), [(3.0, 2), (0.0, 8)])
def test_what_is_fair_depends_on_the_weight_of_who_gives(weight, held) -> None:
    """A with weight 3 keeps 6 of 8; without weight it keeps nothing that B wants."""
    made = fill(shared(fair_weight=weight), "cq-a", *[1] * 8)
    for number in range(8):
        made.pending(f"b-{number}", "cq-b")
    sim = Simulator(made.build())
    sim.run()
    assert sum(key.startswith("b-") for key in sim.admitted()) == held


def test_a_queue_without_weight_takes_from_nobody() -> None:
    made = fill(shared(fair_weight=0.0), "cq-b", *[1] * 8).pending("a", "cq-a", priority=99)
    assert evictions(made.build()) == []


def test_nominal_quota_comes_back_whatever_the_shares() -> None:
    made = world().nodes(2).cohort("llm", nominal=4, fairness=SHARE)
    made.queue("cq-a", 4, preemption=FOREIGN, fair_weight=0.0).queue("cq-b", fair_weight=100.0)
    fill(made, "cq-b", 4, 4).pending("a", "cq-a", gpus=4)
    assert evictions(made.build()) == [("cq-b-1", PreemptionReason.IN_COHORT_RECLAMATION)]


def test_reclaim_never_means_never() -> None:
    made = fill(shared(rights=Preemption()), "cq-a", 4, 4).pending("b", "cq-b", priority=9)
    assert evictions(made.build()) == []


def test_borrow_within_cohort_is_not_looked_at() -> None:
    """Lower priority alone is no right here: A holds 4, B would hold 8."""
    made = world().nodes(2).cohort("llm", nominal=8, fairness=SHARE)
    lower = Preemption(
        reclaim_within_cohort=ReclaimWithinCohort.ANY, borrow_within_cohort="LowerPriority"
    )
    made.queue("cq-a").queue("cq-b", preemption=lower)
    fill(fill(made, "cq-a", 4), "cq-b", 4).pending("b", "cq-b", gpus=4, priority=9)
    assert evictions(made.build()) == []


def test_nobody_goes_unless_the_whole_gang_is_placed() -> None:
    """The share would allow it, but no node has four GPUs together afterwards."""
    made = shared()
    for number in (1, 2):
        node = {f"h100-node-{number:02d}": 1}
        made.running(f"a-{number}", "cq-a", gpus=2, on=node)
        made.running(f"x-{number}", "cq-a", gpus=2, on=node, preemptible=False)
    made.pending("b", "cq-b", gpus=4)
    assert evictions(made.build()) == []


def test_who_is_not_needed_after_all_keeps_running() -> None:
    """The cheap one is taken first, but it is the other node that makes room."""
    made = shared()
    made.running("x", "cq-a", gpus=2, on={"h100-node-01": 1}, preemptible=False)
    made.running("cheap", "cq-a", gpus=1, on={"h100-node-01": 1})
    made.running("dear", "cq-a", gpus=4, on={"h100-node-02": 1}).pending("b", "cq-b", gpus=4)
    assert evictions(made.build()) == [("dear", PreemptionReason.IN_COHORT_FAIR_SHARING)]


def own_and_foreign() -> World:
    """Two teams of one pool that may evict at home and abroad."""
    both = Preemption(
        within_cluster_queue=WithinClusterQueue.LOWER_PRIORITY,
        reclaim_within_cohort=ReclaimWithinCohort.ANY,
    )
    made = world().nodes(2).cohort("llm", nominal=8, fairness=SHARE)
    return made.queue("cq-a", preemption=both).queue("cq-b", preemption=both)


@pytest.mark.parametrize("strategies", [(), (FINAL,), (INITIAL,)])
@pytest.mark.parametrize("sizes", [(4, 3), (2, 1)])
def test_two_teams_with_work_of_all_priorities_never_alternate(strategies, sizes) -> None:
    made = own_and_foreign()
    for number, gpus in enumerate([*sizes, *sizes, 1, 2]):
        for team in ("a", "b"):
            made.pending(f"{team}-{number}", f"cq-{team}", gpus=gpus, priority=number % 3)
    snapshot = replace(made.build(), fair_strategies=strategies)
    sim = Simulator(replace(snapshot, workloads=()))
    for start in range(0, len(snapshot.workloads), 2):
        sim.submit(*snapshot.workloads[start : start + 2])
        for _ in range(5):
            sim.step()
    for _ in range(50):
        sim.step()
    pairs = set(sim.evictions)
    assert not {(p, v) for v, p in pairs} & pairs
    assert sim.run() == 0, "the world is at rest"


@pytest.mark.parametrize(("preemptible", "victims"), [(False, set()), (True, {"b-low", "a-1"})])
def test_a_plan_that_ends_unfair_is_dropped(preemptible, victims) -> None:
    """Kueue #14543: without its own work B looks poor enough to take A's four GPUs; once its own
    is given back it holds six of eight, and A would strike back. Another plan may still do."""
    made = own_and_foreign().running("a-4", "cq-a", gpus=4, on={"h100-node-01": 1})
    on = {"h100-node-02": 1}
    made.running("a-1", "cq-a", gpus=1, on=on, priority=1, preemptible=preemptible)
    made.running("b-low", "cq-b", gpus=2, on=on).running("b-1", "cq-b", on=on, priority=9)
    made.pending("b-new", "cq-b", gpus=3, priority=5)
    snapshot = replace(made.build(), fair_strategies=(INITIAL,))
    assert {key for key, _ in evictions(snapshot)} == victims


def test_who_starts_after_an_eviction_is_the_preemptor() -> None:
    made = fill(shared(), "cq-a", 4, 4).pending("b", "cq-b", gpus=4)
    sim = Simulator(made.build())
    sim.run()
    assert sim.admitted() == {"b", "cq-a-0"}
    assert [d for d in sim.plan.decisions if isinstance(d, Admit)] == []


def test_whoever_borrows_takes_loans_and_nobodys_own_quota() -> None:
    """Bio owns 4 of 12 GPUs and holds 9. Without its big job it would hold 3: one of its own less.

    By share alone the less urgent big one would go (Kueue does so).
    """
    made = world().cohort("llm", nominal=8, fairness=SHARE)
    made.queue("bio", 4, preemption=FOREIGN).queue("speech", 0, preemption=FOREIGN)
    made.running("big", "bio", pods(6)).running("small", "bio", pods(3), priority=5)
    made.running("talk", "speech", pods(3)).pending("quick", "speech", pods(1), priority=9)
    assert evictions(made.build()) == [("small", PreemptionReason.IN_COHORT_FAIR_SHARING)]
    without = replace(made.build(), workloads=tuple(w for w in made.workloads if w.key != "small"))
    alone = replace(
        without, cohorts={"llm": replace(without.cohorts["llm"], quotas={H100: Quota(5)})}
    )
    assert evictions(alone) == [], "one job of 6 on a quota of 4 is no loan of 2 that can be taken"


@pytest.mark.parametrize("mode", [SHARE, HISTORY])
def test_an_eviction_by_share_carries_the_figures_that_were_compared(mode) -> None:
    """8 GPUs that all may borrow: 4 asked for against 8 held, of which one gives back 4."""
    made = fill(shared(), "cq-a", 4, 4).pending("b", "cq-b", gpus=4)
    snapshot = made.build()
    by = {"llm": replace(snapshot.cohorts["llm"], fairness=mode)}
    found = [d for d in decide(replace(snapshot, cohorts=by)).decisions if isinstance(d, Evict)]
    assert [d.shares for d in found] == [(500.0, 1000.0, 500.0)]


def test_an_eviction_by_priority_compares_no_shares() -> None:
    found = [d for d in decide(t1(NONE).build()).decisions if isinstance(d, Evict)]
    assert [d.shares for d in found] == [None]
