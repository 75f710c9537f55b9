"""What becomes of held work by itself: one table of cases for each rule."""

from dataclasses import replace
from datetime import timedelta

import pytest

from scheduling.engine.terms import EvictionReason, Outcome
from scheduling.members import End, Member, MemberEnd
from scheduling.verdicts import (
    Action,
    Deactivate,
    Event,
    Finish,
    Limits,
    Policy,
    Requeue,
    Restart,
    Run,
    Verdict,
    answer_to,
    backoff_s,
    judge,
    next_instant,
    read_policies,
)
from tests.scheduling.loop.world import NOON

LIMITS = Limits(ready_s=1800, recovery_s=600)
FINISHED, FAILED, LOST = End.FINISHED, End.FAILED, End.LOST


def at(seconds: float):
    return NOON + timedelta(seconds=seconds)


def run(**changes: object) -> Run:
    return replace(Run(NOON, NOON, started_at=NOON, pods={"worker": 2}), **changes)


def end(seconds: float, how: End, code: int | None = None, slot: int = 0, name: str = "worker"):
    return MemberEnd(Member(name, "n1", slot), how, at(seconds), code)


def said(verdict: Verdict | None) -> tuple[str, float, str]:
    """Return kind, instant and reason of a verdict."""
    if verdict is None:
        return "", 0, ""
    kind = verdict.outcome.value if isinstance(verdict, Finish) else type(verdict).__name__
    return kind, (verdict.at - NOON).total_seconds(), str(verdict.reason)


# ---- members -----------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("changes", "ends", "expected"),
    [
        ({}, [], ("", 0, "")),
        ({}, [end(5, FINISHED)], ("", 0, "")),
        ({}, [end(5, FINISHED), end(9, FINISHED, slot=1)], ("succeeded", 9, "MembersOver")),
        ({}, [end(5, FAILED, 137)], ("Restart", 5, "MemberFailed")),
        ({}, [end(5, LOST)], ("Restart", 5, "MemberFailed")),
        ({"retries": 3}, [end(5, FAILED)], ("failed", 5, "RetryLimitExceeded")),
        ({"max_retries": 0}, [end(5, FAILED)], ("failed", 5, "RetryLimitExceeded")),
        ({"max_retries": 9, "retries": 8}, [end(5, FAILED)], ("Restart", 5, "MemberFailed")),
        ({"on_failure": "fail"}, [end(5, FAILED, 1)], ("failed", 5, "MemberFailed")),
        ({"on_failure": "keep"}, [end(5, FAILED, 1)], ("", 0, "")),
        (
            {"on_failure": "keep"},
            [end(5, FAILED, 1), end(9, FINISHED, slot=1)],
            ("failed", 9, "MembersOver"),
        ),
        (
            {"on_failure": "keep", "min_member": 1},
            [end(5, FAILED, 1), end(9, FINISHED, slot=1)],
            ("succeeded", 9, "MembersOver"),
        ),
        ({"min_success": 1}, [end(5, FINISHED)], ("succeeded", 5, "EnoughSucceeded")),
        # the first that happened counts, whatever the order in which it was told
        ({}, [end(9, FAILED, 1), end(5, FINISHED, slot=1)], ("Restart", 9, "MemberFailed")),
    ],
)
def test_what_follows_from_members_that_are_over(changes, ends, expected):
    assert said(judge(run(**changes, ends=ends), LIMITS, at(60))) == expected


def policy(action: Action, *events: Event, code: int | None = None, pod_set: str = "") -> Policy:
    return Policy(action, events, code, pod_set)


@pytest.mark.parametrize(
    ("policies", "how", "expected"),
    [
        ([policy(Action.TERMINATE, Event.FAILED)], end(5, FAILED, 1), "failed"),
        ([policy(Action.ABORT, Event.FAILED)], end(5, FAILED, 1), "Deactivate"),
        ([policy(Action.RESTART, Event.FAILED)], end(5, FAILED, 1), "Restart"),
        ([policy(Action.COMPLETE, Event.FAILED)], end(5, FAILED, 1), "succeeded"),
        ([policy(Action.TERMINATE, Event.EVICTED)], end(5, LOST), "failed"),
        ([policy(Action.TERMINATE, Event.EVICTED)], end(5, FAILED, 1), ""),
        ([policy(Action.ABORT, Event.ANY)], end(5, LOST), "Deactivate"),
        ([policy(Action.TERMINATE, code=42)], end(5, FAILED, 42), "failed"),
        ([policy(Action.TERMINATE, code=42)], end(5, FAILED, 41), ""),
        ([policy(Action.COMPLETE, Event.COMPLETED)], end(5, FINISHED, name="chief"), "succeeded"),
        ([policy(Action.COMPLETE, Event.ANY)], end(5, FINISHED, name="chief"), "succeeded"),
        ([policy(Action.RESTART, Event.ANY)], end(5, FINISHED, name="chief"), ""),
        ([policy(Action.COMPLETE, Event.COMPLETED)], end(5, FINISHED), ""),  # one of two workers
        # what one task says comes before what the job says
        (
            [
                policy(Action.TERMINATE, Event.FAILED),
                policy(Action.RESTART, Event.FAILED, pod_set="worker"),
            ],
            end(5, FAILED, 1),
            "Restart",
        ),
        ([policy(Action.RESTART, Event.FAILED, pod_set="chief")], end(5, FAILED, 1), ""),
    ],
)
def test_policies_about_members_are_followed(policies, how, expected):
    kept = read_policies(one.as_json() for one in policies)
    asked = run(pods={"worker": 2, "chief": 1}, on_failure="keep", policies=kept, ends=[how])
    assert said(judge(asked, LIMITS, at(60)))[0] == expected


