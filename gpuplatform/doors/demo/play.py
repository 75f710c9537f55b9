"""Play moves through the real product on a virtual clock."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from gpuplatform.common import clock
from gpuplatform.doors.demo.history import Job
from scheduling.cycle import run_cycle
from scheduling.desired import desired_gangs
from scheduling.reconciler import reconcile
from scheduling.services import load_world, submit_workload
from scheduling.specs import PodSetSpec, TopologySpec, WorkloadSpec
from scheduling.world import World

MOST_ROUNDS = 20  # a settled world needs two; the bound only stops a fault from spinning


@dataclass(frozen=True, slots=True)
class Move:
    """Something that somebody does at an instant: an edit, or the submission of a job."""

    at: datetime
    act: Callable[[], object] | Job


def submission(job: Job) -> Move:
    """Return the move that submits a job of the demo."""
    return Move(job.at, job)


def workload_of(job: Job) -> WorkloadSpec:
    """Return a job of the demo as what a client would have sent."""
    pods = PodSetSpec(
        name="worker",
        count=job.pods,
        requests={"nvidia.com/gpu": job.gpus},
        node_selector={"gpuplatform.io/pool": job.pool} if job.pool else {},
        topology=TopologySpec(job.mode, job.level) if job.level else None,
    )
    return WorkloadSpec(
        namespace=f"ns-{job.team}",
        name=job.name,
        pod_sets=(pods,),
        queue=f"lq-{job.team}",
        priority_class=job.priority,
        expected_duration_s=round(job.hours * 3600),
    )


def play(moves: Iterable[Move], *, until: datetime) -> None:
    """Make the moves in order of time, and let running work end when it is due, until then."""
    waiting = sorted(moves, key=lambda move: move.at, reverse=True)
    world: World | None = None  # promises and nodes, read again after each edit
    look: datetime | None = None  # when time alone changes what a cycle decides
    while True:
        due = waiting[-1].at if waiting else None
        instant = min((at for at in (due, next_end(), look) if at), default=until)
        if instant >= until:
            return
        with clock.at(instant):
            while waiting and waiting[-1].at <= instant:
                world = _make(waiting.pop(), world)
            look = settle()


def _make(move: Move, world: World | None) -> World | None:
    if not isinstance(move.act, Job):
        move.act()
        return None
    world = world or load_world()
    submit_workload(workload_of(move.act), actor=None, world=world)
    return world


def next_end() -> datetime | None:
    """Return when the next of the running workloads ends by itself, if any does."""
    ends = [
        (gang.started_at or gang.admitted_at) + timedelta(seconds=gang.expected_duration_s)
        for gang in desired_gangs()
        if gang.expected_duration_s is not None
    ]
    return min(ends, default=None)


def settle() -> datetime | None:
    """Run backend and cycle in turn until nothing moves any more at this instant.

    A cycle admits all that fits, so another one is needed only when something gave room back.

    Returns:
        When time alone moves something again; None: never.
    """
    look: datetime | None = None
    for _ in range(MOST_ROUNDS):
        reconcile()
        report = run_cycle()
        look = report.look_again_at
        if not report.evicted:
            break
    reconcile()
    return look


def minutes_before(now: datetime, minutes: float) -> datetime:
    """Return an instant some minutes ago, to the second."""
    return (now - timedelta(minutes=minutes)).replace(microsecond=0)
