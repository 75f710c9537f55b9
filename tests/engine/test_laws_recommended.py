"""Laws of the recommended profile, in worlds of every kind (``rich.py``)."""

from collections import Counter
from dataclasses import replace
from random import Random

from scheduling.engine.codec import decode_snapshot, encode_plan, encode_snapshot
from scheduling.engine.cycle import decide
from scheduling.engine.machines import Node
from scheduling.engine.plan import Admit, Evict, Hold, Plan
from scheduling.engine.snapshot import Claim, ClusterQueue, Cohort, PodSet, Snapshot
from scheduling.engine.state import State
from tests.engine.laws import laws
from tests.engine.rich import Setting, rich_world
from tests.engine.simulator import Simulator


def busy(random: Random, setting: Setting | None = None) -> Simulator:
    """Return a world in the middle of things: some run, some leave, some have just arrived."""
    setting = setting or Setting(contended=random.randrange(2) == 0)
    snapshot = rich_world(random, setting)
    work = list(snapshot.workloads)
    sim = Simulator(replace(snapshot, workloads=()), random.randint(1, 3))
    for _ in range(random.randint(1, 5)):
        for _ in range(random.randint(0, 6)):
            if work:
                sim.submit(work.pop(0))
        sim.step()
    sim.submit(*work)
    return sim


def check_fifty_cycles(random: Random) -> None:
    """Every plan is sound (the simulator asks), nobody evicts in turn, and there is rest."""
    snapshot = rich_world(random, Setting(most_work=24, contended=random.randrange(2) == 0))
    sim = Simulator(replace(snapshot, workloads=()), random.randint(1, 3))
    waiting = list(snapshot.workloads)
    for _ in range(50):
        if waiting and random.randrange(2):
            sim.submit(waiting.pop(0))
        if sim.admitted() and random.randrange(6) == 0:
            sim.finish(random.choice(sorted(sim.admitted())))
        sim.step()
    sim.run()
    both_ways = {(preemptor, victim) for victim, preemptor in sim.evictions} & set(sim.evictions)
    assert both_ways == set()


def check_whoever_evicts_starts(random: Random) -> None:
    """Apply the plan, let the victims leave, decide again: every preemptor is admitted."""
    sim = busy(random, Setting(contended=True))
    sim.step()
    preemptors = {d.preemptor for d in sim.plan.decisions if isinstance(d, Evict) and d.preemptor}
    for _ in range(60):
        going = bool(sim.leaving)
        sim.step()
        preemptors -= sim.admitted()
        if not going:
            break
    assert preemptors == set()


def check_no_victim_in_vain(random: Random) -> None:
    """With any one victim still there, it would not fit on the same flavors, or borrow."""
    sim = busy(random, Setting(stops=False, topology=False, contended=True))
    sim.step()
    evictions = [d for d in sim.plan.decisions if isinstance(d, Evict)]
    victims = {evict.workload for evict in evictions}
    claims = {claim.workload: claim for claim in sim.plan.memory.claims}
    for preemptor, times in Counter(evict.preemptor for evict in evictions).items():
        if preemptor is not None and times == len(evictions) > 1:
            for kept in sorted(victims):
                assert not spared(sim.snapshot, claims[preemptor], kept, victims - {kept})


def spared(snapshot: Snapshot, claim: Claim, kept: str, gone: set[str]) -> bool:
    """Whether the claimant fits, without borrowing, though ``kept`` has not been evicted."""
    memory = snapshot.memory
    claims = tuple(other for other in memory.claims if other.workload != claim.workload)
    left = tuple(
        replace(work, releasing=work.releasing and work.key != kept)
        for work in snapshot.workloads
        if work.key not in gone
    )
    state = State(replace(snapshot, workloads=left, memory=replace(memory, claims=claims)))
    work = next(work for work in left if work.key == claim.workload)
    flavors = {one.pod_set: one.flavors for one in claim.assignments}
    columns = frozenset(state.books.soon.ledger.columns())
    return state.assigner.assign(work, state.books.coming, flavors, columns) is not None


def check_more_room_evicts_nobody(random: Random) -> None:
    """With nothing waiting, larger quotas and more nodes move nobody."""
    sim = busy(random, Setting(stops=False))
    running = tuple(w for w in sim.snapshot.workloads if w.admission is not None)
    still = replace(sim.snapshot, workloads=running)
    larger = replace(
        still,
        cluster_queues={name: grown(q, random) for name, q in still.cluster_queues.items()},
        cohorts={name: grown_cohort(c, random) for name, c in still.cohorts.items()},
        nodes=(*still.nodes, *(replace(n, name=f"{n.name}-new") for n in still.nodes[:2])),
    )
    assert decide(larger).decisions == ()


