"""Running work moves so that a blocked gang fits; nobody is pushed out (T7)."""

from dataclasses import replace
from random import Random

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from scheduling.engine.cycle import advance, decide, plan
from scheduling.engine.invariants import violations
from scheduling.engine.machines import GPU
from scheduling.engine.moving import Moving
from scheduling.engine.plan import Admit, Evict, Plan
from scheduling.engine.queue_rules import MinimumRuntime
from scheduling.engine.snapshot import Preemption, Snapshot, Workload
from scheduling.engine.state import State
from scheduling.engine.terms import EvictionReason, StopPolicy
from tests.engine.builders import RACK, RECLAIM_ANY, World, pods, required, world
from tests.engine.simulator import Simulator

OPEN = Moving()


def scattered(queues: int = 1, jobs: int = 4, each: int = 2, **changes: object) -> World:
    """Nodes of four GPUs, on each of them a job of two; half of everything is free."""
    made = world().topology().nodes(jobs)
    for number in range(queues):
        made.queue(f"q{number}", 4 * jobs)
    for number in range(jobs):
        on = {made.node_list[number].name: 1}
        own = f"q{number % queues}"
        made.running(f"job{number}", own, pods(1, each), on=on, **changes)
    return made


def snapshot_of(made: World, moving: Moving | None = OPEN) -> Snapshot:
    return replace(made.build(), moving=moving)


def plan_of(snapshot: Snapshot) -> Plan:
    found = decide(snapshot)
    assert violations(snapshot, found) == ()
    return found


def moves(found: Plan) -> list[Evict]:
    return [d for d in found.decisions if isinstance(d, Evict)]


def test_a_gang_that_no_node_takes_gets_one_and_nobody_waits_again() -> None:
    sim = Simulator(snapshot_of(scattered().pending("big", "q0", gpus=4)))
    sim.run()
    assert sim.admitted() == {"big", "job0", "job1", "job2", "job3"}
    assert len(sim.evictions) == 1


def test_without_the_setting_nobody_moves() -> None:
    assert moves(plan_of(snapshot_of(scattered().pending("big", "q0", gpus=4), None))) == []


def test_as_few_as_possible_move_and_it_is_said_where_to_and_what_is_lost() -> None:
    made = scattered().pending("big", "q0", gpus=4)
    (move,) = moves(plan_of(snapshot_of(made)))
    job = next(w for w in made.workloads if w.key == move.workload)
    assert (move.reason, move.preemptor) == (EvictionReason.CONSOLIDATED, "big")
    assert move.lost_gpu_hours == pytest.approx(2 * (1000.0 - job.admission.admitted_at) / 3600)
    (seat,) = move.moves_to
    assert seat.nodes != job.admission.assignments[0].nodes


def test_t7_no_more_gpus_move_than_twice_what_is_asked_for() -> None:
    """kai-scheduler#1565: 376 GPUs were moved for 48."""
    made = world().topology().nodes(4).queue("q", 16)
    every = {node.name: 1 for node in made.node_list}
    made.running("wide", "q", pods(4, 2), on=every)  # eight GPUs, two on each node
    one = snapshot_of(made.pending("big", "q", gpus=3))
    assert moves(plan_of(one)) == []
    assert len(moves(plan_of(replace(one, moving=Moving(times=3))))) == 1


def test_t7_nobody_moves_for_work_that_would_borrow() -> None:
    made = scattered(queues=1).queue("poor", 2).pending("big", "poor", gpus=4)
    assert moves(plan_of(snapshot_of(made))) == []
    assert len(moves(plan_of(snapshot_of(made.queue("poor", 4))))) == 1


def test_no_more_gangs_move_than_allowed() -> None:
    made = world().topology().nodes(2, gpus=8).queue("q", 16)
    for number in range(8):
        made.running(f"job{number}", "q", pods(1, 1), on={made.node_list[number % 2].name: 1})
    made.pending("big", "q", gpus=8)
    assert len(moves(plan_of(snapshot_of(made)))) == 4
    assert moves(plan_of(snapshot_of(made, Moving(gangs=3)))) == []


def test_no_more_progress_is_lost_than_allowed() -> None:
    made = scattered(at=1000.0 - 3600.0).pending("big", "q0", gpus=4)
    assert len(moves(plan_of(snapshot_of(made, Moving(lost_gpu_hours=2.0))))) == 1
    assert moves(plan_of(snapshot_of(made, Moving(lost_gpu_hours=1.9)))) == []


def test_the_cheapest_moves() -> None:
    made = scattered().pending("big", "q0", gpus=4)
    made.workloads[2] = replace(made.workloads[2], last_checkpoint_at=999.0)
    assert [move.workload for move in moves(plan_of(snapshot_of(made)))] == ["job2"]


@pytest.mark.parametrize(
    "changes",
    [{"preemptible": False}, {"priority": 1}, {"blocked": "LocalQueueHeld"}],
    ids=["not preemptible", "more urgent", "its local queue is held"],
)
def test_who_may_not_move_stays(changes: dict[str, object]) -> None:
    made = scattered(**changes).pending("big", "q0", gpus=4)
    assert moves(plan_of(snapshot_of(made))) == []


@pytest.mark.parametrize(
    "changes",
    [{"minimum_runtime": MinimumRuntime(5000.0)}, {"stop_policy": StopPolicy.HOLD}],
    ids=["it has not run for long", "its queue is held"],
)
def test_who_is_safe_in_its_queue_or_could_not_come_back_stays(changes: dict[str, object]) -> None:
    made = scattered().queue("other", 16).pending("big", "other", gpus=4)
    made.queues["q0"] = replace(made.queues["q0"], **changes)
    assert moves(plan_of(snapshot_of(made))) == []


