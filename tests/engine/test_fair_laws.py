"""Laws of trees that share, on small random worlds."""

from dataclasses import replace

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from scheduling.engine.cycle import advance, decide, plan
from scheduling.engine.decay import Decayed
from scheduling.engine.fairness import fairness_of, strategies_of
from scheduling.engine.invariants import violations
from scheduling.engine.plan import Admit, Evict, Plan
from scheduling.engine.quota import QuotaLedger
from scheduling.engine.shares import Share, Shares
from scheduling.engine.snapshot import Memory, Preemption, Snapshot
from scheduling.engine.state import State
from scheduling.engine.terms import (
    Fairness,
    FairStrategy,
    ReclaimWithinCohort,
    WithinClusterQueue,
)
from scheduling.engine.tree import QuotaKey, queue_key, quota_tree
from scheduling.engine.usage import charged, held_usage
from tests.engine.builders import world
from tests.engine.simulator import Simulator
from tests.engine.strategies import QUEUES, weight_st, worlds

LAWS = settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))


@st.composite
def fair_worlds(draw) -> Snapshot:
    """Some past use, a fair tree in most worlds, and most queues may reclaim."""
    snapshot = draw(worlds(stops=False))
    cohorts = dict(snapshot.cohorts)
    fairness = draw(st.sampled_from([Fairness.SHARE, Fairness.HISTORY, Fairness.NONE]))
    cohorts["root"] = replace(cohorts["root"], fairness=fairness)
    hours = st.sampled_from([0.0, 1.0, 5.0])
    past = {name: Decayed(draw(hours), 0.0, snapshot.now) for name in QUEUES}
    strategies = draw(
        st.sampled_from([(), (FairStrategy.FINAL_SHARE,), (FairStrategy.INITIAL_SHARE,)])
    )
    memory = Memory(history=past)
    return replace(snapshot, cohorts=cohorts, memory=memory, fair_strategies=strategies)


@LAWS
@given(snapshot=fair_worlds(), data=st.data())
def test_a_kept_state_and_a_fresh_one_give_the_same_plan(snapshot, data) -> None:
    """Also the same words for those who wait, and the same past use."""
    kept = State(snapshot)
    for step in range(1, 5):
        now = snapshot.now + 3600.0 * step
        fresh = decide(replace(kept.snapshot(), now=now))
        found = plan(kept, advance(kept, now))
        assert replace(found, work={}) == replace(fresh, work={})
        for key, work in list(kept.workloads.items()):
            if work.releasing:
                kept.put(replace(work, admission=None, releasing=False))
            elif work.admission and data.draw(st.booleans()):
                kept.drop(key)


def final_shares(
    snapshot: Snapshot, made: Plan, preemptor: str, back: str = ""
) -> tuple[Shares, QuotaLedger]:
    """Return the shares once the preemptor stands; ``back``: and this victim does still."""
    ledger = QuotaLedger(quota_tree(snapshot))
    leaving = {d.workload for d in made.decisions if isinstance(d, Evict)} - {back}
    admits = {d.workload: d.assignments for d in made.decisions if isinstance(d, Admit)}
    claims = {claim.workload: claim.assignments for claim in made.memory.claims}
    for work in snapshot.workloads:
        usage = held_usage(work) if work.key not in leaving and not work.releasing else {}
        if work.key in admits or work.key in claims:
            usage = charged(work, admits.get(work.key) or claims[work.key])
        if work.queue in snapshot.cluster_queues:
            for fr, amount in usage.items():
                ledger.reserve(queue_key(work.queue or ""), fr, amount)
    assert preemptor in claims
    return Shares(snapshot, ledger), ledger


def branches(ledger: QuotaLedger, one: str, other: str) -> tuple[QuotaKey, QuotaKey]:
    ours, theirs = ledger.path(queue_key(one)), ledger.path(queue_key(other))
    common = next(node for node in ours if node in theirs)
    return ours[ours.index(common) - 1], theirs[theirs.index(common) - 1]


def sorted_by(share: Share) -> tuple[float, float]:
    return share.value, share.ratio if share.value == float("inf") else 0.0


def unfair(snapshot: Snapshot, made: Plan) -> list[str]:
    """Return the foreign victims that nothing allows once everything is as planned.

    Looked at in plans with one preemptor alone: others change what was fair when they were made.
    """
    work = {w.key: w for w in snapshot.workloads}
    evictions = [d for d in made.decisions if isinstance(d, Evict) and d.preemptor]
    bad: list[str] = []
    for evict in evictions if len({d.preemptor for d in evictions}) == 1 else ():
        ours, theirs = work[evict.preemptor or ""].queue or "", work[evict.workload].queue or ""
        shares, ledger = final_shares(snapshot, made, evict.preemptor or "")
        root = ledger.root(queue_key(ours))
        if ours == theirs or fairness_of(snapshot, root) is Fairness.NONE:
            continue
        mine, victims = branches(ledger, ours, theirs)
        before, _ = final_shares(snapshot, made, evict.preemptor or "", evict.workload)
        rules = {
            FairStrategy.FINAL_SHARE: sorted_by(shares.of(mine)) <= sorted_by(shares.of(victims)),
            FairStrategy.INITIAL_SHARE: sorted_by(shares.of(mine)) < sorted_by(before.of(victims)),
        }
        columns = ledger.nodes[queue_key(ours)].quotas
        borrows = any(ledger.borrowed(queue_key(ours), fr) for fr in columns)
        if borrows and not any(rules[rule] for rule in strategies_of(snapshot)):
            bad.append(evict.workload)
    return bad


@st.composite
def crowded_pools(draw) -> Snapshot:
    """A full pool of a tree, work of many sizes in every queue, and one more that asks."""
    made = world().cohort("root", fairness=Fairness.SHARE, nominal=draw(st.integers(4, 8)))
    made.cohort("left", "root", weight=draw(weight_st))
    for name, home in zip("abc", ("left", "left", "root"), strict=True):
        rights = Preemption(WithinClusterQueue.LOWER_PRIORITY, ReclaimWithinCohort.ANY)
        nominal = draw(st.sampled_from([0, 0, 2]))
        made.queue(name, nominal, home, preemption=rights, fair_weight=draw(weight_st))
    for number in range(draw(st.integers(2, 8))):
        queue, gpus = draw(st.sampled_from("abc")), draw(st.integers(1, 4))
        urgent = draw(st.integers(0, 2))
        made.pending(f"w{number}", queue, gpus=gpus, priority=urgent)
    sim = Simulator(made.build())
    sim.step()
    held = [work for work in sim.snapshot.workloads if work.admission]
    queue, gpus = draw(st.sampled_from("abc")), draw(st.integers(1, 6))
    made.pending("last", queue, gpus=gpus, priority=draw(st.integers(0, 3)))
    rules = st.sampled_from([(), (FairStrategy.FINAL_SHARE,), (FairStrategy.INITIAL_SHARE,)])
    asking = (*held, made.workloads[-1])
    return replace(sim.snapshot, workloads=asking, fair_strategies=draw(rules))


@LAWS
@given(snapshot=crowded_pools())
def test_every_victim_is_fair_once_everything_is_as_planned(snapshot) -> None:
    made = decide(snapshot)
    assert violations(snapshot, made) == ()
    assert unfair(snapshot, made) == []
