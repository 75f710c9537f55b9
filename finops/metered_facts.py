"""Rows of our own metering to facts: what was there, what was held, what was promised."""

from collections import defaultdict
from collections.abc import Container, Iterable, Iterator
from dataclasses import replace
from datetime import datetime
from typing import NamedTuple, TypeVar
from uuid import UUID

from django.db.models import F, Q, QuerySet

from finops.allocation.facts import Capacity, Instant, Period, Quota, Usage, instant, moment
from finops.price_facts import end_of
from queues.models import Cohort
from scheduling.counters import EVICTIONS
from scheduling.engine.terms import Holding
from scheduling.models import CapacityInterval, QuotaInterval, UsageInterval

GPU = "nvidia.com/gpu"
# Of a run: the team that metering wrote down. It sorts behind every label that a pod can have.
TEAM_MARK = "~metered-team"
Row = TypeVar("Row", CapacityInterval, QuotaInterval, UsageInterval)


def gpu_rows(rows: QuerySet[Row]) -> QuerySet[Row]:
    """Return the rows about GPUs; an empty window is no fact."""
    return rows.filter(resource=GPU).exclude(ended_at=F("started_at"))


def rows_inside(rows: QuerySet[Row], window: Period) -> QuerySet[Row]:
    """Return the GPU rows with a part in ``window``."""
    start, end = moment(window.start), moment(window.end)
    return gpu_rows(rows).filter(Q(ended_at=None) | Q(ended_at__gt=start), started_at__lt=end)


def capacity_facts(rows: Iterable[CapacityInterval], cluster: str) -> tuple[Capacity, ...]:
    """Return what stood on each node, healthy or not."""
    # A broken or cordoned node is paid for as well: capacity cost is inventory x price.
    return tuple(
        Capacity(
            cluster=cluster,
            node=row.node,
            flavor=row.flavor,
            gpus=row.amount,
            start=instant(row.started_at),
            end=end_of(row.ended_at),
        )
        for row in rows
    )


class Stretch(NamedTuple):
    """A row of metering, as far as a bill asks; JSON of the workload as texts."""

    admission: int
    flavor: str
    queue: str
    namespace: str
    team: str | None
    amount: int
    started_at: datetime
    ended_at: datetime | None
    workload: UUID
    labels: dict[str, str]
    annotations: dict[str, str]
    admitted_at: datetime
    eviction_reason: str

    def told(self, keys: Container[str]) -> "Stretch":
        """Return it with no other labels and annotations than those of ``keys``."""
        return self._replace(
            labels={key: text for key, text in self.labels.items() if key in keys},
            annotations={key: text for key, text in self.annotations.items() if key in keys},
        )

    @property
    def ground(self) -> tuple[int, str, str, str, str | None]:
        """What rows of one run have in common, whatever quota they are on."""
        return (self.admission, self.flavor, self.queue, self.namespace, self.team)


_COLUMNS = (
    *("admission_id", "flavor", "cluster_queue", "namespace", "team__name", "amount"),
    *("started_at", "ended_at", "workload_id", "workload__labels", "workload__annotations"),
    *("admission__admitted_at", "admission__eviction_reason"),
)


def usage_facts(window: Period, cluster: str, keys: Container[str] = ()) -> tuple[Usage, ...]:
    """Return what each admission held. Whose quota it was on is found anew, in exact parts.

    Metering writes a row for each ground on which GPUs are held; here they are one run again.
    Of labels and annotations those of ``keys`` are told.
    """
    rows = rows_inside(UsageInterval.objects.order_by("started_at", "id"), window)
    grounds: dict[tuple[object, ...], list[Stretch]] = defaultdict(list)
    for columns in rows.values_list(*_COLUMNS).iterator(chunk_size=2000):
        row = Stretch._make(columns).told(keys)
        grounds[row.ground].append(row)
    return tuple(use for found in grounds.values() for use in _runs(found, cluster))


def _runs(rows: list[Stretch], cluster: str) -> Iterator[Usage]:
    """Yield the stretches in which an admission held the same number of GPUs."""
    changes: dict[Instant, int] = defaultdict(int)
    for row in rows:
        changes[instant(row.started_at)] += row.amount
        if row.ended_at is not None:
            changes[instant(row.ended_at)] -= row.amount
    held, since = 0, 0
    for at in sorted(changes):
        if not changes[at]:
            continue
        if held:
            yield _run(rows[0], cluster, held, since, at)
        held, since = held + changes[at], at
    if held:
        yield _run(rows[0], cluster, held, since, None)


def _run(row: Stretch, cluster: str, gpus: int, start: Instant, end: Instant | None) -> Usage:
    return Usage(
        workload=str(row.workload),
        cluster=cluster,
        flavor=row.flavor,
        gpus=gpus,
        start=start,
        end=end,
        admitted=instant(row.admitted_at),
        queue=row.queue or None,
        namespace=row.namespace or None,
        labels={**row.labels, **({TEAM_MARK: row.team} if row.team else {})},
        annotations=row.annotations,
        preempted=row.eviction_reason in EVICTIONS,
    )


def cohort_lenders(window: Period) -> dict[tuple[str, str], str]:
    """Return the cohort that lent of its own quota, by borrowing queue and flavor.

    The arithmetic of money knows the quotas of queues and lets what lies beyond have no lender;
    metering wrote down whose it was. Where that were several cohorts none can be named. A lender
    that was never a queue was a cohort, even if it is gone by now.
    """
    rows = rows_inside(UsageInterval.objects.filter(holding=Holding.BORROWED.value), window)
    queues = QuotaInterval.objects.values("cluster_queue")
    are_cohorts = Q(lender__in=Cohort.objects.values("name")) | ~Q(lender__in=queues)
    lent = rows.exclude(lender="").filter(are_cohorts).order_by()
    found: dict[tuple[str, str], set[str]] = defaultdict(set)
    for queue, flavor, lender in lent.values_list("cluster_queue", "flavor", "lender").distinct():
        found[queue, flavor].add(lender)
    return {key: lenders.pop() for key, lenders in found.items() if len(lenders) == 1}


def quota_facts(rows: Iterable[QuotaInterval], cluster: str) -> tuple[Quota, ...]:
    """Return what queues were promised; cohorts lend to each other up to the root they had."""
    return tuple(
        replace(quota_fact(row, cluster), cohort=row.root or row.cohort or None) for row in rows
    )


def quota_fact(row: QuotaInterval, cluster: str) -> Quota:
    """Return what one queue was promised of one flavor."""
    return Quota(
        cluster=cluster,
        queue=row.cluster_queue,
        flavor=row.flavor,
        nominal=row.nominal,
        borrowing_limit=row.borrowing_limit,
        lending_limit=row.lending_limit,
        start=instant(row.started_at),
        end=end_of(row.ended_at),
    )
