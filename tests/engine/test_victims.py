"""Who is evicted: no more than needed, nobody who is not short, and what is freed is kept."""

from collections.abc import Iterator
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from scheduling.engine.cycle import advance, decide, plan
from scheduling.engine.flavors import Option
from scheduling.engine.invariants import violations
from scheduling.engine.machines import CPU, GPU, Flavor
from scheduling.engine.patience import Patience
from scheduling.engine.plan import Admit, Decision, Evict, Hold, Plan
from scheduling.engine.preemption import Rescue
from scheduling.engine.queue_rules import MinimumRuntime
from scheduling.engine.snapshot import (
    Cohort,
    FlavorQuotas,
    Preemption,
    Quota,
    ResourceGroup,
    Snapshot,
    Workload,
)
from scheduling.engine.state import State
from scheduling.engine.terms import BorrowWithinCohort, ReclaimWithinCohort, WithinClusterQueue
from tests.engine.builders import (
    H100,
    RECLAIM_ANY,
    RECLAIM_LOWER,
    World,
    columns,
    node,
    pods,
    world,
)
from tests.engine.simulator import Simulator

LAWS = settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))


def rescues(state: State) -> Iterator[tuple[Workload, Rescue]]:
    """Yield whom waiting work would evict, where nothing else helps."""
    for workload in sorted(state.workloads.values(), key=lambda w: w.key):
        open_ = workload.admission is None and workload.queue is not None
        if open_ and state.assigner.assign(workload, state.books.coming) is None:
            rescue = state.preemptor.find(workload, frozenset())
            if rescue is not None:
                yield workload, rescue


def fits_without(state: State, workload: Workload, rescue: Rescue, spared: int) -> bool:
    """Return whether the preemptor fits if all are evicted but one.

    It may not borrow where one of them may only be evicted by those who do not.
    """
    gone = [v for place, v in enumerate(rescue.victims) if place != spared]
    pinned: dict[str, Option] = {a.pod_set: a.flavors for a in rescue.assignments}
    queue, usage = state.books.queue(workload), state.books.charge(workload, rescue.assignments)
    assert queue is not None
    strict = any(not victim.while_borrowing for victim in gone)
    ledger = state.books.soon.ledger
    short = frozenset(fr for fr, n in usage if n > ledger.available(queue, fr))
    nominal_only = (short or frozenset(fr for fr, n in usage if n)) if strict else frozenset()
    with state.books.trial():
        for victim in gone:
            assert victim.workload.admission is not None
            state.books.leave(victim.workload, victim.workload.admission.assignments)
        fits = state.assigner.assign(workload, state.books.coming, pinned, nominal_only)
    return fits is not None


def check_minimal(snapshot: Snapshot) -> int:
    """Return how many rescues were looked at; fail if one of them takes somebody in vain."""
    state, looked = State(snapshot), 0
    for workload, rescue in rescues(state):
        assert fits_without(state, workload, rescue, spared=-1)
        for place, victim in enumerate(rescue.victims):
            spared = fits_without(state, workload, rescue, place)
            assert not spared, f"{workload.key} does not need {victim.workload.key} to go"
        looked += 1
    return looked


@st.composite
def crowded(draw: st.DrawFn) -> Snapshot:
    """Small work of low priority has filled the queues of a tree; larger, urgent work waits."""
    made = world().topology().nodes(draw(st.sampled_from([0, 2, 3, 4])))
    made.cohort("root", nominal=draw(st.integers(0, 2))).cohort("left", "root")
    rights = st.builds(
        Preemption,
        st.just(WithinClusterQueue.LOWER_PRIORITY),
        st.sampled_from([ReclaimWithinCohort.ANY, ReclaimWithinCohort.LOWER_PRIORITY]),
        st.sampled_from(BorrowWithinCohort),
    )
    for name, cohort in (("a", "left"), ("b", "left"), ("c", "root")):
        nominal, limit = draw(st.integers(2, 6)), st.none() | st.integers(0, 4)
        grant = MinimumRuntime(draw(st.sampled_from([0, 0, 30, 100])), draw(st.booleans()))
        changes = {"preemption": draw(rights), "minimum_runtime": grant}
        made.queue(name, nominal, cohort, lend=draw(limit), **changes)
    for number in range(draw(st.integers(4, 12))):
        small = pods(draw(st.integers(1, 2)), 1)
        priority, queue = draw(st.integers(0, 1)), draw(st.sampled_from("abc"))
        made.pending(f"low{number}", queue, small, priority=priority)
    sim = Simulator(made.build())
    sim.run()
    for number in range(3):
        shapes = st.tuples(st.integers(1, 2), st.integers(1, 4))
        names = ("leader", "worker")[: draw(st.sampled_from([1, 2]))]
        sets = [pods(*draw(shapes), name) for name in names]
        made.pending(f"high{number}", draw(st.sampled_from("abc")), *sets, priority=5)
        sim.submit(made.workloads[-1])
    return sim.snapshot