def grown(queue: ClusterQueue, random: Random) -> ClusterQueue:
    groups = tuple(
        replace(
            group,
            flavors=tuple(
                replace(
                    flavor,
                    quotas={
                        r: replace(q, nominal=q.nominal + random.randint(0, 3))
                        for r, q in flavor.quotas.items()
                    },
                )
                for flavor in group.flavors
            ),
        )
        for group in queue.groups
    )
    return replace(queue, groups=groups)


def grown_cohort(cohort: Cohort, random: Random) -> Cohort:
    quotas = {
        fr: replace(q, nominal=q.nominal + random.randint(0, 3)) for fr, q in cohort.quotas.items()
    }
    return replace(cohort, quotas=quotas)


def check_order_means_nothing(random: Random) -> None:
    """Turn every list and mapping whose order carries no meaning: the plan stays as it is."""
    snapshot = busy(random).snapshot
    assert encode_plan(decide(turned(snapshot, random))) == encode_plan(decide(snapshot))


def turned(snapshot: Snapshot, random: Random) -> Snapshot:
    def mixed(mapping):
        keys = list(mapping)
        random.shuffle(keys)
        return {key: mapping[key] for key in keys}

    def shuffled(items):
        return tuple(random.sample(items, len(items)))

    def pods(one: PodSet) -> PodSet:
        return replace(
            one,
            requests=mixed(one.requests),
            node_selector=mixed(one.node_selector),
            tolerations=shuffled(one.tolerations),
        )

    def node(one: Node) -> Node:
        return replace(one, labels=mixed(one.labels), allocatable=mixed(one.allocatable))

    memory = snapshot.memory
    return replace(
        snapshot,
        flavors=mixed(snapshot.flavors),
        nodes=shuffled([node(n) for n in snapshot.nodes]),
        cohorts={
            name: replace(c, quotas=mixed(c.quotas)) for name, c in mixed(snapshot.cohorts).items()
        },
        cluster_queues=mixed(snapshot.cluster_queues),
        local_queues=mixed(snapshot.local_queues),
        workloads=shuffled(
            [replace(w, pod_sets=tuple(pods(p) for p in w.pod_sets)) for w in snapshot.workloads]
        ),
        memory=replace(
            memory,
            claims=shuffled(memory.claims),
            evicted_by=shuffled(memory.evicted_by),
            history=mixed(memory.history),
        ),
    )


def check_equal_input_equal_plan(random: Random) -> None:
    """Decide twice, and once more on what went through JSON."""
    snapshot = busy(random).snapshot
    before = encode_snapshot(snapshot)
    plan = encode_plan(decide(snapshot))
    assert encode_plan(decide(snapshot)) == plan
    assert encode_snapshot(snapshot) == before
    assert encode_plan(decide(decode_snapshot(before))) == plan


def check_everybody_gets_one_answer(random: Random) -> None:
    """One decision for each, and what blocks is more than there is."""
    snapshot = busy(random).snapshot
    plan = decide(snapshot)
    answers = Counter(d.workload for d in plan.decisions if isinstance(d, Admit | Hold))
    assert answers == {w.key: 1 for w in snapshot.workloads if w.admission is None}
    for hold in (d for d in plan.decisions if isinstance(d, Hold)):
        assert hold.blockers, hold
        for blocker in hold.blockers:
            if blocker.needed is not None and blocker.available is not None:
                assert 0 <= blocker.available < blocker.needed, hold
    assert positions_count(snapshot, plan)


def positions_count(snapshot: Snapshot, plan: Plan) -> bool:
    """Whether the positions of each queue are 1, 2, 3 ..."""
    queue = {w.key: w.queue for w in snapshot.workloads}
    lines: dict[str | None, list[int]] = {}
    for hold in plan.decisions:
        if isinstance(hold, Hold) and hold.position is not None:
            lines.setdefault(queue[hold.workload], []).append(hold.position)
    return all(sorted(line) == list(range(1, len(line) + 1)) for line in lines.values())


test_law, test_law_in_many_worlds = laws(
    check_fifty_cycles,
    check_whoever_evicts_starts,
    check_no_victim_in_vain,
    check_more_room_evicts_nobody,
    check_order_means_nothing,
    check_equal_input_equal_plan,
    check_everybody_gets_one_answer,
    few=20,
    many=2000,
)
