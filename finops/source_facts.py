"""Rows of sources to facts of a bill, and what the bill rests on.

What was loaded of a source that is switched off still counts, but for days that another one tells
of the same place. One in another currency than the bill is left out, with a finding: amounts of
two currencies are never added up.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

from django.conf import settings
from django.db.models import Q, TextField
from django.db.models.functions import Cast

from finops.allocation.facts import (
    Iron,
    Load,
    LoadSource,
    Period,
    TokenPrice,
    TokenUse,
    instant,
    moment,
)
from finops.allocation.findings import Finding
from finops.allocation.money import exact
from finops.allocation.timeline import Coverage as Covered
from finops.allocation.timeline import Span
from finops.models import CostRow, Coverage, Price, Source, TokenRow
from finops.models.prices import PriceUnit
from finops.models.sources import Plane, Stored
from finops.price_facts import end_of
from finops.sources.windows import day_window, last_whole_day
from finops.window_rows import WindowRows
from scheduling.jsontexts import read_json

CHUNK = 2000
# What a row is called: from its controller, labels and annotations.
Naming = Callable[[str, Mapping[str, str], Mapping[str, str]], str]
UNNAMED = "unnamed"  # a model that the log does not name
IRON_COSTS = (
    *("gpu_hours", "gpu_cost", "cpu_cost", "ram_cost"),
    *("pv_cost", "network_cost", "lb_cost"),
)


@dataclass(frozen=True, slots=True)
class Loaded:
    """What the sources said about a window."""

    iron: tuple[Iron, ...] = ()
    tokens: tuple[TokenUse, ...] = ()
    token_prices: tuple[TokenPrice, ...] = ()
    loads: tuple[Load, ...] = ()
    rests_on: tuple[dict[str, Any], ...] = ()
    findings: tuple[Finding, ...] = ()


def counting_sources(found: Sequence[Source], currency: str) -> tuple[list[Source], list[Source]]:
    """Return the sources whose rows count, and those that count in another currency."""
    counted = [one for one in found if one.currency == currency]
    return counted, [one for one in found if one.currency != currency and one.enabled]


def own_cluster(sources: Sequence[Source]) -> str:
    """Return what the cluster that we schedule is called in the rows of sources.

    The setting names it; without one the only source about machines does. "" is the only one.
    """
    if settings.CLUSTER_NAME:
        return str(settings.CLUSTER_NAME)
    names = {one.cluster for one in sources if one.plane == Plane.IRON}
    return names.pop() if len(names) == 1 else ""


def loaded(
    window: Period,
    sources: Sequence[Source],
    rows: WindowRows,
    cluster: str,
    *,
    billed: str,
    name: Naming | None = None,
) -> Loaded:
    """Return what ``sources`` said. 2 queries.

    ``billed``: the plane whose hours are billed, or "". ``name`` names rows of cost among the
    children of lines.
    """
    days = _days(sources, rows.coverage)
    sources = [one for one in sources if one.enabled or _stored(days[one.pk])]
    counts = _counting(sources, days)
    return Loaded(
        iron=tuple(_iron(window, counts, cluster, name)),
        tokens=tuple(_tokens(window, counts)),
        token_prices=tuple(_token_prices(rows.token_prices)),
        loads=tuple(_loads(window, sources, days, cluster, billed)),
        rests_on=tuple(_said(source, window, days[source.pk]) for source in sources),
    )


def other_currency(sources: Iterable[Source]) -> tuple[Finding, ...]:
    """Return a finding for each source that cannot be added up."""
    return tuple(
        Finding("source_currency", "critical", {"source": one.name, "currency": one.currency})
        for one in sources
    )


# ---- rows ---------------------------------------------------------------------------------------
def _iron(window: Period, counts: Q, cluster: str, name: Naming | None) -> Iterator[Iron]:
    start, end = moment(window.start), moment(window.end)
    rows = CostRow.objects.filter(counts, starts_at__lt=end, ends_at__gt=start)
    names = (
        *("cluster", "starts_at", "ends_at", "node", "namespace", "labels", "annotations"),
        *("controller_kind", "controller"),
    )
    for row in rows.order_by().values_list(*names, *IRON_COSTS).iterator(chunk_size=CHUNK):
        where, first, last, node, namespace, labels, annotations, kind, controller, *amounts = row
        costs: dict[str, Any] = dict(zip(IRON_COSTS, map(exact, amounts), strict=True))
        yield Iron(
            where or cluster,
            instant(first),
            instant(last),
            node=node or None,
            namespace=namespace or None,
            labels=labels,
            annotations=annotations,
            workload=name(f"{kind}/{controller}", labels, annotations) if name else "",
            **costs,
        )


def _tokens(window: Period, counts: Q) -> Iterator[TokenUse]:
    rows = TokenRow.objects.filter(counts, at__gte=moment(window.start), at__lt=moment(window.end))
    rows = rows.annotate(tags_text=Cast("tags", TextField()))
    names = (
        *("model_group", "model", "at", "key", "team_id", "key_alias", "key_hash", "tags_text"),
        *("prompt_tokens", "completion_tokens", "spend", "cache_hit", "failed"),
    )
    for row in rows.order_by().values_list(*names).iterator(chunk_size=CHUNK):
        group, model, at, key, team, alias, key_hash, tags, prompt, completion, *rest = row
        spend, is_hit, is_failed = rest
        yield TokenUse(
            group or model or UNNAMED,
            instant(at),
            request_id=key,
            team_id=team or None,
            key_alias=alias or key_hash or None,
            tags=tuple(read_json(tags)),
            prompt_tokens=prompt,
            completion_tokens=completion,
            spend=exact(spend),
            cache_hit=is_hit,
            status="failure" if is_failed else "success",
        )


def _token_prices(rows: Iterable[Price]) -> Iterator[TokenPrice]:
    """Yield the time in which both prices of a model are in force."""
    by_model: dict[str, dict[str, list[Price]]] = {}
    for row in rows:
        by_model.setdefault(row.subject, {}).setdefault(row.unit, []).append(row)
    for model, units in sorted(by_model.items()):
        for asked in units.get(PriceUnit.INPUT_MILLION, ()):
            for answered in units.get(PriceUnit.OUTPUT_MILLION, ()):
                start = max(asked.valid_from, answered.valid_from)
                end = min(filter(None, (asked.valid_to, answered.valid_to)), default=None)
                if end is None or start < end:
                    yield TokenPrice(
                        model,
                        exact(asked.amount),
                        exact(answered.amount),
                        start=instant(start),
                        end=end_of(end),
                    )


# ---- what was loaded ----------------------------------------------------------------------------
def _days(sources: Sequence[Source], rows: Iterable[Coverage]) -> dict[int, list[Coverage]]:
    found: dict[int, list[Coverage]] = {source.pk: [] for source in sources}
    for row in rows:
        if row.source_id in found:
            found[row.source_id].append(row)
    return found


def _stored(days: Sequence[Coverage]) -> list[Coverage]:
    return [one for one in days if one.stored != Stored.MISSING]


def _counting(sources: Sequence[Source], days: dict[int, list[Coverage]]) -> Q:
    """Return which rows count: of one switched off not the days that a sister tells of."""
    counts = Q(source__in=[one for one in sources if one.enabled])
    for source in sources:
        if not source.enabled:
            told = [one.day for it in _sisters(source, sources) for one in _stored(days[it.pk])]
            counts |= Q(source=source) & ~Q(day__in=told)
    return counts


def _sisters(source: Source, sources: Sequence[Source]) -> list[Source]:
    """Return the sources that are switched on and tell of the same place."""
    place = (source.plane, source.cluster)
    return [one for one in sources if one.enabled and (one.plane, one.cluster) == place]


def _loads(
    window: Period,
    sources: Sequence[Source],
    days: dict[int, list[Coverage]],
    cluster: str,
    billed: str,
) -> Iterator[Load]:
    places: dict[tuple[str, str], Covered] = {}
    for source in sources:
        there = places.setdefault((source.plane, source.cluster), Covered())
        is_told = not source.enabled and bool(_sisters(source, sources))
        is_strict = billed == source.plane or is_told
        for one in _windows(source, window, days[source.pk], is_strict):
            there.add(one)
    whole = Span(window.start, window.end)
    missing: Covered | None = None  # of any gateway
    for (plane, where), there in places.items():
        if plane == Plane.IRON:
            yield from _as_loads("iron", there, window, where or cluster)
        elif plane == Plane.TOKENS:
            missing = missing or Covered()
            for gap in there.gaps(whole):
                missing.add(gap)
    if missing is not None:
        yield from _as_loads("tokens", Covered(missing.gaps(whole)), window)


def _as_loads(
    source: LoadSource, there: Covered, window: Period, cluster: str | None = None
) -> Iterator[Load]:
    """Yield what is there of a window; one that lies behind it says that the source is asked."""
    for one in (*there.within(window), Span(window.end, window.end + 1)):
        yield Load(source, one.start, one.end, cluster)


def _windows(
    source: Source, window: Period, days: Sequence[Coverage], is_strict: bool
) -> Iterator[Span]:
    """Yield the time that is there, or is not asked of a source: before its first day, today.

    Where it is strict, nothing but what is there counts.
    """
    for one in _stored(days):
        yield Span(instant(one.starts_at), instant(one.ends_at))
    if is_strict:
        return
    first, due = first_instant(source), _asked_until(source, window, days)
    if window.start < first:
        yield Span(window.start, first)
    if due < window.end:
        yield Span(max(due, window.start), window.end)


def _asked_until(source: Source, window: Period, days: Sequence[Coverage]) -> int:
    """Return until when a source can have been asked: its last day where it is switched off."""
    if source.enabled:
        return instant(due_until(source, moment(window.end)))
    return max((instant(one.ends_at) for one in _stored(days)), default=window.start)


def first_instant(source: Source) -> int:
    """Return the beginning of a source's first day."""
    return instant(day_window(source.first_day, source.time_zone).start)


