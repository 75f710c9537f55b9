"""Shapes and words of the pages: icons, bars, chips, teams, durations, amounts."""

import math
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from django import template
from django.utils import timezone
from django.utils.html import format_html
from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import gettext, ngettext

from gpuplatform.common import actions, reasons
from gpuplatform.common.bars import QuotaBar
from gpuplatform.common.locales import by_locale, day_and_time
from gpuplatform.common.quantities import format_quantity
from gpuplatform.common.reasons import describe_amount

register = template.Library()

TEAM_COLORS = 10
DASH = "-"
ICONS = {
    "settings": "M2.5 4.5h6M11.5 4.5h2M2.5 11.5h2M7.5 11.5h6M10 3v3M6 10v3",
    "overview": "M2.5 2.5h4.5v6H2.5zM9 2.5h4.5v3.5H9zM9 8.5h4.5v5H9zM2.5 11h4.5v2.5H2.5z",
    "queues": "M2.5 3.5h5M5 8h6M8 12.5h5.5M3.5 3.5v4.5H5M6.5 8v4.5H8",
    "workloads": "M2.5 4h1M6 4h7.5M2.5 8h1M6 8h7.5M2.5 12h1M6 12h7.5",
    "submit": "M8 10.5v-8M4.8 5.6 8 2.4l3.2 3.2M2.5 10.5v3h11v-3",
    "nodes": "M2.5 2.5h4v4h-4zM9.5 2.5h4v4h-4zM2.5 9.5h4v4h-4zM9.5 9.5h4v4h-4z",
    "teams": "M6 8a2.5 2.5 0 1 0 0-5 2.5 2.5 0 0 0 0 5zM1.8 13.5c.3-2.6 2-4 4.2-4s3.9 1.4 4.2 4"
    "M10.5 3.3a2.3 2.3 0 0 1 0 4.4M12 9.8c1.3.5 2.1 1.8 2.3 3.7",
    "people": "M8 7.5a2.75 2.75 0 1 0 0-5.5 2.75 2.75 0 0 0 0 5.5zM2.8 14c.4-3 2.4-4.7 5.2-4.7"
    "s4.8 1.7 5.2 4.7",
    "borrowing": "M2.5 5.5h10M10 3l2.5 2.5L10 8M13.5 10.5h-10M6 8l-2.5 2.5L6 13",
    "cost": "M2.5 13.5h11M4.5 11V8M8 11V4M11.5 11V6.5",
    "bills": "M4 2h8v12l-2-1.2L8 14l-2-1.2L4 14zM6.3 5.5h3.4M6.3 8.5h3.4",
    "budgets": "M8 2.5a5.5 5.5 0 1 0 5.5 5.5H8zM10.5 1.8a5 5 0 0 1 3.7 3.7h-3.7z",
    "drift": "M2.5 4.5c3.5 0 4.5 1 11 1M2.5 8c3.5 0 4.5-2.5 11-4.5M2.5 11c3.5 0 4.5 2 11 2.5",
    "prices": "M8.5 2.5h5v5l-6 6-5-5zM11 5h.1",
    "mappings": "M2.5 4.5h3.2l4.6 7h3.2M2.5 11.5h3.2l4.6-7h3.2"
    "M11.6 2.6l1.9 1.9-1.9 1.9M11.6 9.6l1.9 1.9-1.9 1.9",
    "sources": "M3 4c0-1 2.2-1.7 5-1.7S13 3 13 4s-2.2 1.7-5 1.7S3 5 3 4z"
    "M3 4v8c0 1 2.2 1.7 5 1.7s5-.7 5-1.7V4"
    "M3 8c0 1 2.2 1.7 5 1.7S13 9 13 8",
    "audit": "M8 2.5a5.5 5.5 0 1 1-5.2 3.7M2.5 2.5v3.8h3.8M8 5.5V8l2 1.5",
    "webhooks": "M2.5 8h7M6.8 5.2 9.6 8l-2.8 2.8M12.5 2.5v11",
    "requests": "M2.5 3.5h11v7h-6l-3 2.8v-2.8h-2zM5 6.2h6M5 8.2h4",
    "fair": "M8 2.5v11M5 13.5h6M3 5h10M3 5 1.5 9.5h3zM13 5l-1.5 4.5h3z",
    "replays": "M13.5 8A5.5 5.5 0 1 1 11.6 3.8M13.5 2.2v3h-3M6.8 5.8v4.4L10.4 8z",
    "theme": "M8 2.5a5.5 5.5 0 1 0 0 11zM8 2.5a5.5 5.5 0 0 1 0 11",
    "warn": "M8 2.5 14 13H2zM8 6.5v3M8 11.2v.1",
    "good": "m3 8.5 3.2 3.2L13 5",
    "bad": "M8 2.5a5.5 5.5 0 1 0 .01 0zM8 5v3.5M8 10.8v.1",
}
CHIPS = {
    "pending": "is-pending",
    "admitted": "is-admitted",
    "running": "is-running",
    "succeeded": "is-good",
    "failed": "is-bad",
    "cancelled": "is-off",
    "inactive": "is-off",
}


