"""Dated mappings to facts of a bill, and for the time that none covers what queues say now."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from django.db.models import Q, QuerySet

from finops.allocation.facts import Deployment, MappingKind, NamespaceMode, Period, instant, moment
from finops.allocation.facts import Mapping as Owner
from finops.allocation.money import exact
from finops.allocation.timeline import Coverage, inside, span
from finops.metered_facts import TEAM_MARK
from finops.models import Mapping
from finops.models.mappings import OWNING
from finops.models.mappings import MappingKind as Kind
from finops.models.periods import PeriodStep, Step
from finops.price_facts import end_of
from finops.sources.opencost import sanitised
from queues.models import ClusterQueue, Namespace, OwnedKind, Ownership


@dataclass(frozen=True, slots=True)
class Mapped:
    """Everything that mappings say about a window."""

    owners: tuple[Owner, ...] = ()
    modes: tuple[NamespaceMode, ...] = ()
    deployments: tuple[Deployment, ...] = ()
    cost_centers: dict[str, str] = field(default_factory=dict)  # by team, at the window's end


def mapped(window: Period, cluster: str, teams: Iterable[str]) -> Mapped:
    """Return what mappings say about ``window``.

    ``cluster`` is the one that we schedule, ``teams`` are all there are.
    """
    start, end = moment(window.start), moment(window.end)
    rows = list(
        Mapping.objects.filter(Q(valid_to=None) | Q(valid_to__gt=start), valid_from__lt=end)
        .select_related("team")
        .order_by("valid_from", "id")
    )
    owners = [_owner(row) for row in rows if row.kind in OWNING and row.kind != Kind.COST_CENTER]
    owners += _as_opencost_spells(owners)
    return Mapped(
        owners=(*owners, *_defaults(owners, window, teams)),
        modes=tuple(_mode(row) for row in rows if row.kind == Kind.MODE),
        deployments=tuple(_deployment(row, cluster) for row in rows if _is_deployment(row)),
        cost_centers={
            row.team.name: row.value for row in rows if row.kind == Kind.COST_CENTER and row.team
        },
    )


def _owner(row: Mapping) -> Owner:
    assert row.team, "a constraint says so"
    kind: MappingKind = row.kind  # type: ignore[assignment]  # the same words; a test compares
    return Owner(
        kind,
        row.value,
        row.team.name,
        cluster=row.cluster or None,
        key=row.key or None,
        start=instant(row.valid_from),
        end=end_of(row.valid_to),
    )


def _as_opencost_spells(owners: Sequence[Owner]) -> list[Owner]:
    """Return keys once more as Prometheus spells them, for the rows that come from there."""
    known = {(one.kind, one.cluster, one.key, one.value) for one in owners}
    spelled = (replace(one, key=sanitised(one.key)) for one in owners if one.key)
    return [one for one in spelled if (one.kind, one.cluster, one.key, one.value) not in known]


def _defaults(owners: Sequence[Owner], window: Period, teams: Iterable[str]) -> Iterator[Owner]:
    """Yield whose things are where no mapping says it (decisions.md 6).

    The team that had a queue or namespace at the time, and the one that a run was metered for.
    """
    closings, histories = _closings(), _histories(*OwnedKind)
    for kind, rows in ((OwnedKind.QUEUE, ClusterQueue), (OwnedKind.NAMESPACE, Namespace)):
        had = _owned(kind, rows.objects.all(), histories[kind], closings)
        yield from _gaps(owners, window, list(had))
    for name in teams:
        yield Owner("label", name, name, key=TEAM_MARK)


def queue_owners(window: Period) -> list[Owner]:
    """Return whose each cluster queue is in ``window``: by mapping, else by who had it then."""
    start, end = moment(window.start), moment(window.end)
    rows = Mapping.objects.filter(
        Q(valid_to=None) | Q(valid_to__gt=start), kind=Kind.QUEUE, valid_from__lt=end, cluster=""
    )
    said = [_owner(row) for row in rows.select_related("team")]
    history = _histories(OwnedKind.QUEUE)[OwnedKind.QUEUE]
    found = _owned(OwnedKind.QUEUE, ClusterQueue.objects.all(), history, _closings())
    return [*said, *_gaps(said, window, list(found))]


def _closings() -> list[tuple[datetime, datetime]]:
    """Return when each closed month was closed, and its end."""
    steps = PeriodStep.objects.filter(step=Step.CLOSED)
    return list(steps.values_list("at", "period__ends_at"))


History = dict[str, list[tuple[datetime, str | None]]]  # by name of a thing: since when whose


def _histories(*kinds: OwnedKind) -> dict[str, History]:
    """Return by kind whose things have been, as far as that was noted; first there was a team."""
    found: dict[str, History] = {kind: {} for kind in kinds}
    rows = Ownership.objects.filter(kind__in=kinds).order_by("since", "id")
    for kind, name, since, owner in rows.values_list("kind", "name", "since", "team__name"):
        if owner or name in found[kind]:  # rows of a team go with it when it is deleted
            found[kind].setdefault(name, []).append((since, owner))
    return found


def _owned(
    kind: OwnedKind,
    things: QuerySet[Any],
    history: History,
    closings: Sequence[tuple[datetime, datetime]],
) -> Iterator[Owner]:
    """Yield whose things have been, from when to when.

    What was nobody's before its first team is that team's, but for months that were closed by
    then. A thing without a history, such as an imported row, has always been whose it is.
    """
    said: MappingKind = kind.value  # type: ignore[assignment]  # the same words; a test compares
    for name, changes in history.items():
        first = max((end for at, end in closings if at <= changes[0][0]), default=None)
        starts = [first, *(since for since, _ in changes[1:])]
        ends = [*(since for since, _ in changes[1:]), None]
        for (_, team), start, end in zip(changes, starts, ends, strict=True):
            if team and (start is None or end is None or start < end):
                yield Owner(
                    said,
                    name,
                    team,
                    start=None if start is None else instant(start),
                    end=end_of(end),
                )
    for name, whose in things.exclude(team=None).values_list("name", "team__name"):
        if name not in history:
            yield Owner(said, name, whose)


def _gaps(owners: Sequence[Owner], window: Period, had: Sequence[Owner]) -> Iterator[Owner]:
    """Yield what ``had`` says for the time in which no mapping speaks of the same thing."""
    said: dict[tuple[str, str], list[Owner]] = defaultdict(list)
    for one in owners:
        if one.cluster is None:
            said[one.kind, one.value].append(one)
    for one in had:
        mapped = said.get((one.kind, one.value))
        if mapped is None:
            yield one
            continue
        part = inside(one, window)
        for gap in Coverage(span(other) for other in mapped).gaps(part) if part else ():
            yield replace(one, start=gap.start, end=gap.end)


def _mode(row: Mapping) -> NamespaceMode:
    return NamespaceMode(
        row.value,
        row.mode,  # type: ignore[arg-type]  # the same words; a test compares
        cluster=row.cluster or None,
        start=instant(row.valid_from),
        end=end_of(row.valid_to),
    )


def _is_deployment(row: Mapping) -> bool:
    return row.kind == Kind.DEPLOYMENT


def _deployment(row: Mapping, cluster: str) -> Deployment:
    speed, gpus = row.tokens_per_second, row.gpus
    return Deployment(
        row.value,
        row.cluster or cluster,
        row.namespace,
        tokens_per_second=None if speed is None else exact(speed),
        gpus=None if gpus is None else exact(gpus),
        start=instant(row.valid_from),
        end=end_of(row.valid_to),
    )