def due_until(source: Source, now: datetime) -> datetime:
    """Return the end of the last day that a source can have been asked for."""
    return day_window(last_whole_day(now, source.time_zone), source.time_zone).end


def _days_of(source: Source, start: int, end: int) -> int:
    """Return how many of a source's own days have a part in a window.

    In another time zone than the bills' they are one more than the days of the month.
    """
    if end <= start:
        return 0
    zone = ZoneInfo(source.time_zone)
    first, last = (moment(at).astimezone(zone).date() for at in (start, end - 1))
    return (last - first).days + 1


def _said(source: Source, window: Period, days: Sequence[Coverage]) -> dict[str, Any]:
    """Return what a bill says about one source that it rests on."""
    start = max(window.start, first_instant(source))
    end = min(window.end, _asked_until(source, window, days))
    stored = [one.stored for one in days]
    there = len(stored) - stored.count(Stored.MISSING)
    # The last day ends after the month where the source's midnight is a later one.
    expected = max(_days_of(source, start, end), there)
    return {
        "name": source.name,
        "kind": source.kind,
        "plane": source.plane,
        "days": expected,
        "there": there,
        "loaded": stored.count(Stored.LOADED),
        "partial": stored.count(Stored.PARTIAL),
        "missing": max(0, expected - there),
    }