@register.simple_tag
def icon(name: str) -> SafeString:
    """Return one of the house's icons; it is never alone, a word stands beside it."""
    return format_html(
        '<svg class="icon" viewBox="0 0 16 16" aria-hidden="true"><path d="{}"/></svg>',
        ICONS[name],
    )


@register.inclusion_tag("components/quota_bar.html")
def quota_bar(bar: QuotaBar, size: str = "") -> dict[str, Any]:
    """Draw a quota bar; ``size`` "large" adds labels under the ticks."""
    return {"bar": bar, "large": size == "large"}


@register.inclusion_tag("components/quota_text.html")
def quota_text(bar: QuotaBar) -> dict[str, Any]:
    """Say a quota bar in words: ``12 of 8 · 4 borrowed``."""
    return {"bar": bar}


@register.inclusion_tag("components/tile.html")
def tile(tile: Any) -> dict[str, Any]:  # the template's own word
    """Show a key number."""
    return {"tile": tile, "spark": spark_path(tile.spark) if tile.spark else ""}


def spark_path(values: Sequence[float]) -> str:
    """Return the path of a small line over 100 x 28 units; the highest value touches the top."""
    top = max(*values, 1)
    step = 100 / max(len(values) - 1, 1)
    points = [
        f"{round(index * step, 1)} {round(26 - 24 * value / top, 1)}"
        for index, value in enumerate(values)
    ]
    return "M" + "L".join(points)


def team_number(team: Any) -> int:
    """Return a team's colour number, 1 to 10; 0 where there is no team."""
    return (team.pk - 1) % TEAM_COLORS + 1 if team is not None and team.pk else 0


@register.filter
def team_class(team: Any) -> str:
    """Return the class of a team's colour."""
    number = team_number(team)
    return f"t{number}" if number else ""


@register.simple_tag
def team_mark(team: Any, link: str = "") -> SafeString:
    """Return a team's mark and name; "no team" where nobody owns the thing."""
    if team is None:
        return format_html('<span class="muted">{}</span>', gettext("no team"))
    name = format_html('<span class="team {}">{}</span>', team_class(team), team)
    return format_html('<a href="{}">{}</a>', link, name) if link else name


@register.simple_tag
def state_chip(workload: Any) -> SafeString:
    """Return the chip of a workload's state: a shape and a word."""
    state = workload.outcome or workload.status
    word = workload.get_outcome_display() or workload.get_status_display()
    return format_html('<span class="chip {}">{}</span>', CHIPS.get(state, "is-off"), word)