def test_nobody_moves_where_all_could_not_be_placed_again() -> None:
    """Three GPUs on each node; one pod of four would leave a pod of three without a node."""
    made = scattered(each=3).pending("big", "q0", gpus=4)
    assert moves(plan_of(snapshot_of(made))) == []


def test_the_required_domain_is_emptied_that_costs_least() -> None:
    made = world().topology().nodes(8).queue("q", 32)
    for number in range(8):  # two nodes a rack; the last rack has the smaller jobs
        size = 1 if number > 5 else 2
        on = {made.node_list[number].name: 1}
        made.running(f"job{number}", "q", pods(1, size), on=on)
    made.pending("big", "q", pods(2, 4, topology=required(RACK)))
    found = sorted(move.workload for move in moves(plan_of(snapshot_of(made))))
    assert found == ["job6", "job7"]


def test_nobody_else_takes_the_new_nodes_while_the_mover_leaves() -> None:
    """A job that fits exactly where the mover is going to stand comes in between."""
    made = scattered(jobs=3, each=2).pending("big", "q0", gpus=4)
    sim = Simulator(snapshot_of(made), leave_after=3)
    sim.step()
    (move,) = moves(sim.plan)
    late = [Workload(f"late{i}", f"late{i}", "q0", 0, 900.0, (pods(1, 2),)) for i in range(3)]
    sim.submit(*late)
    sim.run()
    assert {"big", move.workload} <= sim.admitted()
    mover = next(w for w in sim.snapshot.workloads if w.key == move.workload)
    assert mover.admission.assignments == move.moves_to
    assert len(sim.evictions) == 1


def test_the_claim_of_a_mover_ends_with_the_decision_if_it_was_never_told_to_leave() -> None:
    """The host could not write the move: the work runs on, and nothing is kept twice."""
    before = snapshot_of(scattered().pending("big", "q0", gpus=4))
    found = plan_of(before)
    again = replace(before, memory=found.memory, now=1010.0)
    mover = moves(found)[0].workload
    assert mover not in {claim.workload for claim in plan_of(again).memory.claims} - {
        move.workload for move in moves(plan_of(again))
    }


def test_the_world_comes_to_rest_and_a_mover_never_strikes_back() -> None:
    made = scattered(jobs=6)
    for number in range(3):
        made.pending(f"big{number}", "q0", gpus=4)
    sim = Simulator(snapshot_of(made), leave_after=2)
    sim.run()
    done = len(sim.evictions)
    assert {"big0", "big1", "big2"} <= sim.admitted()
    assert len(sim.admitted()) == 9
    for _ in range(10):
        sim.step()
    assert len(sim.evictions) == done


def test_a_kept_state_goes_on_as_a_fresh_one_while_work_moves() -> None:
    before = snapshot_of(scattered().pending("big", "q0", gpus=4))
    state = State(before)
    advance(state, before.now)
    (mover,) = state.releasing
    state.put(replace(state.workloads[mover], admission=None, releasing=False))
    fresh = decide(replace(state.snapshot(), now=1010.0))
    kept = plan(state, advance(state, 1010.0))
    assert kept.decisions == fresh.decisions
    assert {d.workload for d in kept.decisions if isinstance(d, Admit)} == {"big", mover}


def hall(random: Random) -> Simulator:
    """Two teams with quota for nearly all of some nodes, and a bound on what may move."""
    nodes, gpus = random.randint(2, 6), random.choice((4, 8))
    made = world().topology().nodes(nodes, gpus=gpus)
    rights = random.choice((Preemption(), RECLAIM_ANY))
    for name in ("qa", "qb"):
        made.queue(name, random.randint(nodes * gpus // 3, nodes * gpus), preemption=rights)
    bounds = Moving(random.choice((None, 0.05, 0.5)), random.randint(1, 16), random.randint(1, 3))
    return Simulator(replace(made.build(), moving=bounds), random.randint(1, 3))


def newcomer(random: Random, number: int, gpus: int) -> Workload:
    topology = random.choice((None, None, None, required(RACK)))
    count, each = random.choice(
        ((1, 1), (1, 1), (1, 2), (2, 1), (2, 2), (1, 3), (1, gpus), (2, 4))
    )
    key = f"w{number:03}"
    return Workload(
        key,
        key,
        random.choice(("qa", "qb")),
        random.choice((0, 0, 0, 1)),
        float(number),
        (pods(count, min(each, gpus), topology=topology),),
        preemptible=random.randrange(8) > 0,
    )


def check_whoever_moves_runs_again(random: Random) -> int:
    """Bounds and nodes are kept, by the laws of each step; there is rest; nobody is left out."""
    sim, moved, times = hall(random), set[str](), 0
    gpus = sim.snapshot.nodes[0].allocatable[GPU]
    for number in range(30):
        sim.submit(newcomer(random, number, gpus))
        if len(sim.admitted()) > 3 and random.randrange(2):
            gone = random.choice(sorted(sim.admitted()))
            sim.finish(gone)
            moved.discard(gone)
        sim.step()
        for move in moves(sim.plan):
            times += bool(move.moves_to)
            (moved.add if move.moves_to else moved.discard)(move.workload)
    before = len(sim.evictions)
    sim.run()
    assert moved <= sim.admitted() or len(sim.evictions) > before
    return times


@settings(max_examples=10, deadline=None, phases=(Phase.explicit, Phase.generate))
@given(st.integers(0, 2**32 - 1))
def test_in_any_world_whoever_moves_runs_again(seed: int) -> None:
    check_whoever_moves_runs_again(Random(seed))


@pytest.mark.long
def test_in_many_worlds_whoever_moves_runs_again() -> None:
    for seed in range(1000):
        check_whoever_moves_runs_again(Random(seed))
