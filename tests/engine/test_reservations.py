"""Room is reserved for a gang that finds none: in time, and from nobody who would not delay it."""

from collections import Counter
from dataclasses import dataclass, field, replace
from random import Random

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from scheduling.engine.cycle import decide
from scheduling.engine.invariants import violations
from scheduling.engine.machines import GPU
from scheduling.engine.patience import Patience
from scheduling.engine.plan import Admit, Evict, Hold
from scheduling.engine.snapshot import (
    Admission,
    Assignment,
    PodSet,
    Preemption,
    Quota,
    Snapshot,
    Workload,
)
from scheduling.engine.terms import ReclaimWithinCohort
from tests.engine.builders import World, columns, pods, required, world

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


# -- whom a reservation binds ------------------------------------------------------------------


def held_back(*later: Workload, gang_at: float = 100.0) -> dict[str, str]:
    """Two nodes of four GPUs, one of which a job of ten minutes uses; a gang asks for both.

    Returns who starts, and the first blocker of everybody else.
    """
    made = world().nodes(2).queue("cq", 20, None)
    made.running("job", "cq", pods(1, 4), on={"h100-node-01": 1}, at=900.0, duration_s=600.0)
    snapshot = made.build()
    gang = job("gang", gang_at, None, pods(2, 4))
    plan = decide(replace(snapshot, workloads=(*snapshot.workloads, gang, *later)))
    found = {d.workload: "starts" for d in plan.decisions if isinstance(d, Admit)}
    holds = [d for d in plan.decisions if isinstance(d, Hold)]
    return found | {d.workload: d.blockers[0].code.value for d in holds}


def test_who_ends_in_time_fills_the_time_and_nobody_else() -> None:
    assert held_back(job("long", 200.0, None), job("short", 201.0, 500.0)) == {
        "gang": "PROMISED",
        "long": "RESERVED",
        "short": "starts",
    }
    assert held_back(job("too-long", 200.0, 501.0))["too-long"] == "RESERVED"


def test_higher_priority_is_bound_by_nobody() -> None:
    assert held_back(replace(job("urgent", 200.0, None), priority=1))["urgent"] == "starts"


def test_older_work_lets_a_starving_gang_go_first_but_not_for_ever() -> None:
    clock = Clock(
        replace(
            world().nodes(1).queue("cq", 4, None).build(),
            patience=Patience(after_s=60.0, elders_after_s=300.0),
        )
    )
    clock.submit(job("runs", 0.0, None, pods(1, 3)), 1_000.0)
    clock.at(0.0)
    clock.submit(job("elder", 1.0, None, pods(1, 2)), 10.0)
    clock.submit(job("gang", 2.0, None, pods(1, 4)), 10.0)
    clock.at(100.0)
    assert [one.workload for one in clock.snapshot.memory.reservations] == ["elder"]
    clock.submit(job("single", 1.5, None), 10.0)
    clock.at(200.0)
    assert "single" not in clock.started, "it is younger than the elder, and not yet an elder"
    clock.at(301.6)
    assert "single" not in clock.started, "the elder itself is older"


def test_a_claim_of_a_preemptor_is_no_part_of_what_is_reserved() -> None:
    made = world().nodes(1).queue("cq", 8, None)
    made.running("job", "cq", pods(1, 3), on={"h100-node-01": 1}, at=900.0, duration_s=600.0)
    snapshot = made.build()
    gang, small = job("gang", 100.0, None, pods(1, 4)), job("small", 200.0, None)
    first = decide(replace(snapshot, workloads=(*snapshot.workloads, gang, small)))
    (reservation,) = first.memory.reservations
    assert (reservation.workload, reservation.starts_at) == ("gang", 1500.0)
    assert reservation.idle_gpus == 1
    withdrawn = replace(snapshot, workloads=(*snapshot.workloads, small), memory=first.memory)
    second = decide(withdrawn)
    assert second.memory.reservations == ()
    assert [d.workload for d in second.decisions if isinstance(d, Admit)] == ["small"]


