"""The one way into the audit trail."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from django.contrib.auth.models import AbstractUser
from django.utils.translation import gettext as _

from gpuplatform.common.middleware import current_request_id
from gpuplatform.common.models import AuditEntry
from gpuplatform.common.problems import Problem, Rejected

LEAST_REASON = 10  # characters of what a person says; pages ask for it, programs may say nothing

SYSTEM = "system"
_nobody: ContextVar[str] = ContextVar("nobody", default=SYSTEM)


@contextmanager
def instead_of_somebody(name: str) -> Iterator[None]:
    """Sign what no person does meanwhile with ``name``, which no user name can be."""
    token = _nobody.set(name)
    try:
        yield
    finally:
        _nobody.reset(token)


def record(
    actor: AbstractUser | None,
    action: str,
    subject: tuple[str, str],
    before: Any = None,
    after: Any = None,
    *,
    reason: str = "",
    team: str = "",
) -> None:
    """Write one entry in the current transaction; the arguments are those of :func:`columns`."""
    entry(actor, action, subject, before, after, reason=reason, team=team).save(force_insert=True)


def entry(
    actor: AbstractUser | None,
    action: str,
    subject: tuple[str, str],
    before: Any = None,
    after: Any = None,
    *,
    reason: str = "",
    team: str = "",
) -> AuditEntry:
    """Return an entry that is still to be written; the arguments are those of :func:`columns`."""
    return AuditEntry(**columns(actor, action, subject, before, after, reason=reason, team=team))


def columns(
    actor: AbstractUser | None,
    action: str,
    subject: tuple[str, str],
    before: Any = None,
    after: Any = None,
    *,
    reason: str = "",
    team: str = "",
) -> dict[str, Any]:
    """Return what the row of an entry says, for who writes many of them at once.

    Args:
        actor: who acted; None for the system itself.
        action: ``noun.verb``, e.g. ``cluster_queue.updated``.
        subject: kind and name of the object, e.g. ``("ClusterQueue", "cq-datos")``.
        before: JSON-able state before, None for a creation.
        after: JSON-able state after, None for a deletion.
        reason: the sentence the actor gave, "" where none was given.
        team: slug of the team concerned, so that its lead may read the entry.

    Raises:
        Rejected: a person gave a reason that says nothing.
    """
    if actor is not None and 0 < len(reason.strip()) < LEAST_REASON:
        words = _("a reason has at least %(n)d characters: it stands in the audit trail")
        raise Rejected([Problem("reason", "reason_too_short", words % {"n": LEAST_REASON})])
    return {
        "actor_id": actor.pk if actor else None,
        "actor_name": actor.get_username() if actor else _nobody.get(),
        "action": action,
        "subject_kind": subject[0],
        "subject": subject[1],
        "team": team,
        "reason": reason,
        "before": before,
        "after": after,
        "request_id": current_request_id(),
    }