@register.filter
def duration(value: timedelta | float | None) -> str:
    """Return ``2 h 11 min``, ``3 d 4 h``, ``12 s``; a dash where it was not measured."""
    if value is None:
        return DASH
    seconds = int(value.total_seconds() if isinstance(value, timedelta) else value)
    days, rest = divmod(max(seconds, 0), 86_400)
    hours, rest = divmod(rest, 3_600)
    minutes, seconds = divmod(rest, 60)
    if days:
        return gettext("%(d)d d %(h)d h") % {"d": days, "h": hours}
    if hours:
        return gettext("%(h)d h %(m)d min") % {"h": hours, "m": minutes}
    if minutes:
        return gettext("%(m)d min") % {"m": minutes}
    return gettext("%(s)d s") % {"s": seconds}


@register.filter
def age(value: datetime | None, now: datetime | None = None) -> str:
    """Return how long ago an instant is."""
    return DASH if value is None else duration((now or timezone.now()) - value)


@register.filter
def clock(value: datetime | None) -> str:
    """Return the time of day in UTC: ``14:03:12``."""
    return DASH if value is None else value.astimezone(UTC).strftime("%H:%M:%S")


@register.filter
def stamp(value: datetime | None, zone: str = "UTC") -> str:
    """Return day and time in a zone: ``14 Jul 14:03``; with the year where it is another."""
    if value is None:
        return DASH
    value = value.astimezone(ZoneInfo(zone))
    return day_and_time(value, with_year=value.year != timezone.now().year)


@register.filter
def amount(value: int | None, resource: str = "nvidia.com/gpu") -> str:
    """Return an amount in canonical units the way people write it; a dash for unknown."""
    return DASH if value is None else format_quantity(resource, value)


@register.filter
def amount_words(value: int | None, resource: str = "nvidia.com/gpu") -> str:
    """Return an amount with its unit: ``32 GPUs``, ``512Gi memory``."""
    return DASH if value is None else describe_amount(resource, value)


@register.filter
def limit(value: int | None, resource: str = "nvidia.com/gpu") -> str:
    """Return a limit; none is spelled out, it is never an empty cell."""
    return gettext("no limit") if value is None else format_quantity(resource, value)


@register.filter
def gpus(count: int) -> str:
    """Return ``1 GPU`` or ``32 GPUs``."""
    return ngettext("%(n)d GPU", "%(n)d GPUs", count) % {"n": count}


@register.filter
def hours(value: float) -> str:
    """Return GPU-hours with one decimal and thousands separated."""
    return by_locale(f"{value:,.1f}")


@register.filter
def resource_words(resource: str) -> str:
    """Return a resource as people say it."""
    return {
        "nvidia.com/gpu": gettext("GPU"),
        "cpu": gettext("CPU"),
        "memory": gettext("memory"),
    }.get(resource, resource)


@register.filter
def reason_words(code: str) -> str:
    """Return what a code means, in a sentence."""
    return reasons.sentence(code, {})


@register.filter
def action_words(action: str) -> str:
    """Return an action of the audit trail in words."""
    return actions.action_words(action)


@register.filter
def last_part(label: str) -> str:
    """Return the last part of a node label: ``block`` of ``topology.kubernetes.io/block``."""
    return label.rsplit("/", 1)[-1]


@register.filter
def percent_of(part: float, whole: float) -> str:
    """Return a part in percent of a whole; "" of nothing."""
    return f"{math.floor(100 * part / whole + 0.5)} %" if whole else ""


@register.simple_tag
def instant(value: datetime | None, form: str = "stamp") -> SafeString:
    """Return a ``<time>`` element in UTC; a dash where there is no instant."""
    if value is None:
        return mark_safe(f'<span title="{gettext("not yet")}">{DASH}</span>')  # noqa: S308
    shown = clock(value) if form == "clock" else stamp(value)
    iso = value.astimezone(UTC).isoformat(timespec="seconds")
    return format_html('<time datetime="{}" title="{}">{}</time>', iso, iso, shown)
