"""The transition table, and that nobody can write past it."""

import ast
from datetime import timedelta
from pathlib import Path

import pytest

from scheduling import lifecycle
from scheduling.engine.terms import Outcome, Status
from scheduling.models import Admission
from scheduling.steps import FIRST
from tests.scheduling.loop.world import NOON, status, story, work

LATER = NOON + timedelta(hours=1)
MOVES = [*FIRST]
ROOM = Path(lifecycle.__file__).parent


@pytest.mark.django_db
@pytest.mark.parametrize("current", Status)
@pytest.mark.parametrize("to", Status)
def test_only_the_transitions_of_the_table_exist(current: Status, to: Status):
    ended = {"outcome": "failed"} if current is Status.FINISHED else {}
    workload = work("datos", "job", status=current, **ended)
    outcome = Outcome.SUCCEEDED if to is Status.FINISHED else None
    if (current, to) not in MOVES:
        with pytest.raises(AssertionError):
            lifecycle.transition(workload, to, at=LATER, outcome=outcome)
        assert (status(workload), story(workload)) == (current, [])
        return
    assert lifecycle.transition(workload, to, at=LATER, reason="Why", outcome=outcome)
    assert (status(workload), workload.version) == (to, 2)
    event = workload.events.get()
    assert (event.kind, event.at, event.reason) == (
        FIRST[current, to],
        LATER,
        "Why",
    )


@pytest.mark.django_db
def test_a_transition_that_rests_on_an_old_version_is_not_written():
    workload, faster = work("datos", "job"), None
    faster = type(workload).objects.get(pk=workload.pk)
    assert lifecycle.transition(faster, Status.ADMITTED, at=NOON)
    assert not lifecycle.transition(workload, Status.INACTIVE, at=LATER)
    assert not lifecycle.transition(faster, Status.RUNNING, at=LATER, expect_version=1)
    assert (status(workload), story(workload)) == (Status.ADMITTED, ["admitted"])


@pytest.mark.django_db
@pytest.mark.parametrize("current", lifecycle.CANCELLABLE)
def test_cancelling_ends_the_workload_and_asks_for_what_it_holds(current: Status):
    workload = work("datos", "job", status=current)
    held = Admission.objects.create(workload=workload, admitted_at=NOON)
    assert lifecycle.cancel(workload, at=LATER, reason="UserRequest")
    held.refresh_from_db()
    assert (status(workload), workload.outcome, workload.finished_at) == (
        Status.FINISHED,
        "cancelled",
        LATER,
    )
    assert (held.evicted_at, held.eviction_reason, held.released_at) == (LATER, "Cancelled", None)
    assert story(workload) == ["cancelled"]
    assert not lifecycle.cancel(workload, at=LATER)


def writes_a_status(node: ast.AST) -> bool:
    """Return whether a piece of code assigns to ``.status`` or updates a column of that name."""
    if isinstance(node, ast.Assign | ast.AnnAssign | ast.AugAssign):
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        return any(isinstance(t, ast.Attribute) and t.attr == "status" for t in targets)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        words = {word.arg for word in node.keywords}
        named = {leaf.value for leaf in ast.walk(node) if isinstance(leaf, ast.Constant)}
        return (node.func.attr == "update" and "status" in words) or (
            node.func.attr in {"bulk_update", "save"} and "status" in named
        )
    return False


def test_nobody_else_writes_the_status_of_a_workload():
    guilty = [
        f"{path}:{node.lineno}"
        for path in sorted(ROOM.rglob("*.py"))
        if path.name != "lifecycle.py" and "migrations" not in path.parts
        for node in ast.walk(ast.parse(path.read_text()))
        if writes_a_status(node)
    ]
    assert guilty == []