@LAWS
@given(snapshot=crowded())
def test_no_victim_can_be_given_back(snapshot) -> None:
    check_minimal(snapshot)


@pytest.mark.long
@settings(max_examples=3000, deadline=None, suppress_health_check=list(HealthCheck))
@given(snapshot=crowded())
def test_no_victim_can_be_given_back_at_full_size(snapshot) -> None:
    check_minimal(snapshot)


# -- when time alone changes something ---------------------------------------------------------


def moves(plan: Plan) -> list[Decision]:
    return [decision for decision in plan.decisions if not isinstance(decision, Hold)]


def rest(snapshot) -> tuple[Snapshot, Plan]:
    """Play until nothing moves any more; return the world and the last plan."""
    sim = Simulator(snapshot)
    sim.run()
    while sim.step():
        pass
    return sim.snapshot, sim.plan


@LAWS
@given(snapshot=crowded())
def test_time_alone_changes_nothing_before_it_is_time_to_look_again(snapshot) -> None:
    world, plan = rest(snapshot)
    now, again = world.now, plan.look_again_at
    later = [now + 1e7] if again is None else [now + (again - now) * part for part in (0.3, 0.99)]
    for instant in later:
        assert moves(decide(replace(world, now=instant))) == []


@LAWS
@given(snapshot=crowded())
def test_when_it_is_time_to_look_again_something_moves(snapshot) -> None:
    """But for room that is then reserved: whoever waits for it does not move yet."""
    world, plan = rest(replace(snapshot, patience=Patience(after_s=None)))
    again = plan.look_again_at
    if again is not None and not plan.memory.claims:
        assert moves(decide(replace(world, now=again))) != []


@LAWS
@given(snapshot=crowded(), gaps=st.lists(st.sampled_from([1.0, 29.0, 40.0, 700.0]), max_size=6))
def test_a_kept_state_knows_when_protection_and_claims_end(snapshot, gaps) -> None:
    kept, now = State(snapshot), snapshot.now
    for gap in gaps:
        now += gap
        fresh = decide(replace(kept.snapshot(), now=now))
        plan_of_kept = plan(kept, advance(kept, now))
        assert replace(plan_of_kept, work={}) == replace(fresh, work={})
        for leaver in list(kept.releasing.values())[:1]:
            kept.put(replace(leaver, admission=None, releasing=False))


# -- only what is needed, only by right --------------------------------------------------------


def evicted(made: World) -> list[str]:
    return sorted(d.workload for d in decide(made.build()).decisions if isinstance(d, Evict))


def test_nobody_is_evicted_for_somebody_who_would_not_fit_even_then() -> None:
    """Victims by feasibility, the quota part: one GPU of the four is lent for good."""
    made = world().queue("a", 4, preemption=RECLAIM_ANY)
    made.queue("b", 0).queue("c", 0, reclaimable=False)
    made.running("loan", "b", gpus=3).running("lasting", "c", gpus=1)
    assert evicted(made.pending("p", "a", gpus=4, priority=9)) == []
    made.workloads[-1] = replace(made.workloads[-1], pod_sets=(pods(1, 3),))
    assert evicted(made) == ["loan"]


def test_above_nominal_it_borrows_rather_than_evicts_all_of_its_own_queue() -> None:
    """Kueue #1974, with nobody else to evict: two of the four are enough."""
    made = world().queue("a", 4, preemption=RECLAIM_LOWER).queue("b", 2)
    for number in range(4):
        made.running(f"low{number}", "a", at=100.0 + number)
    assert evicted(made.pending("p", "a", gpus=4, priority=9)) == ["low2", "low3"]


