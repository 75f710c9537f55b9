"""Who sees which operation, and what it says: requests answered later, and replays alike."""

from typing import Any
from uuid import UUID

from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.urls import reverse

from finops.models import QuotaReplay
from finops.replaying.asking import cancel as cancel_replay
from finops.replaying.showing import problem_words, replay_of, replay_rows
from gpuplatform.common.http import problem
from gpuplatform.common.later import address_of, as_json
from gpuplatform.common.models import Operation, WorkState
from gpuplatform.doors.operations import running
from queues.access import Actor, insist, scope_missing
from queues.choices import Role
from queues.models import User

SHOWN = 200


def listed(actor: Actor) -> list[dict[str, Any]]:
    """Return the newest operations that an actor sees, with replays. 2 queries."""
    rows = _visible(actor).defer("answer", "body")[:SHOWN]
    found = [as_json(row) for row in rows if actor.has_scope(row.scope)]
    found += [replay_json(row) for row in replay_rows(actor)]
    return sorted(found, key=lambda one: one["asked_at"], reverse=True)[:SHOWN]


def found(actor: Actor, uid: UUID) -> Operation | QuotaReplay | None:
    """Return an operation or a replay; None: it is not there for the actor.

    Raises:
        PermissionDenied: it takes a scope that the token does not have.
    """
    row = _visible(actor).defer("answer", "body").filter(pk=uid).first()
    if row is None:
        return replay_of(actor, uid)
    if not actor.has_scope(row.scope):
        raise PermissionDenied(scope_missing(row.scope))
    return row


def told(row: Operation | QuotaReplay) -> dict[str, Any]:
    """Return either as REST tells it."""
    return as_json(row) if isinstance(row, Operation) else replay_json(row)


def end(row: Operation | QuotaReplay, actor: Actor) -> bool:
    """Cancel it. False: it was over."""
    if isinstance(row, Operation):
        return running.cancel(row.pk)
    insist(actor, "may_edit_quota")
    assert isinstance(actor.user, User), "HasScope let somebody in"
    return cancel_replay(row.pk, actor=actor.user)


def _visible(actor: Actor) -> QuerySet[Operation]:
    """Return one's own operations; a token of a team sees those of its like; admins see all."""
    if actor.has_role(Role.ADMIN):
        return Operation.objects.all()
    mine = Operation.objects.filter(asked_by=actor.user)
    if actor.token_team is not None:
        return mine.filter(team_limit=actor.token_team)
    return mine


def replay_json(row: QuotaReplay) -> dict[str, Any]:
    """Return a replay as an operation, with the address of what came out."""
    is_done = row.state == WorkState.DONE
    result = {"status": 200, "url": reverse("api-replay", args=[row.pk])}
    code = str((row.problem or {}).get("code", ""))
    return {
        "uid": str(row.pk),
        "kind": "replay",
        "state": str(row.state),
        "stage": row.stage or None,
        "progress": {"done": row.come, "of": row.whole},
        "request": {"method": "POST", "path": reverse("api-replays")},
        "asked_by": row.asked_name,
        "asked_at": row.asked_at,
        "started_at": row.started_at,
        "finished_at": row.finished_at,
        "url": address_of(row.pk),
        "result": result if is_done else None,
        "problem": problem(500, code.lower(), problem_words(row)) if code else None,
    }
