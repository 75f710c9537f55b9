"""What was forecast for a gang is kept while nothing changes that it rests on, and no longer."""

from dataclasses import replace

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from scheduling.engine.cycle import advance, decide, plan
from scheduling.engine.outlook import Outlook, Start
from scheduling.engine.patience import Patience
from scheduling.engine.snapshot import Admission, Assignment, Workload
from scheduling.engine.state import State
from tests.engine.builders import pods, world

NODES, GPUS = 4, 4


def busy(patience_s: float = 0.0, *lasts: float) -> State:
    """A cluster on which one-GPU jobs stand everywhere, the oldest on the first node."""
    made = world().nodes(NODES).queue("cq", 2 * NODES * GPUS, None)
    snapshot = replace(made.build(), patience=Patience(patience_s, elders_after_s=1e9))
    state = State(snapshot)
    for number in range(NODES * GPUS):
        state.now = 1000.0 + 100 * number
        duration = lasts[number % len(lasts)] if lasts else None
        state.put(job(f"job-{number:02}", state.now, duration_s=duration))
        advance(state, state.now)
    return state


def job(key: str, at: float, gpus: int = 1, duration_s: float | None = None, **more) -> Workload:
    return Workload(key, key, "cq", 0, at, (pods(gpus=gpus),), duration_s=duration_s, **more)


def gang(key: str, at: float, count: int, gpus: int) -> Workload:
    return Workload(key, key, "cq", 0, at, (pods(count, gpus),))


def held(state: State) -> set[str]:
    (one,) = state.reservations.standing()
    return {node for assignment in one.assignments for node in assignment.nodes}


def beside(state: State) -> list[str]:
    """Running jobs on nodes that are not held, the oldest first."""
    kept = held(state)
    work = (w for w in state.workloads.values() if w.admission is not None)
    free = (w for w in work if not kept & set(w.admission.assignments[0].nodes))
    return [w.key for w in sorted(free, key=lambda w: w.admission.admitted_at)]


def test_only_what_the_forecast_rests_on_costs_a_new_search():
    state = busy()
    state.put(gang("gang", 9000.0, 1, GPUS))
    for now in (9000.0, 9010.0):  # its turn, and the first look at it
        advance(state, now)
    before, kept = state.forecasts, held(state)
    young = [
        w.key for w in state.workloads.values() if w.admission and w.admission.admitted_at > 2400
    ]
    on_kept = [k for k in young if set(state.workloads[k].admission.assignments[0].nodes) & kept]
    state.drop(on_kept[-1])  # the youngest of those that must leave anyway
    advance(state, 9020.0)
    assert (state.forecasts, held(state)) == (before, kept)
    state.drop(beside(state)[0])  # old, and elsewhere: its node is as useless as before
    advance(state, 9030.0)
    assert (state.forecasts, held(state)) == (before, kept)
    for number in range(4):  # what usually comes decides which of the nodes are held
        state.put(job(f"large-{number}", 9035.0, 3))
    advance(state, 9035.0)
    assert state.forecasts > before
    for key in beside(state):  # until another node is empty
        state.drop(key)
    assert advance(state, 9040.0).moves[0].workload == "gang"


def step(state: State, draw, number: int, lasts: list[float | None]) -> None:
    """Some work ends, some comes; the clock goes on."""
    running = sorted(k for k, w in state.workloads.items() if w.admission is not None)
    chosen = (
        st.lists(st.sampled_from(running), unique=True, max_size=2) if running else st.just([])
    )
    for key in draw(chosen):
        state.drop(key)
    for i in range(draw(st.integers(0, 3))):
        size, end = draw(st.sampled_from([1, 1, 2, 3, 4])), draw(st.sampled_from(lasts))
        new = job(f"new-{number:02}-{i}", state.now, size, end)
        state.put(replace(new, priority=draw(st.sampled_from([0, 0, 5]))))
    if draw(st.booleans()):
        shape = draw(st.sampled_from([(1, 4), (1, 3), (2, 2), (2, 4)]))
        state.put(gang(f"gang-{number:02}", state.now, *shape))
    state.now += draw(st.sampled_from([0.0, 5.0, 40.0, 100.0]))


UNKNOWN, SOME, ALL = [None], [None, None, 30.0, 4000.0], [200.0, 2000.0, 8000.0]


def check(lasts: list[float | None], patience_s: float, draw) -> None:
    known = [20_000.0, 9000.0, 14_000.0] if lasts is ALL else []
    state = busy(patience_s, *known)
    for number in range(10):
        step(state, draw, number, lasts)
        expected = decide(state.snapshot())
        kept = plan(state, advance(state, state.now))
        assert (kept.decisions, kept.memory) == (expected.decisions, expected.memory)


EACH = pytest.mark.parametrize("lasts", [UNKNOWN, SOME, ALL], ids=["unknown", "some", "all"])


@EACH
@settings(max_examples=6, deadline=None, phases=[Phase.generate])
@given(st.sampled_from([0.0, 50.0]), st.data())
def test_a_kept_forecast_is_what_a_fresh_state_finds(lasts, patience_s, data):
    check(lasts, patience_s, data.draw)


@pytest.mark.long
@EACH
@settings(max_examples=400, deadline=None, phases=[Phase.generate])
@given(st.sampled_from([0.0, 50.0]), st.data())
def test_a_kept_forecast_is_what_a_fresh_state_finds_at_length(lasts, patience_s, data):
    check(lasts, patience_s, data.draw)


def running(key: str, began: float, lasts: float | None, queue: str | None = "cq") -> Workload:
    held = Assignment("main", 1, {}, {"h100-node-01": 1})
    return replace(job(key, began, 1, lasts), queue=queue, admission=Admission(began, (held,)))


GUESSED, KNOWN = running("last", 500.0, None), running("last", 500.0, 1000.0)  # until 1500


@pytest.mark.parametrize(
    ("last", "other", "same"),
    [
        (GUESSED, running("younger", 600.0, None), True),
        (GUESSED, running("older", 400.0, None), False),
        (GUESSED, running("with an end", 600.0, 9.0), False),
        (KNOWN, running("ends before", 900.0, 500.0), True),
        (KNOWN, running("ends later", 900.0, 900.0), False),
        (KNOWN, running("without an end", 900.0, None), False),
        (KNOWN, running("outside every queue", 900.0, 500.0, queue=None), False),
    ],
    ids=lambda value: value.key if isinstance(value, Workload) else None,
)
def test_work_that_comes_changes_a_forecast_unless_it_leaves_before_the_last_one(
    last, other, same
):
    ground = State(world().nodes(1).build()).atlas.ground
    end = 1500.0 if last is KNOWN else 9999.0
    start = Start(end, (), last, tuple(ground.empty))
    outlook = Outlook(job("gang", 0.0), (), start, ground, promised=last is KNOWN)
    outlook.came(other)
    assert outlook.holds is same
