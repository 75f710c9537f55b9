"""Alerts: which kinds there are, who looks after each, whom they concern, and their rows.

An alert is a row from when something begins to hold until it ends. Each kind (a code of the
registry of reasons) belongs to one owner, who alone raises and clears it. A room names its kinds
when it starts::

    told = {Audience.FINANCE, Audience.LEADS}
    register("budgets", [Kind("BUDGET_EXHAUSTED", told, scope="cost:read")])

and says, as often as it looks, everything that holds now; what it says no more is over::

    spent = Diagnostic("BUDGET_EXHAUSTED", "Budget/datos", "", numbers)
    follow("budgets", [Concern(spent, team_id=datos.pk)])

Pages, REST, metrics and mail then know it. Whoever says the same twice changes nothing.
"""

import logging
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from django.db import transaction

from gpuplatform.common import clock
from gpuplatform.common.diagnostics import Diagnostic
from queues.access import Actor
from scheduling.models import Alert

logger = logging.getLogger(__name__)
Identity = tuple[str, str, str]  # code, subject and key: what stands once


class Audience(StrEnum):
    """Whom a kind of alert concerns: they are told of it by mail."""

    ADMINS = "admins"
    FINANCE = "finance"
    LEADS = "leads"  # of the alert's team


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of alert.

    ``open_to_all``: everybody may read it, because it names nothing that is somebody's; otherwise
    readers of everything, and the leads of its team where it concerns them. ``scope``: what a
    token needs to read it.
    """

    code: str
    audience: Collection[Audience]
    open_to_all: bool = False
    scope: str = "read"


@dataclass(frozen=True, slots=True)
class Concern:
    """Something that holds now. ``key`` tells alerts apart that share code and subject.

    ``team_id``: whose leads it concerns; None: no team's.
    """

    finding: Diagnostic
    key: str = ""
    team_id: int | None = None

    @property
    def identity(self) -> Identity:
        """Return what makes two concerns the same one, with whichever numbers."""
        return self.finding.code, self.finding.subject, self.key


KINDS: dict[str, tuple[str, Kind]] = {}  # owner and kind by code


def register(owner: str, kinds: Iterable[Kind]) -> None:
    """Let ``owner`` raise and clear these kinds, and nobody else; the room calls it at its start.

    Raises:
        ValueError: another owner has one of them.
    """
    for kind in kinds:
        holder, _ = KINDS.get(kind.code, (owner, kind))
        if holder != owner:
            raise ValueError(f"alerts {kind.code} belong to {holder}, not to {owner}")
        KINDS[kind.code] = owner, kind


def registered() -> dict[str, Kind]:
    """Return all kinds by code."""
    return {code: kind for code, (_owner, kind) in KINDS.items()}


def codes_of(owner: str) -> frozenset[str]:
    """Return the codes that an owner looks after."""
    return frozenset(code for code, (holder, _kind) in KINDS.items() if holder == owner)


def may_read(code: str, team_id: int | None, actor: Actor) -> bool:
    """Return whether somebody may read an alert; one that nobody looks after any more: no team."""
    _owner, kind = KINDS.get(code, ("", Kind(code, ())))
    if not actor.has_scope(kind.scope):
        return False
    concerned = Audience.LEADS in kind.audience and actor.leads(team_id)
    return actor.sees_everything or kind.open_to_all or concerned


@transaction.atomic
def follow(owner: str, concerns: Iterable[Concern], now: datetime | None = None) -> int:
    """Bring an owner's rows up to what holds now; return how many were raised or cleared.

    ``concerns`` is everything that holds, with today's numbers. Nothing changed: nothing written.

    Raises:
        ValueError: one of them is of a kind that ``owner`` has not registered.
    """
    now = now or clock.now()
    found = {one.identity: one for one in concerns}
    mine = codes_of(owner)
    if strangers := {code for code, _subject, _key in found} - mine:
        raise ValueError(f"{owner} has not registered alerts {', '.join(sorted(strangers))}")
    rows = Alert.objects.filter(code__in=mine, cleared_at=None)
    standing = {(row.code, row.subject, row.key): row for row in rows}
    over = [standing[key] for key in standing.keys() - found.keys()]
    for alert in over:
        alert.cleared_at = max(now, alert.raised_at)
        alert.save(update_fields=["cleared_at"])
        logger.info("alert cleared: %s", alert)
    raised = [_row(found[key], now) for key in sorted(found.keys() - standing.keys())]
    Alert.objects.bulk_create(raised, ignore_conflicts=True)
    for alert in raised:
        logger.warning("alert raised: %s", alert)
    for key in standing.keys() & found.keys():
        _renew(standing[key], found[key])
    return len(raised) + len(over)


def _row(concern: Concern, now: datetime) -> Alert:
    code, subject, key = concern.identity
    facts = dict(concern.finding.numbers)
    return Alert(
        code=code, subject=subject, key=key, facts=facts, team_id=concern.team_id, raised_at=now
    )


def _renew(alert: Alert, concern: Concern) -> None:
    """Write today's numbers where they are others."""
    facts = dict(concern.finding.numbers)
    if (alert.facts, alert.team_id) != (facts, concern.team_id):
        alert.facts, alert.team_id = facts, concern.team_id
        alert.save(update_fields=["facts", "team"])
