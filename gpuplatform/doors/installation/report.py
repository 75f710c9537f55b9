"""Everything that the page of settings shows, once for page, REST and YAML."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby
from typing import Any

from django.conf import settings
from django.db.models import Max, Q
from django.utils.functional import Promise

from finops.models import BillingPeriod, Source
from finops.models.sources import Outcome
from gpuplatform.celery import app
from gpuplatform.common.periods import month_at
from gpuplatform.doors.installation.parts import Part, parts
from gpuplatform.doors.installation.values import (
    SET,
    Value,
    setting_values,
    source_secrets,
)

READ = (Outcome.APPLIED, Outcome.UNCHANGED)


@dataclass(frozen=True, slots=True)
class Installation:
    """What is set, where it comes from, and how the parts are."""

    values: list[Value]
    secrets: list[str]  # variables of sources that are set
    parts: list[Part]
    sources: list[Source]  # each with ``last_success``
    month: str
    period: BillingPeriod | None  # of the running month; None: nothing is billed in it yet
    timetable: Mapping[str, float]  # seconds between runs, by task

    @property
    def groups(self) -> Iterable[tuple[str | Promise, list[Value]]]:
        """Return the settings in their groups."""
        grouped = groupby(self.values, key=lambda value: value.setting.group)
        return [(name, list(values)) for name, values in grouped]

    @property
    def changed(self) -> int:
        """Return how many settings the environment makes."""
        return sum(not value.is_default for value in self.values)

    @property
    def troubled(self) -> list[Part]:
        """Return the parts that are not as they should be."""
        return [part for part in self.parts if part.state != "good"]


def installation(now: datetime) -> Installation:
    """Return how this installation stands, as this web process sees it. 10 queries."""
    read = Max("fetches__at", filter=Q(fetches__outcome__in=READ))
    month = month_at(now, settings.BILLING_TIME_ZONE).name
    return Installation(
        setting_values(),
        source_secrets(),
        parts(now),
        list(Source.objects.annotate(last_success=read).order_by("name")),
        month,
        BillingPeriod.objects.filter(name=month).first(),
        {one["task"]: float(one["schedule"]) for one in app.conf.beat_schedule.values()},
    )


def as_plain(found: Installation) -> dict[str, Any]:
    """Return it as REST and YAML say it: plain values, secrets as set or not set only."""
    return {
        "settings": [
            {
                "name": value.setting.name,
                "value": value.text,
                "origin": value.origin,
                "default": value.setting.default,
                "unit": value.setting.unit,
                "is_secret": value.setting.secret,
                "meaning": str(value.setting.meaning),
            }
            for value in found.values
        ],
        "source_secrets": dict.fromkeys(found.secrets, SET),
        "sources": [
            {
                "name": source.name,
                "kind": source.kind,
                "enabled": source.enabled,
                "tested_at": _instant(source.tested_at),
                "test_code": source.test_code,
                "last_success_at": _instant(source.last_success),  # type: ignore[attr-defined]
            }
            for source in found.sources
        ],
        "month": found.month,
        "idle_policy": found.period.idle_policy if found.period else None,
        "parts": [
            {
                "name": part.name,
                "state": part.state,
                "facts": {
                    key: _instant(value) if isinstance(value, datetime) else value
                    for key, value in part.facts.items()
                },
            }
            for part in found.parts
        ],
        "timetable": dict(found.timetable),
    }


def _instant(at: datetime | None) -> str | None:
    return at.isoformat() if at else None
