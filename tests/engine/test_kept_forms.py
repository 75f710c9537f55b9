"""A kept state leads to the same plan as a fresh one, whatever form the work has."""

from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from scheduling.engine.cycle import advance, decide, plan
from scheduling.engine.invariants import violations
from scheduling.engine.patience import Patience
from scheduling.engine.snapshot import Snapshot, Workload
from scheduling.engine.state import State
from scheduling.engine.tree import queue_key
from tests.engine.builders import H100, RECLAIM_LOWER, pods, world
from tests.engine.strategies import worlds


@st.composite
def formed_worlds(draw) -> Snapshot:
    """Worlds in which some gangs are content with fewer pods, and some work has a known end."""
    snapshot = draw(worlds())
    work = []
    for workload in snapshot.workloads:
        more = draw(st.sampled_from([0, 0, 2]))
        pod_sets = tuple(
            replace(p, count=p.count + more, min_count=p.count if more else None)
            for p in workload.pod_sets
        )
        lasts = draw(st.sampled_from([None, None, 10.0, 35.0, 80.0]))
        work.append(replace(workload, pod_sets=pod_sets, duration_s=lasts))
    patience = Patience(draw(st.sampled_from([None, 0.0, 1015.0, 3600.0])), elders_after_s=1035.0)
    return replace(snapshot, workloads=tuple(work), patience=patience)


def changed(draw, workload: Workload) -> Workload:
    """One thing that happens to running work: pods finish, come back, or are shed."""
    first = workload.pod_sets[0]
    done = draw(st.integers(0, first.count))
    if draw(st.booleans()):
        return replace(workload, reclaimable={first.name: done})
    shed = replace(first, count=max(1, first.count - done), min_count=None)
    return replace(workload, pod_sets=(shed, *workload.pod_sets[1:]))


def grown(draw, workload: Workload, number: int) -> Workload:
    pod_sets = tuple(
        replace(p, count=p.count + draw(st.integers(0, 2)), min_count=None)
        for p in workload.pod_sets
    )
    return replace(
        workload,
        key=f"{workload.key}.{number}",
        pod_sets=pod_sets,
        admission=None,
        reclaimable={},
        replaces=workload.key,
    )


@settings(max_examples=30, deadline=None)
@given(formed_worlds(), st.data())
def test_a_kept_state_and_a_fresh_one_agree_about_every_form(snapshot, data):
    state = State(snapshot)
    for number in range(6):
        fresh = state.snapshot()
        expected = decide(fresh)
        assert violations(fresh, expected) == ()
        desk = advance(state, state.now)
        kept = plan(state, desk)
        assert (kept.decisions, kept.memory) == (expected.decisions, expected.memory)
        _live_on(state, data.draw, number)


def _live_on(state: State, draw, number: int) -> None:
    state.now += 10.0
    for key in sorted(state.releasing):
        state.put(replace(state.workloads[key], admission=None, releasing=False))
    running = sorted(
        key for key, w in state.workloads.items() if w.admission is not None and not w.releasing
    )
    for key in (
        draw(st.lists(st.sampled_from(running), unique=True, max_size=3)) if running else ()
    ):
        work = state.workloads[key]
        event = draw(st.sampled_from(["change", "change", "grow", "grow", "end"]))
        if event == "change":
            state.put(changed(draw, work))
        elif event == "grow":
            state.put(grown(draw, work, number))
        else:
            state.drop(key)


def test_what_is_kept_for_a_difference_ends_with_its_original():
    made = world().nodes(2).queue("cq", 6, None, preemption=RECLAIM_LOWER)
    made.running("old", "cq", pods(4), on={"h100-node-01": 4})
    made.running("other", "cq", gpus=2, on={"h100-node-02": 1})
    made.pending("new", "cq", pods(6), priority=9, replaces="old")
    state = State(made.build())
    advance(state, state.now)
    assert state.claims.keys() == {"new"}
    state.drop("old")
    assert state.claims.keys() == frozenset()
    desk = advance(state, state.now)
    assert [move.workload for move in desk.moves] == []  # six pods wait for the other to leave
    state.drop("other")
    (admit,) = advance(state, state.now).moves
    assert (admit.workload, admit.assignments[0].count) == ("new", 6)


def test_what_had_finished_before_an_admission_is_charged_neither_then_nor_later():
    made = world().queue("cq", 4, None).pending("w", "cq", pods(4), reclaimable={"main": 3})
    state = State(made.build())
    advance(state, state.now)
    used = state.books.now.ledger.used
    assert used(queue_key("cq"), H100) == 1
    state.drop("w")
    assert used(queue_key("cq"), H100) == 0
