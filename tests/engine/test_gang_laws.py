"""Laws of gangs with minima, in worlds of every kind, with nodes that go and come back."""

from dataclasses import replace
from random import Random

from scheduling.engine.codec import decode_plan, encode_plan
from scheduling.engine.cycle import advance, decide, plan
from scheduling.engine.gang_laws import unmet
from scheduling.engine.plan import Evict, Hold, Shrink
from scheduling.engine.snapshot import Snapshot, Subgroups, Workload
from scheduling.engine.standing import standing
from scheduling.engine.state import State
from tests.engine.laws import laws
from tests.engine.rich import Setting, rich_world
from tests.engine.simulator import Simulator


def elastic(random: Random, work: Workload) -> Workload:
    """Let a workload be a larger gang with minima, three times of four."""
    if random.randrange(4) == 0:
        return work
    sets = []
    for one in work.pod_sets:
        count = one.count + random.randint(0, 4)
        parts = Subgroups(random.randint(1, 2), random.randint(0, 1))
        least = random.choice((None, None, 0, 1, min(2, count)))
        chosen = parts if random.randrange(3) == 0 else None
        sets.append(
            replace(one, count=count, role_minimum=least, subgroups=chosen, min_count=None)
        )
    total = sum(one.count for one in sets)
    return replace(
        work, pod_sets=tuple(sets), min_member=random.choice((None, 1, random.randint(1, total)))
    )


def gangs_world(random: Random, setting: Setting | None = None) -> Snapshot:
    setting = setting or Setting(contended=random.randrange(2) == 0)
    snapshot = rich_world(random, setting)
    work = (elastic(random, w) for w in snapshot.workloads)
    if not setting.runtimes:  # nothing may change by time alone
        work = (replace(w, duration_s=None) for w in work)
    return replace(snapshot, workloads=tuple(work))


def under_way(random: Random, setting: Setting | None = None) -> tuple[Simulator, list[Workload]]:
    """Return a world in the middle of things, and who is still to come."""
    snapshot = gangs_world(random, setting)
    work = list(snapshot.workloads)
    sim = Simulator(replace(snapshot, workloads=()), random.randint(1, 3))
    for _ in range(random.randint(1, 5)):
        for _ in range(random.randint(0, 6)):
            if work:
                sim.submit(work.pop(0))
        sim.step()
        check_minima(sim)
    return sim, work


def check_minima(sim: Simulator) -> None:
    """Whatever stands meets every minimum that it has, of the gang, its roles and their parts."""
    for work in sim.snapshot.workloads:
        if work.admission is not None and not work.releasing and not work.part_of:
            pods = {one.pod_set: one.count for one in standing(work)}
            if not any(one.min_count is not None for one in work.pod_sets):
                assert unmet(work, pods) == "", work.key


def check_no_gang_stands_below_its_minimum(random: Random) -> None:
    sim, work = under_way(random, Setting(levels=random.randrange(2) == 0))
    for _ in range(20):
        if work and random.randrange(2):
            sim.submit(work.pop(0))
        if sim.admitted() and random.randrange(5) == 0:
            sim.finish(random.choice(sorted(sim.admitted())))
        sim.step()
        check_minima(sim)
    sim.run()
    check_minima(sim)


def check_surplus_pushes_nobody_out(random: Random) -> None:
    """Who starts pushes out; with nobody waiting to start, gangs grow and nobody is moved."""
    sim, _ = under_way(random)
    sim.run()
    stands = tuple(w for w in sim.snapshot.workloads if w.admission is not None)
    fewer = tuple(w for w in stands if random.randrange(3) or w.part_of)
    sim.snapshot = replace(sim.snapshot, workloads=fewer)
    before = len(sim.evictions), len(sim.shrinks)
    for _ in range(20):
        sim.step()
        drained = [d for d in sim.plan.decisions if isinstance(d, Evict) and d.preemptor]
        assert drained == []
    assert len(sim.shrinks) == before[1]


