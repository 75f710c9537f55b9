"""Who loses for whom, and that it comes to rest."""

from dataclasses import replace

from scheduling.engine.cycle import decide
from scheduling.engine.holds import Holds
from scheduling.engine.machines import CPU, GPU
from scheduling.engine.plan import Admit, Evict, Hold
from scheduling.engine.snapshot import (
    Assignment,
    Claim,
    FlavorQuotas,
    Memory,
    Preemption,
    Quota,
    ResourceGroup,
)
from scheduling.engine.state import State
from scheduling.engine.terms import (
    BlockerCode,
    BorrowWithinCohort,
    EvictionReason,
    PendingReason,
    PreemptionReason,
    ReclaimWithinCohort,
    WithinClusterQueue,
)
from scheduling.engine.tree import queue_key
from scheduling.engine.view import quota_rows
from tests.engine.builders import RECLAIM_ANY, RECLAIM_LOWER, World, pods, three_teams, world
from tests.engine.simulator import Simulator

NODE = {"h100-node-01": 1}


def evicted(made: World) -> list[str]:
    plan = Simulator(made.build())
    plan.step()
    return [d.workload for d in plan.plan.decisions if isinstance(d, Evict)]


def datos_borrows(preemption: Preemption = RECLAIM_LOWER) -> World:
    made = three_teams(preemption)
    for number in range(4):
        made.running(f"datos-{number}", "cq-datos", on=NODE)
    return made


def test_the_story_of_the_three_teams() -> None:
    sim = Simulator(datos_borrows().pending("web", "cq-plataforma", priority=10).build())

    sim.step()  # Plataforma wants its GPU back: the newest borrower of Datos goes
    evict, hold = sim.plan.decisions
    right, lost = PreemptionReason.IN_COHORT_RECLAMATION, (1010 - 203) / 3600
    assert evict == Evict("datos-3", EvictionReason.PREEMPTED, "web", right, lost)
    assert isinstance(hold, Hold)
    assert hold.reason is PendingReason.WAITING_FOR_PREEMPTED_WORKLOADS
    (claim,) = sim.plan.memory.claims
    assert (claim.workload, claim.victims) == ("web", ("datos-3",))
    assert claim.assignments[0].nodes == NODE

    sim.step()  # its pods are gone: the claim becomes an admission, not a place for the victim
    assert sim.admitted() == {"datos-0", "datos-1", "datos-2", "web"}
    assert sim.plan.memory.claims == ()

    sim.run()  # the victim waits in peace
    assert sim.evictions == [("datos-3", "web")]

    sim.finish("web")
    sim.step()  # quota frees: Datos borrows again
    assert sim.admitted() == {f"datos-{number}" for number in range(4)}
    (admit,) = [d for d in sim.plan.decisions if isinstance(d, Admit)]
    assert admit.borrows == {GPU: 1}


def test_without_a_preemption_section_plataforma_waits() -> None:
    made = datos_borrows(Preemption()).pending("web", "cq-plataforma", priority=10)
    plan = decide(made.build())
    (hold,) = plan.decisions
    assert isinstance(hold, Hold)
    assert hold.reason is PendingReason.WAITING_FOR_QUOTA
    assert hold.blockers[0].code is BlockerCode.COHORT_EXHAUSTED
    assert hold.blockers[0].facts["holders"] == "cq-datos: 4"


def test_of_very_many_holders_those_with_most_are_named_and_the_others_summed_up() -> None:
    made = world()
    for number in range(25):
        made.queue(f"cq-{number:02}", 1).running(
            f"w{number}", f"cq-{number:02}", gpus=1 + number % 2
        )
    plan = decide(made.queue("cq-last", 25).pending("late", "cq-last", gpus=25).build())
    (hold,) = (d for d in plan.decisions if isinstance(d, Hold))
    said = str(hold.blockers[-1].facts["holders"]).split(", ")
    assert len(said) == 21
    assert said[:2] == ["cq-01: 2", "cq-03: 2"]
    assert said[-1] == "+5: 5"


def test_lower_priority_evicts_nobody_of_the_same_priority() -> None:
    assert evicted(datos_borrows().pending("web", "cq-plataforma")) == []


def test_any_takes_the_newest_of_the_least_urgent() -> None:
    made = three_teams(RECLAIM_ANY)
    made.running("old", "cq-datos", on=NODE, at=1.0).running("new", "cq-datos", on=NODE, at=9.0)
    made.running("vip", "cq-datos", gpus=2, on=NODE, at=99.0, priority=9)
    assert evicted(made.pending("web", "cq-plataforma")) == ["new"]


def test_who_is_within_its_own_quota_is_safe() -> None:
    made = three_teams(RECLAIM_ANY).running("d", "cq-datos", gpus=2, on=NODE)
    made.running("p", "cq-plataforma", gpus=2, on=NODE).pending("web", "cq-ia", priority=9)
    assert evicted(made) == ["p"]


def test_protected_work_is_no_candidate() -> None:
    made = datos_borrows(RECLAIM_ANY)
    made.workloads = [replace(w, preemptible=False) for w in made.workloads]
    assert evicted(made.pending("web", "cq-plataforma", priority=9)) == []