def test_a_promise_rests_on_the_ends_of_those_who_have_just_started_as_well() -> None:
    made = world().nodes(1).queue("cq", 100, None)
    made.pending("first", "cq", gpus=2, duration_s=300.0)
    made.pending("gang", "cq", gpus=4).pending("late", "cq")
    plan = decide(made.build())
    assert [d.workload for d in plan.decisions if isinstance(d, Admit)] == ["first"]
    assert [(one.workload, one.starts_at) for one in plan.memory.reservations] == [
        ("gang", 1300.0)
    ]


def test_racks_are_looked_at_whole() -> None:
    """The gang needs one rack: nodes of two racks that empty first are of no use to it."""
    made = world().topology().nodes(4).queue("cq", 16, None)
    made.flavor(topology="datacenter")
    for number, ends in enumerate([100.0, 900.0, 200.0, 300.0], start=1):
        on = {f"h100-node-{number:02}": 1}
        made.running(f"job-{number}", "cq", pods(1, 4), on=on, at=1000.0, duration_s=ends)
    gang = pods(2, 4, topology=required("topology.kubernetes.io/rack"))
    made.pending("gang", "cq", gang)
    (reservation,) = decide(made.build()).memory.reservations
    assert reservation.starts_at == 1300.0
    assert set(reservation.assignments[0].nodes) == {"h100-node-03", "h100-node-04"}


@pytest.mark.parametrize(
    ("gang_queue", "other", "answer"),
    [
        pytest.param(4, "owner", "starts", id="an owner goes before a gang that would borrow"),
        pytest.param(8, "owner", "RESERVED", id="not before one within its own quota"),
        pytest.param(4, "borrower", "RESERVED", id="who would borrow, too, is bound"),
        pytest.param(4, "cq", "RESERVED", id="work of its own queue is bound"),
    ],
)
def test_an_owner_within_its_quota_waits_for_no_gang_beyond_its_own(
    gang_queue: int, other: str, answer: str
) -> None:
    """A gang asks for both nodes; a job of ten minutes has the one, a later job fits the other."""
    made = world().nodes(2).queue("cq", gang_queue).queue("owner", 8).queue("borrower", 0)
    made.running("job", "owner", pods(1, 2), on={"h100-node-01": 1}, at=900.0, duration_s=600.0)
    made.pending("gang", "cq", pods(2, 4), created_at=100.0)
    made.memory = decide(made.build()).memory
    assert [one.workload for one in made.memory.reservations] == ["gang"]
    snapshot = made.pending("later", other, pods(1, 2), created_at=200.0).build()
    plan = decide(snapshot)
    assert violations(snapshot, plan) == ()
    holds = {d.workload: d.blockers[0].code.value for d in plan.decisions if isinstance(d, Hold)}
    starts = {d.workload: "starts" for d in plan.decisions if isinstance(d, Admit)}
    assert (holds | starts)["later"] == answer


def test_an_owner_stays_one_though_its_queue_borrows_of_another_flavor() -> None:
    """The law that watches over reservations must see it as those who make them do."""
    both = (columns("h100-sxm", {GPU: Quota(8)}), columns("old", {"gpu-old": Quota(1)}))
    lent = (columns("h100-sxm", {GPU: Quota(4)}), columns("old", {"gpu-old": Quota(9)}))
    made = (
        world()
        .nodes(2)
        .flavor()
        .flavor("old")
        .queue("cq", groups=lent)
        .queue("owner", groups=both)
    )
    made.running("ends", "owner", pods(1, 2), on={"h100-node-01": 1}, at=900.0, duration_s=600.0)
    old = PodSet("main", 5, {"gpu-old": 1})
    part = Assignment("main", 5, {"gpu-old": "old"})
    made.pending("loan", "owner", old, admission=Admission(900.0, (part,)))
    made.pending("gang", "cq", pods(2, 4), created_at=100.0)
    made.memory = decide(made.build()).memory
    assert [one.workload for one in made.memory.reservations] == ["gang"]
    made.now += 1.0
    snapshot = made.pending("later", "owner", pods(1, 2), created_at=200.0).build()
    plan = decide(snapshot)
    assert "later" in {d.workload for d in plan.decisions if isinstance(d, Admit)}
    assert violations(snapshot, plan) == ()


