"""What happened, read from rows that others write: no service knows of webhooks.

Each feed is a growing sequence of ids, or of instants. A row with a lower id may be committed
after one with a higher id, so the last ``OVERLAP`` rows are read again while they are fresh; a
delivery is written once for an event's ``key`` all the same.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Max, Q
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from finops.models import PeriodStep
from gpuplatform.common.diagnostics import Diagnostic
from gpuplatform.doors.models import FeedMark
from scheduling.alerting import Audience, registered
from scheduling.models import Alert, WorkloadEvent

OVERLAP, FRESH = 500, timedelta(minutes=10)
MOST = 2_000  # rows of a feed in one run; the next run goes on
BUDGETS = ("BUDGET_THRESHOLD", "BUDGET_EXHAUSTED", "BUDGET_FORECAST")
PING = "ping"  # asked for by a person
TYPES: Mapping[str, str | Promise] = {
    "workload.submitted": _("work was submitted"),
    "workload.admitted": _("work was given quota and nodes"),
    "workload.started": _("all pods of a workload are ready"),
    "workload.restarted": _("a member failed and the work starts anew"),
    "workload.evicted": _("work gives back what it holds and waits again"),
    "workload.deactivated": _("work was deactivated"),
    "workload.reactivated": _("work was reactivated"),
    "workload.finished": _("work has ended"),
    "workload.cancelled": _("work was cancelled"),
    "alert.raised": _("an alert begins to hold"),
    "alert.cleared": _("an alert has ended"),
    "budget.raised": _("a budget has reached a threshold, is gone or will be"),
    "budget.cleared": _("an alert about a budget has ended"),
    "month.put_forward": _("a month is put forward"),
    "month.reviewed": _("a month is reviewed"),
    "month.sent_back": _("a month is sent back"),
    "month.closed": _("a month is closed"),
}


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened.

    ``team_id``: whose leads may know of it, None: nobody's; ``open_to_all``: everybody may.
    """

    key: str
    type: str
    at: datetime
    data: Mapping[str, Any] = field(default_factory=dict)
    team_id: int | None = None
    open_to_all: bool = False


Feed = Callable[[FeedMark, datetime], Iterator[Event]]


def _since(mark: FeedMark, now: datetime) -> Q:
    """Return which rows of a sequence are to be read: the new ones, and fresh ones again."""
    fresh = Q(pk__gt=mark.number - OVERLAP, at__gte=now - FRESH)
    return Q(pk__gt=mark.number) | fresh


def workloads(mark: FeedMark, now: datetime) -> Iterator[Event]:
    """Yield what happened to workloads: names and state, and nothing of other teams' work."""
    kinds = [name.partition(".")[2] for name in TYPES if name.startswith("workload.")]
    rows = WorkloadEvent.objects.filter(_since(mark, now), kind__in=kinds).order_by("pk")
    for row in rows.select_related("workload__team")[:MOST]:
        mark.number, work = max(mark.number, row.pk), row.workload
        data = {
            "uid": str(work.pk),
            "namespace": work.namespace,
            "name": work.name,
            "kind": work.kind,
            "queue": work.queue_name,
            "team": work.team.name if work.team else None,
            "gpus": work.gpus,
            "reason": row.reason,
            "status": work.status,  # as it is now
            "outcome": work.outcome,
        }
        yield Event(f"workload-{row.pk}", f"workload.{row.kind}", row.at, data, work.team_id)


def months(mark: FeedMark, now: datetime) -> Iterator[Event]:
    """Yield the steps of months; amounts stand on the bills, for whom they are for."""
    rows = PeriodStep.objects.filter(_since(mark, now)).order_by("pk")
    for row in rows.select_related("period")[:MOST]:
        mark.number = max(mark.number, row.pk)
        if (name := f"month.{row.step}") in TYPES:
            yield Event(f"month-{row.pk}", name, row.at, {"month": row.period.name}, None, True)


def raised_alerts(mark: FeedMark, now: datetime) -> Iterator[Event]:
    """Yield alerts that begin to hold."""
    fresh = Q(pk__gt=mark.number - OVERLAP, raised_at__gte=now - FRESH)
    rows = Alert.objects.filter(Q(pk__gt=mark.number) | fresh).order_by("pk")
    for row in rows.select_related("team")[:MOST]:
        mark.number = max(mark.number, row.pk)
        yield _alert(row, "raised", row.raised_at)


def cleared_alerts(mark: FeedMark, now: datetime) -> Iterator[Event]:
    """Yield alerts that have ended; they have no sequence of their own but the instant."""
    rows = Alert.objects.filter(cleared_at__gte=mark.at - FRESH, cleared_at__lte=now)
    for row in rows.order_by("cleared_at", "pk").select_related("team")[:MOST]:
        assert row.cleared_at is not None
        yield _alert(row, "cleared", row.cleared_at)


def _alert(row: Alert, verb: str, at: datetime) -> Event:
    kind = registered().get(row.code)
    concerns_leads = kind is not None and Audience.LEADS in kind.audience
    finding = Diagnostic(row.code, row.subject, "", row.facts)
    data = {
        "id": row.pk,
        "code": row.code,
        "subject": row.subject,
        "team": row.team.name if row.team else None,
        "sentence": str(finding.sentence),
        "next_step": str(finding.next_step),
    }
    return Event(
        key=f"alert-{row.pk}-{verb}",
        type=f"{'budget' if row.code in BUDGETS else 'alert'}.{verb}",
        at=at,
        data=data,
        team_id=row.team_id if concerns_leads else None,
        open_to_all=bool(kind and kind.open_to_all),
    )


FEEDS: Mapping[str, tuple[Feed, Any]] = {  # each with the sequence of ids that it follows
    "workloads": (workloads, WorkloadEvent),
    "months": (months, PeriodStep),
    "raised": (raised_alerts, Alert),
    "cleared": (cleared_alerts, Alert),
}


def newest(feed: str) -> int:
    """Return the newest id of a feed's sequence, 0 where there is none."""
    model = FEEDS[feed][1]
    return int(model.objects.aggregate(last=Max("pk"))["last"] or 0)