def test_whoever_need_not_give_back_others_loans_may_borrow() -> None:
    """Kueue #1974 where loans of others could be taken back only by a queue within nominal.

    Both of its own would have to go for that, but with one gone it fits by borrowing.
    """
    made = world().queue("a", 3, preemption=RECLAIM_LOWER).queue("b", 0).queue("c", 4)
    for number in range(2):
        made.running(f"own{number}", "a", at=100.0 + number)
    for number in range(3):
        made.running(f"loan{number}", "b", at=50.0 + number)
    assert evicted(made.pending("p", "a", gpus=3, priority=9)) == ["own1"]


def test_never_means_never() -> None:
    """Kueue #3210: whatever the priorities, whatever lies idle or is borrowed elsewhere."""
    never = Preemption()
    made = world().queue("a", 4, preemption=never).queue("b", 0, preemption=never)
    made.running("loan", "b", gpus=2).running("own", "a", gpus=2, priority=-5)
    made.pending("p", "a", gpus=4, priority=1000)
    assert evicted(made) == []
    for own, foreign, want in [
        (WithinClusterQueue.LOWER_PRIORITY, ReclaimWithinCohort.NEVER, []),
        (WithinClusterQueue.NEVER, ReclaimWithinCohort.ANY, []),
        (WithinClusterQueue.LOWER_PRIORITY, ReclaimWithinCohort.ANY, ["loan", "own"]),
    ]:
        made.queues["a"] = replace(made.queues["a"], preemption=Preemption(own, foreign))
        assert evicted(made) == want, (own, foreign)


def test_a_better_right_reaches_through_the_tree() -> None:
    """Kueue #3948: what a subtree is promised, it gets back, from however far."""
    made = world().cohort("root").cohort("x", "root").cohort("y", "root")
    made.cohort("x1", "x", nominal=4).cohort("y1", "y")
    made.queue("a", 0, "x1", preemption=RECLAIM_ANY).queue("b", 0, "y1").queue("c", 2, "y1")
    made.running("far", "b", gpus=4).running("owner", "c", gpus=2)
    assert evicted(made.pending("p", "a", gpus=4)) == ["far"]


def test_a_cohort_within_its_quota_shelters_its_queues() -> None:
    made = world().cohort("root").cohort("y", "root", nominal=4)
    made.queue("a", 2, "root", preemption=RECLAIM_ANY).queue("b", 0, "y").queue("c", 0, "root")
    made.running("inside", "b", gpus=4).running("loan", "c", gpus=2)
    assert evicted(made.pending("p", "a", gpus=2)) == ["loan"]


def test_columns_are_not_added_up_on_the_way_to_the_common_ancestor() -> None:
    """T2: its queue borrows GPUs inside its cohort, the cohort borrows CPUs; neither is enough."""

    def both(gpus: int, cores: int) -> tuple[ResourceGroup, ...]:
        quotas = {GPU: Quota(gpus), CPU: Quota(cores * 1000)}
        return (ResourceGroup((GPU, CPU), (FlavorQuotas("h100-sxm", quotas),)),)

    made = world().cohort("root").cohort("y", "root")
    made.queue("a", cohort="root", groups=both(3, 2), preemption=RECLAIM_ANY)
    made.queue("b", cohort="y", groups=both(0, 4)).queue("c", cohort="y", groups=both(2, 0))
    made.queue("d", cohort="root", groups=both(0, 0), reclaimable=False)
    made.running("own", "a", pods(1, 2), priority=9).running("lasting", "d", pods(1, 1))
    made.running("gpus", "b", pods(1, 2, cpu=4))
    made.running("cores", "c", pods(1, 0, cpu=2), priority=1)
    assert evicted(made.pending("p", "a", pods(1, 1, cpu=2), priority=5)) == []
    made.queues["c"] = replace(made.queues["c"], groups=both(1, 0))
    assert evicted(made) == ["gpus"], "now the cohort borrows GPUs as well"


def test_after_a_cut_nobody_is_evicted_until_an_owner_wants_its_own() -> None:
    """Debt blocks new work only; then borrowers give back, whoever is within nominal stays."""
    made = world().queue("a", 2, preemption=RECLAIM_ANY).queue("b", 4).queue("c", 2)
    made.running("b0", "b", gpus=2, at=1.0).running("b1", "b", gpus=2, at=2.0)
    made.running("c0", "c", gpus=2, at=99.0).running("b2", "b", gpus=2, at=3.0)
    assert evicted(made) == []
    made.queues["b"] = replace(made.queues["b"], groups=(columns("h100-sxm", {GPU: Quota(2)}),))
    assert evicted(made) == [], "the cut evicts nobody"
    made.pending("more", "b", gpus=1)
    assert evicted(made) == [], "and debt cannot grow"
    assert evicted(made.pending("p", "a", gpus=2)) == ["b1", "b2"], "the debtor pays all its debt"


