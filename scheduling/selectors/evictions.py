"""Who was evicted for whom, what progress that threw away, and what it was worth."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from itertools import islice
from typing import Any

from django.conf import settings
from django.db.models import FloatField, QuerySet, Sum
from django.db.models.fields.json import KeyTextTransform
from django.db.models.functions import Cast

from gpuplatform.common import reasons
from queues.access import Actor, visible
from queues.models import Team
from scheduling.engine.machines import GPU
from scheduling.models import UsageInterval, WorkloadEvent
from scheduling.pricing import Held, worths

KINDS = ("evicted", "surplus_taken")  # whole gangs, and pods above a gang's minimum
AT_ONCE = 1_000
NOTHING = Decimal("0.00")
EVICTION_COLUMNS = (
    "at",
    "workload",
    "team",
    "what",
    "reason",
    "gpus",
    "lost_gpu_hours",
    "worth",
    "currency",
    "for_workload",
    "for_team",
)


@dataclass(frozen=True, slots=True)
class Eviction:
    """One row: whose work was taken off its GPUs, for whom, and what was lost by it.

    ``workload`` and ``other`` None: not there, or of a team that the reader does not see.
    ``lost_gpu_hours``: since its last checkpoint, or its start. ``worth`` None: unpriced, or the
    reader sees no prices.
    """

    at: datetime
    kind: str
    reason: str
    gpus: int
    lost_gpu_hours: float
    worth: Decimal | None
    team: Team | None
    workload: Any
    other_team: Team | None
    other: Any
    has_other: bool

    @property
    def words(self) -> str:
        """Return why, in the words of people."""
        return reasons.sentence(self.reason, {})


def eviction_rows(
    actor: Actor, *, since: datetime | None = None, **filters: str
) -> QuerySet[WorkloadEvent]:
    """Return evictions of the actor's work and for the actor's work, newest first.

    ``filters``: ``team`` of the evicted, ``reason``; "" does not filter.
    """
    rows = WorkloadEvent.objects.filter(kind__in=KINDS)
    if not actor.sees_everything:
        rows = visible(rows, actor, "workload__team") | visible(rows, actor, "other__team")
    columns = {"team": "workload__team__name", "reason": "reason"}
    rows = rows.filter(**{columns[name]: value for name, value in filters.items() if value})
    if since is not None:
        rows = rows.filter(at__gte=since)
    return rows.order_by("-at", "-id").select_related("workload__team", "other__team")


def lost_hours(rows: QuerySet[WorkloadEvent]) -> float:
    """Return the GPU-hours of progress that the rows threw away together. 1 query."""
    lost = Cast(KeyTextTransform("lost_gpu_hours", "facts"), FloatField())
    return rows.order_by().aggregate(hours=Sum(lost))["hours"] or 0.0


def as_evictions(rows: Iterable[WorkloadEvent], actor: Actor) -> Iterator[Eviction]:
    """Yield rows in figures. 2 queries for every 1,000 rows."""
    rows = iter(rows)
    while some := list(islice(rows, AT_ONCE)):
        known = _worths(some) if actor.may_see_prices else [None] * len(some)
        for row, worth in zip(some, known, strict=True):
            work, other = row.workload, row.other
            yield Eviction(
                at=row.at,
                kind=row.kind,
                reason=str(row.facts.get("right") or row.reason),
                gpus=int(row.facts.get("gpus") or 0),
                lost_gpu_hours=_lost(row),
                worth=worth,
                team=work.team if _seen(work.team_id, actor) else None,
                workload=work if _seen(work.team_id, actor) else None,
                other_team=other.team if other and _seen(other.team_id, actor) else None,
                other=other if other and _seen(other.team_id, actor) else None,
                has_other=other is not None,
            )


def eviction_cells(found: Iterable[Eviction]) -> Iterator[Mapping[str, Any]]:
    """Yield evictions as rows of an export."""
    for one in found:
        yield {
            "at": one.at,
            "workload": str(one.workload) if one.workload else "",
            "team": one.team.name if one.team else "",
            "what": one.kind,
            "reason": one.reason,
            "gpus": one.gpus,
            "lost_gpu_hours": round(one.lost_gpu_hours, 6),
            "worth": one.worth,
            "currency": "" if one.worth is None else settings.CURRENCY,
            "for_workload": str(one.other) if one.other else "",
            "for_team": one.other_team.name if one.other_team else "",
        }


def eviction_choices(actor: Actor) -> dict[str, list[Any]]:
    """Return what the ledger can be narrowed to: teams with their names as shown, reasons.

    1 query.
    """
    columns = [f"workload__team__{name}" for name in ("pk", "name", "display_name")]
    found = set(eviction_rows(actor).order_by().values_list(*columns, "reason").distinct())
    teams = {
        (name, str(Team(name=name, display_name=shown)))
        for pk, name, shown, _reason in found
        if pk is not None and _seen(pk, actor)
    }
    return {
        "team": sorted(teams, key=lambda team: team[1].casefold()),
        "reason": sorted({reason for *_team, reason in found if reason}),
    }


def _seen(team_id: int | None, actor: Actor) -> bool:
    return actor.sees_everything or (team_id is not None and actor.sees_team(team_id))


def _lost(row: WorkloadEvent) -> float:
    found = row.facts.get("lost_gpu_hours")
    return float(found) if isinstance(found, int | float) else 0.0


def _worths(rows: list[WorkloadEvent]) -> list[Decimal | None]:
    """Return what was lost at the prices of the hours in which it was made; nothing lost: 0.

    Several flavors share the loss by the GPUs that they gave; without metering it is unknown.
    """
    lost = [row for row in rows if _lost(row)]
    held = _held_at(lost)
    shares: list[Held] = []
    of: list[tuple[int, int]] = []  # row's id, GPUs of this share
    for row in lost:
        gpus = sum(held[row.pk].values())
        for flavor, amount in sorted(held[row.pk].items()):
            made = timedelta(hours=_lost(row) / gpus)
            shares.append(Held(flavor, amount, row.at - made, row.at))
            of.append((row.pk, amount))
    sums: dict[int, Decimal | None] = {}
    for (pk, _), worth in zip(of, worths(shares), strict=True):
        known = sums.get(pk, Decimal(0))
        sums[pk] = None if worth is None or known is None else known + worth
    return [sums.get(row.pk) if _lost(row) else NOTHING for row in rows]


def _held_at(rows: list[WorkloadEvent]) -> dict[int, dict[str, int]]:
    """Return the GPUs by flavor that each row's workload held when it was evicted. 1 query."""
    found: dict[int, dict[str, int]] = defaultdict(lambda: defaultdict(int))
    usage: dict[Any, list[UsageInterval]] = defaultdict(list)
    wanted = {row.workload_id for row in rows}
    for interval in UsageInterval.objects.filter(workload__in=wanted, resource=GPU):
        usage[interval.workload_id].append(interval)
    for row in rows:
        for one in usage[row.workload_id]:
            if one.started_at < row.at and (one.ended_at is None or one.ended_at >= row.at):
                found[row.pk][one.flavor] += one.amount
    return found
