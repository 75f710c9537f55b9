"""Work that backs off is not looked at before its time (``admission.md`` K54)."""

from dataclasses import replace

import pytest

from scheduling.engine.cycle import advance, decide, plan
from scheduling.engine.invariants import violations
from scheduling.engine.plan import Admit, Hold
from scheduling.engine.state import State
from scheduling.engine.terms import BlockerCode, PendingReason, QueueingStrategy
from tests.engine.builders import World, world

NOW = 1000.0


def resting(until: float, **columns: object) -> World:
    made = world().nodes(1).queue("cq", 4, None, **columns)
    return made.pending("rests", "cq", priority=9, not_before=until)


@pytest.mark.parametrize("strategy", QueueingStrategy)
def test_who_rests_is_passed_over_and_keeps_nobody_waiting(strategy: QueueingStrategy):
    snapshot = resting(NOW + 60, queueing_strategy=strategy).pending("other", "cq").build()
    made = decide(snapshot)
    assert violations(snapshot, made) == ()
    admits = [d.workload for d in made.decisions if isinstance(d, Admit)]
    (hold,) = [d for d in made.decisions if isinstance(d, Hold)]
    (blocker,) = hold.blockers
    assert admits == ["other"]
    assert (hold.workload, hold.reason, hold.position) == (
        "rests",
        PendingReason.BACKING_OFF,
        None,
    )
    assert (blocker.code, blocker.facts) == (BlockerCode.BACKOFF, {"until": 1060})
    assert made.look_again_at == NOW + 60


@pytest.mark.parametrize("until", [NOW - 1, NOW])
def test_who_has_rested_starts(until: float):
    made = decide(resting(until).build())
    assert [type(d) for d in made.decisions] == [Admit]


def test_a_kept_state_lets_it_in_when_its_time_has_come():
    state = State(resting(NOW + 60).build())
    assert advance(state, NOW + 59).moves == []
    fresh = State(replace(state.snapshot(), now=NOW + 60))
    for one in (state, fresh):  # kept, and built anew from the frozen value
        (move,) = advance(one, NOW + 60).moves
        assert isinstance(move, Admit)


def test_a_gate_keeps_it_out_after_its_rest_as_well():
    snapshot = resting(NOW + 60).build()
    (work,) = snapshot.workloads
    gated = replace(work, blocked=BlockerCode.GATED.value)
    state = State(replace(snapshot, workloads=(gated,)))
    for at in (NOW, NOW + 61):
        desk = advance(state, at)
        (hold,) = plan(state, desk).decisions
        assert isinstance(hold, Hold)
        assert hold.reason is PendingReason.ADMISSION_GATED


def test_work_without_a_budget_waits_until_the_next_window_and_says_so():
    made = world().nodes(1).queue("cq", 4, None)
    until = {"blocked": BlockerCode.BUDGET_BLOCK.value, "not_before": NOW + 60}
    made = decide(made.pending("broke", "cq", **until).build())
    (hold,) = made.decisions
    assert isinstance(hold, Hold)
    (blocker,) = hold.blockers
    assert (blocker.code, blocker.facts) == (BlockerCode.BUDGET_BLOCK, {"until": 1060})
    assert made.look_again_at == NOW + 60
    over = {"blocked": BlockerCode.BUDGET_BLOCK.value, "not_before": NOW}
    made = decide(world().nodes(1).queue("cq", 4, None).pending("broke", "cq", **over).build())
    assert [type(d) for d in made.decisions] == [Admit]