def test_a_queue_that_is_not_reclaimable_keeps_its_loan() -> None:
    made = datos_borrows(RECLAIM_ANY)
    made.queues["cq-datos"] = replace(made.queues["cq-datos"], reclaimable=False)
    assert evicted(made.pending("web", "cq-plataforma", priority=9)) == []


def own_queue(policy: WithinClusterQueue) -> World:
    rights = Preemption(within_cluster_queue=policy)
    return world().nodes(1).queue("cq", 4, None, preemption=rights)


def test_within_the_queue_policies() -> None:
    lower, newer = (
        WithinClusterQueue.LOWER_PRIORITY,
        WithinClusterQueue.LOWER_OR_NEWER_EQUAL_PRIORITY,
    )
    for policy, priority, created_at, want in [
        (WithinClusterQueue.NEVER, 9, 0.0, []),
        (lower, 1, 900.0, ["r"]),
        (lower, 0, 0.0, []),
        (newer, 0, 0.0, ["r"]),
        (newer, 0, 900.0, []),
    ]:
        made = own_queue(policy).running("r", "cq", gpus=4, on=NODE)
        made.pending("p", "cq", gpus=2, priority=priority, created_at=created_at)
        assert evicted(made) == want, (policy, priority, created_at)


def test_no_useless_eviction() -> None:
    """T7: eight evictions on four nodes would still not make room for one pod of eight."""
    made = world().nodes(4, gpus=8).queue("cq", 32, None, preemption=RECLAIM_LOWER)
    for number in range(1, 5):
        on = f"h100-node-{number:02d}"
        made.running(f"high-{number}", "cq", pods(6), priority=9, on={on: 6})
        for low in "ab":
            made.running(f"low-{number}{low}", "cq", on={on: 1})
    made.pending("whole", "cq", gpus=8, priority=9).pending("one", "cq", priority=9)
    sim = Simulator(made.build())
    sim.run()
    assert [preemptor for _, preemptor in sim.evictions] == ["one"]
    assert "one" in sim.admitted()
    assert "whole" not in sim.admitted()


def test_only_as_many_as_needed_and_the_rest_is_given_back() -> None:
    made = world().nodes(1).queue("a", 4, preemption=RECLAIM_ANY).queue("b", 0)
    made.running("small", "b", gpus=1, on=NODE, at=9.0).running(
        "large", "b", gpus=3, on=NODE, at=1.0
    )
    assert evicted(made.pending("p", "a", gpus=3)) == ["large"]


def test_work_that_is_already_leaving_counts_as_room() -> None:
    made = world().nodes(1).queue("cq", 4, None, preemption=RECLAIM_LOWER)
    made.running("leaving", "cq", gpus=2, on=NODE, releasing=True)
    made.running("stays", "cq", gpus=2, on=NODE).pending("p", "cq", gpus=2, priority=9)
    snapshot = made.build()
    (hold,) = decide(snapshot).decisions
    assert isinstance(hold, Hold)
    assert hold.reason is PendingReason.WAITING_FOR_PREEMPTED_WORKLOADS
    assert hold.blockers[0].facts["releasing"] == "leaving"


def test_what_is_claimed_is_kept_while_victims_leave_one_by_one() -> None:
    """Kueue #13797: the first hole must not be refilled."""
    made = world().nodes(1).queue("a", 4, preemption=RECLAIM_ANY).queue("b", 0)
    for number in range(4):
        made.running(f"b{number}", "b", on=NODE)
    sim = Simulator(made.pending("a4", "a", gpus=4).build(), leave_after=3)
    sim.step()
    sim.leaving["b0"] = 0  # one leaves at once
    sim.submit(replace(sim.snapshot.workloads[0], key="thief", admission=None, releasing=False))
    for _ in range(2):
        sim.step()
        assert "thief" not in sim.admitted()
    (hold,) = [d for d in sim.plan.decisions if isinstance(d, Hold) and d.workload == "thief"]
    assert hold.blockers[0].code is BlockerCode.CLAIMED
    sim.run()
    assert sim.admitted() == {"a4"}


def test_only_the_claim_that_stands_in_the_way_is_named() -> None:
    """Two trees wait for their victims on the same pool; a third queue waits for one of them."""
    made = world().nodes(3).queue("a", 4, preemption=RECLAIM_ANY).queue("b", 0)
    made.queue("c", 4, "vision", preemption=RECLAIM_ANY).queue("d", 0, "vision")
    made.running("b4", "b", gpus=4, on=NODE).running("d4", "d", gpus=4, on={"h100-node-02": 1})
    sim = Simulator(made.pending("a4", "a", gpus=4).pending("c4", "c", gpus=4).build())
    sim.step()
    assert {claim.workload for claim in sim.plan.memory.claims} == {"a4", "c4"}
    gone = tuple(w for w in sim.snapshot.workloads if w.key not in {"b4", "d4"})
    thief = replace(gone[0], key="thief", queue="b", admission=None, created_at=1.0, priority=-1)
    claims = Memory(claims=sim.plan.memory.claims)
    holds = Holds(State(replace(sim.snapshot, workloads=(*gone, thief), memory=claims)))
    (hold,) = [one for one in holds if one.workload == "thief"]
    (claimed,) = [one for one in hold.blockers if one.code is BlockerCode.CLAIMED]
    assert claimed.facts == {"claimants": "a4"}