def check_nobody_takes_in_turn(random: Random) -> None:
    """Takings end: after twenty cycles of rest nobody has been taken from twice by one another."""
    levels = random.randrange(2) == 0
    sim, work = under_way(random, Setting(contended=True, runtimes=False, levels=levels))
    sim.submit(*work)
    sim.run()
    shrinks, evictions = len(sim.shrinks), len(sim.evictions)
    for _ in range(20):
        sim.step()
    assert (len(sim.shrinks), len(sim.evictions)) == (shrinks, evictions)
    taken = {(gang, by) for gang, by, _ in sim.shrinks} | set(sim.evictions)
    assert {(by, gang) for gang, by in taken} & taken == set()


def check_no_piece_in_vain(random: Random) -> None:
    """A lone preemptor that takes surplus alone could not do with one piece less."""
    sim, work = under_way(random, Setting(stops=False, topology=False, contended=True))
    sim.submit(*work)
    sim.step()
    takings = [d for d in sim.plan.decisions if isinstance(d, Evict | Shrink)]
    for one in takings:
        if isinstance(one, Shrink) and one.preemptor:
            assert sum(a.count for a in one.pods) > 0
            assert all(a.count == sum(a.nodes.values()) for a in one.pods if a.nodes)


def check_nodes_come_and_go(random: Random) -> None:
    """Whatever goes with a node, every plan is lawful, and there is rest when they stay."""
    sim, work = under_way(random, Setting(stops=False))
    sim.submit(*work)
    whole = sim.snapshot.nodes
    firsts = tuple({n.labels["kind"]: n for n in reversed(whole)}.values())  # a kind never ends
    for _ in range(15):
        if random.randrange(3) == 0:
            kept = tuple(n for n in whole if n in firsts or random.randrange(4))
            away = (replace(n, ready=random.randrange(4) > 0) for n in kept)
            sim.snapshot = replace(sim.snapshot, nodes=tuple(away))
        sim.step_s = random.choice((10.0, 30.0))
        sim.step()
    sim.snapshot = replace(sim.snapshot, nodes=whole)
    sim.run()
    check_minima(sim)


def check_a_kept_state_decides_as_a_fresh_one(random: Random) -> None:
    sim, work = under_way(random, Setting(levels=random.randrange(2) == 0))
    state = State(sim.snapshot)
    for _ in range(4):
        for one in work[:3]:
            state.put(one)
        work = work[3:]
        now = state.now + 10.0
        fresh = decide(replace(state.snapshot(), now=now))
        kept = plan(state, advance(state, now))
        assert encode_plan(replace(kept, work={})) == encode_plan(replace(fresh, work={}))
        assert decode_plan(encode_plan(kept)) == kept
        for key in sorted(state.releasing):
            gone = state.workloads[key]
            state.drop(key)
            if not gone.part_of and random.randrange(2):
                state.put(replace(gone, admission=None, releasing=False))
        running = sorted(w.key for w in state.workloads.values() if w.admission)
        if running and random.randrange(2):
            state.drop(random.choice(running))


def check_whoever_waits_for_pods_is_told_why(random: Random) -> None:
    sim, _ = under_way(random)
    told = {d.workload for d in sim.plan.decisions if isinstance(d, Hold)}
    for work in sim.snapshot.workloads:
        if work.admission is None or work.releasing or work.part_of:
            continue
        pods = sum(one.count for one in standing(work))
        wanted = sum(one.count for one in work.pod_sets)
        partial = any(one.min_count is not None for one in work.pod_sets)
        shrunk = any(key == work.key for key, _, _ in sim.shrinks)
        if pods < wanted and not partial and not shrunk:
            assert work.key in told


test_law, test_law_in_many_worlds = laws(
    check_no_gang_stands_below_its_minimum,
    check_surplus_pushes_nobody_out,
    check_nobody_takes_in_turn,
    check_no_piece_in_vain,
    check_nodes_come_and_go,
    check_a_kept_state_decides_as_a_fresh_one,
    check_whoever_waits_for_pods_is_told_why,
    few=8,
    many=1000,
)
