"""Room that is reserved: for whom, until when, and what it has cost so far, idle.

In GPU-hours, and in money at the prices of now: a memo, no bill has it. The last cycle remembers
it; what a gang that has started had held idle stands in its story.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

from django.conf import settings

from gpuplatform.common import clock
from gpuplatform.common.money import parse_decimal, rounded
from queues.access import Actor
from scheduling.engine import codec
from scheduling.engine.machines import GPU
from scheduling.engine.reservations import idle_gpu_hours
from scheduling.engine.snapshot import Reservation
from scheduling.engine.usage import is_gpu
from scheduling.models import Cycle, Workload
from scheduling.pricing import gpu_hour_prices

RESERVATION_COLUMNS = (
    *("workload", "team", "starts_at", "promised", "since", "nodes"),
    *("idle_gpus", "idle_gpu_hours", "cost", "currency"),
)


@dataclass(frozen=True, slots=True)
class ReservationRow:
    """Room kept for one waiting gang. ``workload`` None: the reader may not see it.

    ``starts_at`` is a promise where ``promised``, else an estimate. ``idle_gpu_hours`` has been
    held idle since its turn came at ``since``; ``cost`` is what those cost, None where its GPUs
    have no price, or the reader may not see the workload.
    """

    workload: Any
    team: Any
    starts_at: datetime
    promised: bool
    since: datetime
    nodes: tuple[str, ...]
    idle_gpus: int
    idle_gpu_hours: float
    gpus_on: Mapping[str, int]  # by node
    cost: Decimal | None = None
    currency: str = ""


def reservation_rows(actor: Actor) -> list[ReservationRow]:
    """Return every reservation, the first to start first, in four queries."""
    found = tuple(_standing())
    by_key, prices = _workloads(found), _prices(found)
    lines = [_row(one, by_key.get(one.workload), actor, prices) for one in found]
    return sorted(lines, key=lambda line: (line.starts_at, line.nodes))


def reservation_of(workload: Workload, actor: Actor) -> ReservationRow | None:
    """Return what is reserved for one workload, or None."""
    if workload.status != "pending":
        return None
    mine = [one for one in _standing() if one.workload == str(workload.uid)]
    return _row(mine[0], workload, actor, _prices(mine)) if mine else None


def kept_on_nodes(rows: Iterable[ReservationRow] | None = None) -> dict[str, int]:
    """Return how many GPUs of each node are kept for gangs, idle by now or not yet.

    ``rows``: the reservations where somebody has read them; else 1 query, 3 where some stand.
    """
    kept = Counter[str]()
    for gpus_on in _standing_gpus() if rows is None else [row.gpus_on for row in rows]:
        kept.update(gpus_on)
    return dict(kept)


def _standing_gpus() -> Iterator[dict[str, int]]:
    found = tuple(_standing())
    by_key = _workloads(found) if found else {}
    return (_gpus_on(one, by_key[one.workload]) for one in found if one.workload in by_key)


def _workloads(found: Iterable[Reservation]) -> dict[str, Workload]:
    rows = Workload.objects.filter(uid__in=[one.workload for one in found])
    rows = rows.select_related("team").prefetch_related("pod_sets")
    return {str(row.uid): row for row in rows}


def as_fields(row: ReservationRow | None) -> dict[str, Any] | None:
    """Return a reservation as REST shows it."""
    if row is None:
        return None
    return {
        "starts_at": row.starts_at.isoformat(),
        "promised": row.promised,
        "since": row.since.isoformat(),
        "nodes": list(row.nodes),
        "idle_gpus": row.idle_gpus,
        "idle_gpu_hours": row.idle_gpu_hours,
        "cost": None if row.cost is None else {"amount": str(row.cost), "currency": row.currency},
    }


def reservation_cells(rows: Iterable[ReservationRow]) -> Iterable[dict[str, Any]]:
    """Yield reservations as rows of an export."""
    for row in rows:
        yield {
            "workload": str(row.workload) if row.workload else "",
            "team": row.team.name if row.team else "",
            "starts_at": row.starts_at,
            "promised": row.promised,
            "since": row.since,
            "nodes": " ".join(row.nodes),
            "idle_gpus": row.idle_gpus,
            "idle_gpu_hours": row.idle_gpu_hours,
            "cost": row.cost,
            "currency": row.currency,
        }


def _standing() -> Iterable[Reservation]:
    last = Cycle.objects.order_by("-id").only("memory").first()
    if last is None or not last.memory.get("reservations"):
        return ()
    return codec.decode_memory(last.memory).reservations


def _prices(found: Iterable[Reservation]) -> Mapping[str, Decimal]:
    flavors = {f for one in found for a in one.assignments for f in a.flavors.values()}
    return gpu_hour_prices(flavors, clock.now())


def _cost(
    one: Reservation, workload: Workload, hours: float, prices: Mapping[str, Decimal]
) -> Decimal | None:
    """Return what idle hours cost, each flavor counted by the GPUs that it is going to give."""
    gpus: Counter[str] = Counter()
    requests = {pod_set.name: pod_set.requests for pod_set in workload.pod_sets.all()}
    for assignment in one.assignments:
        for resource, amount in requests.get(assignment.pod_set, {}).items():
            if is_gpu(resource) and amount:
                gpus[assignment.flavors[resource]] += amount * assignment.count
    if not gpus or gpus.keys() - prices.keys():
        return None
    total = sum((prices[flavor] * amount for flavor, amount in gpus.items()), Decimal(0))
    return rounded(parse_decimal(hours) * total / gpus.total())


def _row(
    one: Reservation, workload: Workload | None, actor: Actor, prices: Mapping[str, Decimal]
) -> ReservationRow:
    team = workload.team if workload is not None else None
    seen = workload is not None and (
        actor.sees_everything or (team is not None and actor.sees_team(team.pk))
    )
    hours = round(idle_gpu_hours(one, clock.now().timestamp()), 2)
    return ReservationRow(
        workload=workload if seen else None,
        team=team if seen else None,
        starts_at=_instant(one.starts_at),
        promised=one.promised,
        since=_instant(one.since),
        nodes=tuple(sorted({name for a in one.assignments for name in a.nodes})),
        idle_gpus=one.idle_gpus,
        idle_gpu_hours=hours,
        cost=_cost(one, workload, hours, prices) if workload is not None and seen else None,
        currency=settings.CURRENCY,
        gpus_on=_gpus_on(one, workload) if workload is not None else {},
    )


def _gpus_on(one: Reservation, workload: Workload) -> dict[str, int]:
    asked = {part.name: int(part.requests.get(GPU, 0)) for part in workload.pod_sets.all()}
    kept = Counter[str]()
    for part in one.assignments:
        for node, pods in part.nodes.items():
            kept[node] += pods * asked.get(part.pod_set, 0)
    return dict(kept)


def _instant(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)
