"""Dated mappings to facts of a bill, and for the time that none covers what queues say now."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from django.db.models import Q

from finops.allocation.facts import Deployment, MappingKind, NamespaceMode, Period, instant, moment
from finops.allocation.facts import Mapping as Owner
from finops.allocation.money import exact
from finops.allocation.timeline import Coverage, Span, span
from finops.metered_facts import TEAM_MARK
from finops.models import Mapping
from finops.models.mappings import OWNING
from finops.models.mappings import MappingKind as Kind
from finops.price_facts import end_of
from finops.sources.opencost import sanitised
from queues.models import ClusterQueue, Namespace, Team


@dataclass(frozen=True, slots=True)
class Mapped:
    """Everything that mappings say about a window."""

    owners: tuple[Owner, ...] = ()
    modes: tuple[NamespaceMode, ...] = ()
    deployments: tuple[Deployment, ...] = ()
    cost_centers: dict[str, str] = field(default_factory=dict)  # by team, at the window's end


def mapped(window: Period, cluster: str) -> Mapped:
    """Return what mappings say about ``window``; ``cluster`` is the one that we schedule."""
    start, end = moment(window.start), moment(window.end)
    rows = list(
        Mapping.objects.filter(Q(valid_to=None) | Q(valid_to__gt=start), valid_from__lt=end)
        .select_related("team")
        .order_by("valid_from", "id")
    )
    owners = [_owner(row) for row in rows if row.kind in OWNING and row.kind != Kind.COST_CENTER]
    owners += _as_opencost_spells(owners)
    return Mapped(
        owners=(*owners, *_defaults(owners, window)),
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


def _defaults(owners: Sequence[Owner], window: Period) -> Iterator[Owner]:
    """Yield whose things are where no mapping says it (decisions.md 6).

    The team that a queue or namespace has now, and the one that a run was metered for.
    """
    queues = ClusterQueue.objects.exclude(team=None).values_list("name", "team__name")
    yield from _gaps(owners, window, "queue", dict(queues))
    namespaces = Namespace.objects.exclude(team=None).values_list("name", "team__name")
    yield from _gaps(owners, window, "namespace", dict(namespaces))
    for name in Team.objects.values_list("name", flat=True):
        yield Owner("label", name, name, key=TEAM_MARK)


def _gaps(
    owners: Sequence[Owner], window: Period, kind: MappingKind, teams: dict[str, str]
) -> Iterator[Owner]:
    said: dict[str, list[Owner]] = {}
    for one in owners:
        if one.kind == kind and one.cluster is None:
            said.setdefault(one.value, []).append(one)
    for name, team in teams.items():
        if name not in said:
            yield Owner(kind, name, team)
            continue
        covered = Coverage(span(one) for one in said[name])
        for gap in covered.gaps(Span(window.start, window.end)):
            yield Owner(kind, name, team, start=gap.start, end=gap.end)


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
