"""Room is reserved for a gang that finds none: in time, and from nobody who would not delay it."""

from collections import Counter
from dataclasses import dataclass, field, replace

import pytest

from scheduling.engine.cycle import decide
from scheduling.engine.invariants import violations
from scheduling.engine.patience import Patience
from scheduling.engine.plan import Admit
from scheduling.engine.snapshot import Admission, PodSet, Snapshot, Workload
from tests.engine.builders import World, pods, world

MINUTE = 60.0


@dataclass
class Clock:
    """A cluster in which work ends after its time, whether or not it said so before."""

    snapshot: Snapshot
    lasts: dict[str, float] = field(default_factory=dict)
    started: dict[str, float] = field(default_factory=dict)
    idle: dict[str, float] = field(default_factory=dict)  # idle GPU-seconds of reservations
    promises: dict[str, list[float]] = field(default_factory=dict)

    def submit(self, work: Workload, lasts: float) -> None:
        self.lasts[work.key] = lasts
        self.snapshot = replace(self.snapshot, workloads=(*self.snapshot.workloads, work))

    def at(self, now: float) -> None:
        """Let the hour strike: who is done leaves, then one cycle."""
        left = tuple(
            w
            for w in self.snapshot.workloads
            if w.admission is None or w.admission.admitted_at + self.lasts[w.key] > now
        )
        self.snapshot = replace(self.snapshot, now=now, workloads=left)
        plan = decide(self.snapshot)
        assert violations(self.snapshot, plan) == ()
        admits = {d.workload: d.assignments for d in plan.decisions if isinstance(d, Admit)}
        self.started |= dict.fromkeys(admits, now)
        self.snapshot = replace(
            self.snapshot,
            memory=plan.memory,
            workloads=tuple(
                replace(w, admission=Admission(now, admits[w.key])) if w.key in admits else w
                for w in left
            ),
        )
        for one in plan.memory.reservations:
            self.idle[one.workload] = one.idle_gpu_seconds
            if one.promised:
                self.promises.setdefault(one.workload, []).append(one.starts_at)


def job(key: str, at: float, duration: float | None, *pod_sets: PodSet, **more) -> Workload:
    sets = pod_sets or (pods(gpus=1),)
    return Workload(key, key, "cq", 0, at, sets, duration_s=duration, **more)


def endless_stream(nodes: World, gang: PodSet, *, declared: bool, quota: int) -> Clock:
    """T9 of ``placement.md`` 6.1: one-GPU jobs of ten minutes for ever, and one gang of eight."""
    made = nodes.queue("cq", quota, None).build()
    clock = Clock(replace(made, patience=Patience(after_s=5 * MINUTE)))
    duration = 10 * MINUTE if declared else None
    for minute in range(-8, 0):
        clock.submit(job(f"first{minute}", minute * MINUTE, duration), 10 * MINUTE)
        clock.at(minute * MINUTE)
    for number in range(20):
        clock.submit(job(f"backlog-{number:02}", -1.0, duration), 10 * MINUTE)
    clock.submit(job("gang", 0.0, duration, gang), 10 * MINUTE)
    for minute in range(60):
        clock.submit(job(f"job-{minute:02}", minute * MINUTE, duration), 10 * MINUTE)
        clock.at(minute * MINUTE)
    return clock


LAYOUTS = {
    "one pod on one node": (lambda: world().nodes(1, gpus=8), pods(1, 8)),
    "eight pods on one node": (lambda: world().nodes(1, gpus=8), pods(8)),
    "two pods on two nodes": (lambda: world().nodes(2), pods(2, 4)),
    "eight pods on eight nodes": (lambda: world().nodes(8, gpus=1), pods(8)),
}


@pytest.mark.parametrize("quota", [8, 100], ids=["quota as large as the nodes", "quota to spare"])
@pytest.mark.parametrize("declared", [False, True], ids=["no ends known", "ends declared"])
@pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS)
def test_a_gang_starts_in_an_endless_stream_of_small_jobs(layout, declared, quota) -> None:
    nodes, gang = layout
    clock = endless_stream(nodes(), gang, declared=declared, quota=quota)
    assert clock.started["gang"] <= 15 * MINUTE
    assert 0 < clock.idle["gang"] <= 8 * 15 * MINUTE
    assert Counter(clock.started).keys() >= {f"backlog-{n:02}" for n in range(20)}


def test_without_reservations_the_stream_never_lets_the_gang_in() -> None:
    made = world().nodes(8, gpus=1).queue("cq", 8, None).build()
    clock = Clock(replace(made, patience=Patience(after_s=None)))
    for minute in range(90):
        clock.submit(job(f"job-{minute:02}", minute * MINUTE, None), 10 * MINUTE)
        if minute == 8:
            clock.submit(job("gang", minute * MINUTE, None, pods(8)), 10 * MINUTE)
        clock.at(minute * MINUTE)
    assert "gang" not in clock.started
    assert clock.idle == {}
