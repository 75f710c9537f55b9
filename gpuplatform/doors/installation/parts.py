"""How the parts of the installation are: each answers by what it left behind, not by its word."""

import platform
import sqlite3
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import celery
import django
from django.conf import settings
from django.db import connection
from django.db.models import Count, Max, Min, Q
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from finops.version import code_version
from gpuplatform.celery import app
from gpuplatform.common import leases
from gpuplatform.common.health import LATE_S
from gpuplatform.common.models import AuditEntry, AuditSeal, TaskFailure
from gpuplatform.doors.models import Delivery, DeliveryState
from scheduling.models import Cycle, Letter

GOOD, WARN, BAD = "good", "warn", "bad"
BROKER_S = 2
LOOKED_BACK = timedelta(days=14)
LATE = timedelta(minutes=5)  # for what is looked at once a minute


@dataclass(frozen=True, slots=True)
class Part:
    """One part: ``state`` good, warn or bad, and what is known of it as plain values."""

    name: str
    title: str | Promise
    state: str
    facts: dict[str, Any] = field(default_factory=dict)


def parts(now: datetime) -> list[Part]:
    """Return the parts of the installation. 8 queries and a call to the broker."""
    return [
        _database(),
        _broker(),
        _deciding(now),
        _mail(now),
        _webhooks(),
        _seals(now),
        _tasks(now),
        _versions(),
    ]


def _database() -> Part:
    if connection.vendor == "postgresql":
        number: int = connection.pg_version  # type: ignore[attr-defined]  # of that backend only
        version = f"{number // 10_000}.{number % 10_000}"
    else:
        version = sqlite3.sqlite_version
    facts = {"kind": connection.vendor, "version": version}
    return Part("database", _("Database"), GOOD, facts)


def _broker() -> Part:
    kind = settings.CELERY_BROKER_URL.partition(":")[0]
    facts: dict[str, Any] = {"kind": kind}
    try:
        with app.connection_for_write(connect_timeout=BROKER_S) as link:
            link.ensure_connection(max_retries=1, timeout=BROKER_S)
    except Exception as error:  # noqa: BLE001  # each transport has errors of its own
        return Part("broker", _("Broker"), BAD, facts | {"error": type(error).__name__})
    if kind == "filesystem":
        folder = Path(app.conf.broker_transport_options["data_folder_in"])
        facts["messages"] = sum(1 for _file in folder.glob("*.msg"))
    return Part("broker", _("Broker"), GOOD, facts)


def _deciding(now: datetime) -> Part:
    """Return the worker that decides; an idle one says at each beat that it was woken."""
    last = Cycle.objects.only("id", "at", "duration_ms").order_by("-id").first()
    known = [at for at in (leases.last_beat(leases.CYCLE), last.at if last else None) if at]
    age = max(0.0, (now - max(known)).total_seconds()) if known else None
    facts = {
        "last_sign_s": None if age is None else round(age, 1),
        "beat_wakes_every_s": app.conf.beat_schedule["cycle"]["schedule"],
        "last_cycle_at": last.at if last else None,
        "last_cycle_ms": last.duration_ms if last else None,
    }
    state = BAD if age is None or age > LATE_S else GOOD
    return Part("worker", _("Beat and cycle worker"), state, facts)


def _mail(now: datetime) -> Part:
    waiting = Q(sent_at=None)
    facts = Letter.objects.aggregate(
        waiting=Count("pk", filter=waiting),
        failed=Count("pk", filter=waiting & Q(tries__gt=0)),
        last_sent_at=Max("sent_at"),
        oldest_due_at=Min("due_at", filter=waiting),
    )
    facts = {"sends": settings.ALERT_MAIL, **facts}
    is_late = settings.ALERT_MAIL and facts["oldest_due_at"] is not None
    is_late = is_late and facts["oldest_due_at"] < now - LATE
    return Part("mail", _("Mail"), WARN if facts["failed"] or is_late else GOOD, facts)


def _webhooks() -> Part:
    waiting = Q(state=DeliveryState.WAITING)
    facts = Delivery.objects.aggregate(
        waiting=Count("pk", filter=waiting),
        tried=Count("pk", filter=waiting & Q(tries__gt=0)),
        given_up=Count("pk", filter=Q(state=DeliveryState.FAILED)),
    )
    state = WARN if facts["tried"] or facts["given_up"] else GOOD
    return Part("webhooks", _("Webhooks"), state, facts)


def _seals(now: datetime) -> Part:
    """Return how far the trail is sealed: entries after that of the newest seal are not yet."""
    newest = AuditSeal.objects.order_by("-number").first()
    after = AuditEntry.objects.filter(pk__gt=newest.entry if newest else 0)
    left = after.aggregate(count=Count("pk"), oldest=Min("at"))
    is_late = left["oldest"] is not None and left["oldest"] < now - LATE
    facts = {
        "sealed": newest.number if newest else 0,
        "not_sealed_yet": left["count"],
        "last_sealed_at": newest.at if newest else None,
        "head": newest.digest if newest else "",
    }
    return Part("audit", _("Seals of the audit trail"), WARN if is_late else GOOD, facts)


def _tasks(now: datetime) -> Part:
    kinds = TaskFailure.objects.filter(last_at__gte=now - LOOKED_BACK).count()
    facts = {"kinds_of_failures": kinds, "days": LOOKED_BACK.days}
    return Part("tasks", _("Tasks"), WARN if kinds else GOOD, facts)


def _versions() -> Part:
    facts = {
        "gpuplatform": code_version(),
        "python": platform.python_version(),
        "django": django.get_version(),
        "celery": celery.__version__,
    }
    return Part("versions", _("Versions"), GOOD, facts)