def test_an_owner_leaves_alone_what_is_kept_where_there_is_other_room() -> None:
    """The first node is as full as the last; it is to empty for a gang that would borrow."""
    made = world().nodes(3).queue("cq", 4).queue("owner", 12)
    made.running("ends", "owner", pods(1, 2), on={"h100-node-01": 1}, at=900.0, duration_s=600.0)
    made.running("stays", "owner", pods(1, 2), on={"h100-node-03": 1}, at=900.0)
    made.pending("gang", "cq", pods(2, 4), created_at=100.0)
    made.memory = decide(made.build()).memory
    made.pending("later", "owner", pods(1, 2), created_at=200.0)
    (start,) = [d for d in decide(made.build()).decisions if isinstance(d, Admit)]
    assert (start.workload, start.assignments[0].nodes) == ("later", {"h100-node-03": 1})


def test_nobody_is_evicted_for_quota_that_is_only_kept_for_a_borrower() -> None:
    """Four of 32 GPUs are free; they are kept for a gang of a queue that holds too much by now."""
    reclaim = Preemption(reclaim_within_cohort=ReclaimWithinCohort.ANY)
    made = world().nodes(4, gpus=8).queue("qa", 8, preemption=reclaim)
    made.queue("qb", 8, preemption=reclaim).queue("qc", 16, preemption=reclaim)
    sizes = {"first": ("qb", 8), "second": ("qc", 8), "third": ("qc", 8), "small": ("qc", 4)}
    for number, (key, (queue, gpus)) in enumerate(sizes.items(), start=1):
        on = {f"h100-node-{number:02}": 1}
        made.running(key, queue, gpus=gpus, on=on, at=900.0, duration_s=100.0 * number + 100.0)
    made.pending("gang", "qc", pods(2, 8)).pending("owner", "qa", gpus=4)
    plan = decide(made.build())
    assert {d.workload for d in plan.decisions if isinstance(d, Admit)} == {"owner"}
    assert not [d for d in plan.decisions if isinstance(d, Evict)]


# -- law ---------------------------------------------------------------------------------------


def check_promises(random: Random) -> None:
    """While everybody ends when it said, a gang that keeps its turn starts when promised."""
    nodes = world().nodes(random.randint(1, 4), gpus=random.choice([2, 4]))
    made = nodes.queue("cq", random.choice([4, 8, 100]), None).build()
    clock = Clock(replace(made, patience=Patience(after_s=None, elders_after_s=1e9)))
    for minute in range(40):
        for number in range(random.choice([0, 1, 1, 2])):
            pod_set = random.choice([pods(1, 1), pods(1, 2), pods(2, 2), pods(3), pods(1, 4)])
            lasts = random.choice([1, 3, 5, 12]) * MINUTE
            name = f"{random.randint(0, 99):02}-{minute}-{number}"
            clock.submit(job(name, minute * MINUTE, lasts, pod_set), lasts)
        clock.at(minute * MINUTE)
        for key, starts in clock.promises.items():
            assert starts == sorted(starts, reverse=True), f"{key} is put off: {starts}"
            if key in clock.started:
                assert clock.started[key] <= starts[-1]


@settings(max_examples=15, deadline=None, phases=(Phase.generate,))
@given(st.integers(0, 2**32 - 1))
def test_nobody_who_is_bound_delays_a_promise(seed) -> None:
    check_promises(Random(seed))


@pytest.mark.long
def test_nobody_who_is_bound_delays_a_promise_in_many_worlds() -> None:
    for seed in range(500):
        check_promises(Random(seed))