def test_a_claim_ends_with_time_or_when_its_workload_is_withdrawn() -> None:
    made = world().nodes(1).queue("a", 4, preemption=RECLAIM_ANY).queue("b", 0)
    made.running("b4", "b", gpus=4, on=NODE).pending("a4", "a", gpus=4).pending("b1", "b")
    sim = Simulator(made.build())
    sim.step()
    claimed = sim.snapshot
    assert claimed.memory.claims[0].expires_at == claimed.now + 600
    sim.finish("a4")
    sim.step()
    assert sim.plan.memory.claims == ()
    late = replace(
        claimed,
        now=claimed.now + 700,
        workloads=tuple(w for w in claimed.workloads if w.key != "b4"),
        cluster_queues={
            **claimed.cluster_queues,
            "a": replace(claimed.cluster_queues["a"], inactive="x"),
        },
    )
    assert decide(late).memory.claims == ()


def test_a_preemptor_is_never_evicted_by_its_victim() -> None:
    rights = Preemption(
        WithinClusterQueue.LOWER_PRIORITY, ReclaimWithinCohort.ANY, BorrowWithinCohort.NEVER
    )
    made = world().nodes(1).queue("a", 2, preemption=rights).queue("b", 2, preemption=rights)
    made.running("a3", "a", gpus=3, on=NODE).pending("b2", "b", gpus=2)
    made.memory = Memory(evicted_by=(("b2", "a3"),))
    assert evicted(made) == []
    made.memory = Memory()
    assert evicted(made) == ["a3"]


def test_reclaim_while_borrowing_needs_the_policy_and_the_threshold() -> None:
    for threshold, want in [(None, ["c"]), (0, ["c"]), (-1, [])]:
        rights = Preemption(
            reclaim_within_cohort=ReclaimWithinCohort.LOWER_PRIORITY,
            borrow_within_cohort=BorrowWithinCohort.LOWER_PRIORITY,
            max_priority_threshold=threshold,
        )
        made = world().nodes(1).queue("a", 0, preemption=rights).queue("b", 4).queue("c", 0)
        made.running("c", "c", gpus=4, on=NODE).pending("p", "a", gpus=2, priority=9)
        assert evicted(made) == want, threshold


def test_the_better_right_in_the_tree_is_hierarchical() -> None:
    """``FORMAT`` 7.1: the own cohort's quota suffices, so the foreign cohort must give back."""
    made = world().nodes(1).cohort("root").cohort("x", "root", nominal=4).cohort("y", "root")
    made.queue("a", 0, "x", preemption=RECLAIM_ANY).queue("b", 0, "y")
    made.running("b4", "b", gpus=4, on=NODE)
    assert evicted(made.pending("p", "a", gpus=4)) == ["b4"]


def test_pages_show_the_debt_after_a_cut_and_nobody_is_evicted() -> None:
    made = world().nodes(1).queue("a", 2, None).running("r", "a", gpus=4, on=NODE)
    assert evicted(made) == []
    (row,) = quota_rows(made.build())
    assert (row.name, row.used, row.available) == (queue_key("a").name, 4, -2)


def test_what_a_queue_only_claims_makes_no_victims_in_it() -> None:
    made = world().nodes(2).queue("b", 4).queue("c", 2, preemption=RECLAIM_ANY).queue("d", 0)
    made.running("r", "b", gpus=2, on=NODE)
    made.running("leaver", "d", gpus=3, on={"h100-node-02": 1}, releasing=True)
    made.pending("waits", "b", gpus=3).pending("p", "c", gpus=2, priority=9)
    place = Assignment("main", 1, {GPU: "h100-sxm"}, {"h100-node-02": 1})
    made.memory = Memory(claims=(Claim("waits", (place,), ("leaver",), made.now + 600),))
    assert evicted(made) == []


def test_work_on_nominal_quota_is_safe_whatever_else_its_queue_borrows() -> None:
    def both(gpu: int, cpu: int) -> tuple[ResourceGroup, ...]:
        quotas = {GPU: Quota(gpu), CPU: Quota(cpu * 1000)}
        return (ResourceGroup((GPU, CPU), (FlavorQuotas("h100-sxm", quotas),)),)

    made = world().nodes(1, unmanaged={GPU: 1})
    made.queue("d", groups=both(4, 3)).queue("b", groups=both(4, 12), preemption=RECLAIM_ANY)
    made.running("cpu-loan", "d", pods(1, 1, cpu=6), on=NODE)
    made.running("own-gpus", "d", gpus=2, on=NODE)
    assert evicted(made.pending("p", "b", pods(1, 2, cpu=1), priority=9)) == []
    made.workloads.pop()
    assert evicted(made.pending("p", "b", pods(1, 1, cpu=1), priority=9)) == ["cpu-loan"]