def test_a_restart_by_policy_is_counted_as_well():
    kept = (policy(Action.RESTART, Event.FAILED),)
    asked = run(policies=kept, retries=3, on_failure="keep", ends=[end(5, FAILED, 1)])
    assert said(judge(asked, LIMITS, at(60))) == ("failed", 5, "RetryLimitExceeded")


def test_the_first_policy_about_an_eviction_answers_it():
    kept = [policy(Action.ABORT, Event.EVICTED), policy(Action.RESTART, Event.ANY)]
    assert answer_to(kept, Event.EVICTED) is Action.ABORT
    assert answer_to(kept[1:], Event.EVICTED) is Action.RESTART
    assert answer_to([], Event.EVICTED) is None


# ---- readiness ---------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("changes", "due", "cause"),
    [
        ({"started_at": None}, 1800, "WaitForStart"),
        ({"started_at": None, "begun_at": at(100)}, 1900, "WaitForStart"),
        ({"started_at": None, "begun_at": at(100), "attempt": 2}, 700, "WaitForRecovery"),
        ({"unready_since": at(50)}, 650, "WaitForRecovery"),
        ({}, None, ""),
    ],
)
def test_pods_may_take_so_long_to_be_ready(changes, due, cause):
    asked = run(**changes)
    assert next_instant(asked, LIMITS, NOON) == (None if due is None else at(due))
    if due is None:
        return
    assert judge(asked, LIMITS, at(due - 1)) is None
    verdict = judge(asked, LIMITS, at(due + 999))
    assert isinstance(verdict, Requeue)
    assert (verdict.at, verdict.reason) == (at(due), EvictionReason.PODS_READY_TIMEOUT)
    assert verdict.facts["cause"] == cause


@pytest.mark.parametrize("seconds", [0, -1])
def test_a_platform_may_wait_for_ever(seconds):
    asked = run(started_at=None)
    assert judge(asked, Limits(ready_s=seconds), at(10**9)) is None


@pytest.mark.parametrize(("times", "kind"), [(0, "Requeue"), (1, "Requeue"), (2, "Deactivate")])
def test_who_was_not_ready_too_often_is_tried_no_more(times, kind):
    asked = run(started_at=None, requeues=times)
    verdict = judge(asked, replace(LIMITS, requeues=2), at(9999))
    assert type(verdict).__name__ == kind
    if kind == "Deactivate":
        assert verdict.reason == "RequeuingLimitExceeded"


def test_rests_double_up_to_the_longest():
    """The row of ``admission.md`` K54."""
    rests = [backoff_s(times, 60, 3600) for times in range(1, 9)]
    assert rests == [60, 120, 240, 480, 960, 1920, 3600, 3600]
    assert backoff_s(10**6, 60, 3600) == 3600


# ---- execution time ----------------------------------------------------------------------------
def test_time_in_earlier_admissions_counts():
    asked = run(max_execution_s=100, executed_s=70.0)
    assert judge(asked, LIMITS, at(29)) is None
    verdict = judge(asked, LIMITS, at(500))
    assert verdict == Deactivate(at(30), "MaximumExecutionTimeExceeded", {"limit_s": 100})


def test_of_several_things_the_first_counts():
    asked = run(max_execution_s=100, ends=[end(90, FAILED, 1)])
    assert said(judge(asked, LIMITS, at(500)))[0] == "Restart"
    asked = replace(asked, ends=[end(110, FAILED, 1)])
    assert said(judge(asked, LIMITS, at(500)))[0] == "Deactivate"


def test_a_restart_says_the_how_manieth_it_is():
    verdict = judge(run(retries=1, ends=[end(5, FAILED, 137)]), LIMITS, at(9))
    assert isinstance(verdict, Restart)
    assert (verdict.facts["retry"], verdict.facts["of_retries"]) == (2, 3)
    assert (verdict.facts["exit_code"], verdict.facts["node"]) == (137, "n1")


def test_an_outcome_needs_enough_that_succeeded():
    ends = [end(5, FINISHED), end(6, FAILED, 1, slot=1)]
    asked = run(on_failure="keep", min_success=2, ends=ends)
    verdict = judge(asked, LIMITS, at(9))
    assert isinstance(verdict, Finish)
    assert verdict.outcome is Outcome.FAILED
