"""Whatever a trace is: nothing is promised twice, no room stays empty that somebody could use."""

from dataclasses import replace
from random import Random

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from scheduling.bench.philly import jobs_of
from scheduling.bench.philly_rules import Rules, run
from scheduling.engine.machines import GPU
from scheduling.engine.profile import Profile
from scheduling.replay.deciders import Everybody, Heads
from scheduling.replay.player import play
from scheduling.replay.policies import policy
from scheduling.replay.trace import Trace
from tests.scheduling.replay.scenes import comes, of, site

QUEUES = ("a", "b", "c")
PROFILES = st.sampled_from([Profile.recommended(), Profile.kueue()])


@st.composite
def traces(draw) -> Trace:
    arrivals = []
    for number in range(draw(st.integers(1, 25))):
        at, runs = draw(st.integers(0, 60)) * 10.0, draw(st.integers(0, 30)) * 10.0
        gpus, pods = draw(st.sampled_from([(1, 1), (2, 1), (4, 1), (4, 2), (1, 3)]))
        queue = draw(st.sampled_from(QUEUES))
        priority = draw(st.sampled_from([0, 0, 3]))
        one = comes(f"{number:02}", at, runs, gpus, queue, pods)
        arrivals.append(replace(one, workload=replace(one.workload, priority=priority)))
    return of(*arrivals)


def three(*names: str):
    return policy("+".join(names or ("as-given",))).site(site(3, 4, a=4, b=6, c=2))


@settings(max_examples=15, deadline=None)
@given(traces(), PROFILES, st.sampled_from(["as-given", "reclaim", "strict", "fair-share"]))
def test_a_replay_twice_is_the_same(trace, profile, name):
    assert play(three(name), trace, profile) == play(three(name), trace, profile)


@settings(max_examples=15, deadline=None)
@given(traces(), st.randoms(use_true_random=False), PROFILES)
def test_the_order_of_rows_means_nothing(trace, random: Random, profile):
    shuffled = list(trace.arrivals)
    random.shuffle(shuffled)
    assert play(three(), of(*shuffled), profile) == play(three(), trace, profile)


@pytest.fixture
def watched(monkeypatch):
    """Every cycle of a replay, looked at when it has ended."""
    looks = []

    def watch(kind, check):
        decide = kind.decide

        def looked(self, now):
            found = decide(self, now)
            check(self)
            looks.append(now)
            return found

        monkeypatch.setattr(kind, "decide", looked)

    watch(Everybody, lambda one: check_room(one.state.workloads.values()))
    watch(Heads, lambda one: check_room(one.works.values(), on_nodes=False))
    return looks


def check_room(workloads, *, on_nodes: bool = True) -> None:
    """No node holds more GPUs than it has, nor all queues more, and every gang stands whole.

    Kueue counts on nodes only where a flavor has a topology.
    """
    held = [work for work in workloads if work.admission is not None]
    assert sum(p.count * p.requests[GPU] for work in held for p in work.pod_sets) <= 12
    taken: dict[str, int] = {}
    for work in held:
        for pod_set, standing in zip(work.pod_sets, work.admission.assignments, strict=True):
            assert standing.count == pod_set.count
            assert sum(standing.nodes.values()) == (pod_set.count if on_nodes else 0)
            for node, pods in standing.nodes.items():
                taken[node] = taken.get(node, 0) + pods * pod_set.requests[GPU]
    assert all(gpus <= 4 for gpus in taken.values()), taken


@pytest.mark.parametrize("name", ["as-given", "reclaim", "durations-declared"])
@pytest.mark.parametrize("profile", [Profile.recommended(), Profile.kueue()])
def test_no_node_ever_holds_more_than_it_has(watched, name, profile):
    @settings(max_examples=8, deadline=None, phases=[Phase.generate])
    @given(traces())
    def law(trace):
        tape = play(three(name), policy(name).trace(trace), profile)
        assert len(tape.stays) + len(tape.unfinished) == len(trace.arrivals)
        assert all(stay.waited_s >= 0 for stay in tape.stays)

    law()
    assert watched


@settings(max_examples=15, deadline=None)
@given(traces())
def test_without_reservation_nobody_waits_beside_room_for_it(trace):
    """Work conservation, on quota alone: while somebody waits, its size is not free."""
    bare = three("quota-only", "no-reservation")
    tape = play(bare, trace)
    stays = {stay.key: stay for stay in tape.stays}
    for one in trace.arrivals:
        stay = stays[one.workload.key]
        began = stay.finished_s - one.runs_s
        if began == stay.submitted_s:
            continue
        for now in sorted(
            {s.finished_s for s in tape.stays} | {s.submitted_s for s in tape.stays}
        ):
            if stay.submitted_s <= now < began:
                assert 12 - held_at(tape, trace, now) < stay.gpus


def held_at(tape, trace: Trace, now: float) -> int:
    runs = {one.workload.key: one.runs_s for one in trace.arrivals}
    return sum(s.gpus for s in tape.stays if s.finished_s - runs[s.key] <= now < s.finished_s)


@settings(max_examples=40, deadline=None)
@given(traces(), st.booleans())
def test_isolated_queues_are_what_the_published_rules_say_job_by_job(trace, strict):
    plain = (replace(one.workload, priority=0) for one in trace.arrivals)
    fits = {"a": 4, "b": 6, "c": 2}
    work = [
        replace(one, workload=work)
        for one, work in zip(trace.arrivals, plain, strict=True)
        if one.gpus <= fits[work.queue]
    ]
    trace = of(*work)
    tape = play(three("isolated", "strict" if strict else "best-effort", "quota-only"), trace)
    ended = run(jobs_of(trace), fits, Rules(isolated=True, strict=strict))
    ours = {stay.key: stay.finished_s for stay in tape.stays}
    assert ours == {a.workload.key: ended[n] for n, a in enumerate(trace.arrivals)}