# -- what is freed is kept ---------------------------------------------------------------------


def two_victims(leave_after: int = 1) -> Simulator:
    """``a4`` evicts two; ``thief`` waits in another queue of the tree, before ``a4`` by age."""
    made = world().cohort("root").cohort("left", "root").cohort("right", "root")
    made.queue("a", 4, "left", preemption=RECLAIM_ANY).queue("b", 0, "right").queue("d", 0, "left")
    made.running("b0", "b", gpus=2, at=10.0).running("b1", "b", gpus=2, at=11.0)
    made.pending("thief", "d", created_at=1.0).pending("own", "a", created_at=500.0)
    sim = Simulator(made.pending("a4", "a", gpus=4, priority=9).build(), leave_after)
    sim.step()
    assert sorted(victim for victim, _ in sim.evictions) == ["b0", "b1"]
    return sim


def test_victims_that_leave_a_minute_apart_leave_no_hole_for_others() -> None:
    """Kueue #13797, also not for another queue of the tree, for the victim or its own queue."""
    sim = two_victims(leave_after=8)
    sim.leaving["b0"] = 0  # 60 s before b1, in steps of 10 s
    for _ in range(6):
        sim.step()
        assert sim.admitted() == set()
    sim.run()
    assert sim.admitted() == {"a4"}
    assert len(sim.evictions) == 2, "nobody else was evicted meanwhile"


def test_a_claim_ends_ten_minutes_after_its_last_victim_left() -> None:
    """The node shrinks meanwhile, so that the preemptor cannot start."""
    made = world().nodes(1).queue("a", 4, preemption=RECLAIM_ANY).queue("b", 0)
    made.running("b4", "b", gpus=4, on={"h100-node-01": 1}).pending("thief", "b", gpus=2)
    sim = Simulator(made.pending("a4", "a", gpus=4).build(), leave_after=3)
    sim.step()
    sim.snapshot = replace(sim.snapshot, nodes=(node(1, 3),))
    last = 0.0
    while any(work.releasing for work in sim.snapshot.workloads):
        last = sim.snapshot.now
        assert sim.plan.memory.claims[0].expires_at == sim.plan.look_again_at == last + 600
        sim.step()
    assert last == 1030.0, "it left after three steps"
    for now, want in [(last + 599, set()), (last + 600, {"thief"})]:
        sim.snapshot = replace(sim.snapshot, now=now - sim.step_s)
        sim.step()
        assert sim.admitted() == want, now
    assert sim.plan.memory.claims == ()


def test_a_withdrawn_claim_frees_its_room_at_once() -> None:
    sim = two_victims()
    sim.finish("a4")
    sim.step()
    assert sim.plan.memory.claims == ()
    sim.step()
    assert {"thief", "own"} <= sim.admitted()


def test_a_claim_on_a_column_that_its_queue_no_longer_lists_ends() -> None:
    """The cohort still has the column; the queue may not use it any more."""
    made = world().nodes(2).queue("a", 4, "co", preemption=RECLAIM_LOWER)
    made.running("low", "a", pods(4), on={"h100-node-01": 4})
    snapshot = made.pending("hi", "a", pods(4), priority=9).build()
    memory = decide(snapshot).memory
    assert [claim.workload for claim in memory.claims] == ["hi"]
    groups = (
        ResourceGroup((CPU,), (FlavorQuotas("h100-sxm", {CPU: Quota(10**6)}),)),
        ResourceGroup((GPU,), (FlavorQuotas("other", {GPU: Quota(8)}),)),
    )
    edited = replace(
        snapshot,
        memory=memory,
        workloads=tuple(w for w in snapshot.workloads if w.key != "low"),
        flavors={**snapshot.flavors, "other": Flavor("other", {"accelerator": "other"})},
        cluster_queues={"a": replace(snapshot.cluster_queues["a"], groups=groups)},
        cohorts={"co": Cohort("co", quotas={H100: Quota(8)})},
    )
    plan = decide(edited)
    assert violations(edited, plan) == ()
    (admit,) = [d for d in plan.decisions if isinstance(d, Admit)]
    assert dict(admit.assignments[0].flavors) == {GPU: "other"}
