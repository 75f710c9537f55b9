"""Dated mappings to facts of a bill, and for the time that none covers what queues say now."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, NamedTuple

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
from gpuplatform.common.together import instances, read_together, whole
from queues.models import ClusterQueue, Namespace, OwnedKind, Ownership, Team


@dataclass(frozen=True, slots=True)
class Mapped:
    """Everything that mappings say about a window."""

    owners: tuple[Owner, ...] = ()
    modes: tuple[NamespaceMode, ...] = ()
    deployments: tuple[Deployment, ...] = ()
    cost_centers: dict[str, str] = field(default_factory=dict)  # by team, at the window's end


History = dict[str, list[tuple[datetime, str | None]]]  # by name of a thing: since when whose


class Told(NamedTuple):
    """What rows say of whose things are.

    ``teams``: all there are. ``mappings``: dated ones, the oldest first. ``closings``: when each
    closed month was closed, and its end. ``histories``: whose things have been, by kind.
    ``things``: the team of each that has one, by kind.
    """

    teams: list[Team]
    mappings: list[Mapping]
    closings: list[tuple[datetime, datetime]]
    histories: dict[str, History]
    things: dict[str, list[tuple[str, str]]]


THINGS: tuple[tuple[OwnedKind, Any], ...] = (
    (OwnedKind.QUEUE, ClusterQueue),
    (OwnedKind.NAMESPACE, Namespace),
)


def ask_of_mappings(window: Period, *kinds: OwnedKind) -> list[QuerySet[Any, Any]]:
    """Return the questions that :func:`told` needs the answers of: of these kinds, or of all."""
    start, end = moment(window.start), moment(window.end)
    mappings = Mapping.objects.filter(Q(valid_to=None) | Q(valid_to__gt=start), valid_from__lt=end)
    if kinds:
        mappings = mappings.filter(kind__in=kinds, cluster="")
    histories = Ownership.objects.filter(kind__in=kinds or OwnedKind.values)
    closings = PeriodStep.objects.filter(step=Step.CLOSED).order_by("id")
    things = (model for kind, model in THINGS if kind in (kinds or OwnedKind.values))
    return [
        whole(Team.objects.order_by("name")),
        whole(mappings.order_by("valid_from", "id")),
        closings.values_list("at", "period__ends_at"),
        histories.order_by("since", "id").values_list("kind", "name", "since", "team__name"),
        *(
            m.objects.exclude(team=None).order_by().values_list("name", "team__name")
            for m in things
        ),
    ]


def told(answers: Sequence[list[Any]], *kinds: OwnedKind) -> Told:
    """Return what the questions of :func:`ask_of_mappings` were answered with."""
    teams, mappings, closings, histories, *things = answers
    rows = instances(Team, teams)
    by_key, named = {team.pk: team for team in rows}, instances(Mapping, mappings)
    for one in named:
        one.team = by_key.get(one.team_id) if one.team_id else None
    asked = [kind for kind, _model in THINGS if not kinds or kind in kinds]
    by_kind: dict[str, Any] = dict(zip((kind.value for kind in asked), things, strict=True))
    return Told(rows, named, closings, _histories(histories), by_kind)


def read_mappings(window: Period, *kinds: OwnedKind) -> Told:
    """Return what rows say of whose things are: of these kinds, or of all. 1 query."""
    return told(read_together(*ask_of_mappings(window, *kinds)), *kinds)


def mapped(window: Period, cluster: str, said: Told) -> Mapped:
    """Return what mappings say about ``window``; ``cluster`` is the one that we schedule.

    The window may be shorter than the one that was asked about.
    """
    rows = [row for row in said.mappings if row.valid_from < moment(window.end)]
    owners = [_owner(row) for row in rows if row.kind in OWNING and row.kind != Kind.COST_CENTER]
    owners += _as_opencost_spells(owners)
    return Mapped(
        owners=(*owners, *_defaults(owners, window, said)),
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


def _defaults(owners: Sequence[Owner], window: Period, said: Told) -> Iterator[Owner]:
    """Yield whose things are where no mapping says it (decisions.md 6).

    The team that had a queue or namespace at the time, and the one that a run was metered for.
    """
    for kind, _model in THINGS:
        yield from _gaps(owners, window, list(_owned(kind, said)))
    for team in said.teams:
        yield Owner("label", team.name, team.name, key=TEAM_MARK)


def queue_owners(window: Period, said: Told) -> list[Owner]:
    """Return whose each cluster queue is in ``window``: by mapping, else by who had it then."""
    mapped = [_owner(row) for row in said.mappings if row.kind == Kind.QUEUE and not row.cluster]
    return [*mapped, *_gaps(mapped, window, list(_owned(OwnedKind.QUEUE, said)))]


def _histories(rows: Iterable[tuple[str, str, datetime, str | None]]) -> dict[str, History]:
    """Return by kind whose things have been, as far as that was noted; first there was a team."""
    found: dict[str, History] = {kind: {} for kind in OwnedKind.values}
    for kind, name, since, owner in rows:
        if owner or name in found[kind]:  # rows of a team go with it when it is deleted
            found[kind].setdefault(name, []).append((since, owner))
    return found


def _owned(kind: OwnedKind, told: Told) -> Iterator[Owner]:
    """Yield whose things have been, from when to when.

    What was nobody's before its first team is that team's, but for months that were closed by
    then. A thing without a history, such as an imported row, has always been whose it is.
    """
    said: MappingKind = kind.value  # type: ignore[assignment]  # the same words; a test compares
    history, closings = told.histories[kind], told.closings
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
    for name, whose in told.things[kind]:
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
