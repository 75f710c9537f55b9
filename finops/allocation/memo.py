"""What a bill shows beside its lines: hours, loans, cost per token (FORMAT.md 6, memo). Exact."""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

from finops.allocation.direct import Used
from finops.allocation.facts import Number
from finops.allocation.ground import Ground
from finops.allocation.loans import Held, Metered
from finops.allocation.money import Sum
from finops.allocation.timeline import hours
from finops.allocation.tokens import TokenRow
from finops.allocation.unit_cost import UnitCost


@dataclass(frozen=True, slots=True)
class ClusterHours:
    """GPU-hours of a cluster; ``used`` is of the billed source."""

    cluster: str
    capacity: Fraction
    used: Fraction

    @property
    def idle(self) -> Fraction:
        """What was paid for and not used."""
        return self.capacity - self.used


@dataclass(frozen=True, slots=True)
class FlavorHours:
    """GPU-hours of a flavor: ``capacity = used + net_idle + unquota - over``."""

    cluster: str
    flavor: str
    capacity: Fraction
    used: Fraction
    net_idle: Fraction
    unquota: Fraction
    over: Fraction


@dataclass(frozen=True, slots=True)
class QueueHours:
    """GPU-hours of a queue on a flavor."""

    cluster: str
    queue: str
    flavor: str
    held: Fraction
    nominal: Fraction
    borrowed: Fraction
    lent: Fraction
    net_idle: Fraction


@dataclass(frozen=True, slots=True)
class LoanHours:
    """What one queue borrowed from another ("" = from nobody), and what is still open."""

    cluster: str
    flavor: str
    lender: str
    borrower: str
    gpu_hours: Fraction
    amount: Fraction
    open_gpus: Fraction
    forward_cost: Fraction


@dataclass(frozen=True, slots=True)
class TagCost:
    """Billable tokens of a tag; a row counts once for each of its tags."""

    tag: str
    tokens: int
    token_cost: Fraction


@dataclass(frozen=True, slots=True)
class WorkloadHours:
    """GPU-hours of a workload; ``preempted`` were held by runs that ended in eviction."""

    workload: str
    held: Fraction
    borrowed: Fraction
    preempted: Fraction


@dataclass(frozen=True, slots=True)
class Memo:
    """All of it, each list in the order of its leading fields."""

    gpu_hours: tuple[ClusterHours, ...]
    metering: tuple[FlavorHours, ...]
    queues: tuple[QueueHours, ...]
    loans: tuple[LoanHours, ...]
    models: tuple[UnitCost, ...]
    teams: tuple[UnitCost, ...]
    tags: tuple[TagCost, ...]
    workloads: tuple[WorkloadHours, ...] | None


def memo(
    ground: Ground,
    used: Used,
    rows: list[TokenRow],
    models: tuple[UnitCost, ...],
    teams: tuple[UnitCost, ...],
) -> Memo:
    """Return the memo of a bill."""
    has_workloads = ground.facts.policy.detail == "workload"
    return Memo(
        gpu_hours=tuple(_clusters(ground, used)),
        metering=tuple(_flavor(metered) for metered in ground.metered),
        queues=tuple(sorted(_queues(ground), key=lambda q: (q.cluster, q.queue, q.flavor))),
        loans=tuple(loan for metered in ground.metered for loan in _loans(ground, metered)),
        models=models,
        teams=teams,
        tags=tuple(_tags(rows)),
        workloads=tuple(_workloads(ground)) if has_workloads else None,
    )


def _clusters(ground: Ground, used: Used) -> Iterator[ClusterHours]:
    capacity: dict[str, Number] = defaultdict(int)
    held: dict[str, Number] = defaultdict(int)
    for metered in ground.metered:
        for totals in metered.slots.values():
            capacity[metered.cluster] += totals.capacity
            held[metered.cluster] += totals.used
    clusters = {metered.cluster for metered in ground.metered}
    by_rows = ground.facts.policy.usage_source == "opencost"
    for cluster in sorted(clusters | used.iron_hours_by_cluster.keys() if by_rows else clusters):
        from_rows = used.iron_hours_by_cluster.get(cluster, Fraction(0))
        yield ClusterHours(
            cluster, hours(capacity[cluster]), from_rows if by_rows else hours(held[cluster])
        )


def _flavor(metered: Metered) -> FlavorHours:
    totals = metered.slots.values()
    return FlavorHours(
        metered.cluster,
        metered.flavor,
        capacity=hours(sum(one.capacity for one in totals)),
        used=hours(sum(one.used for one in totals)),
        net_idle=hours(sum(one.net_idle for one in totals)),
        unquota=hours(sum(one.unquota for one in totals)),
        over=hours(sum(one.over for one in totals)),
    )


def _queues(ground: Ground) -> Iterator[QueueHours]:
    for metered in ground.metered:
        for queue in sorted({queue for queue, _ in metered.queues}):
            records = [record for (name, _), record in metered.queues.items() if name == queue]
            yield QueueHours(
                metered.cluster,
                queue,
                metered.flavor,
                held=hours(sum(record.held for record in records)),
                nominal=hours(sum(record.nominal for record in records)),
                borrowed=hours(sum(record.borrowed for record in records)),
                lent=hours(sum(record.lent for record in records)),
                net_idle=hours(sum(record.net_idle for record in records)),
            )


def _loans(ground: Ground, metered: Metered) -> Iterator[LoanHours]:
    lent: dict[tuple[str, str], Number] = defaultdict(int)
    amounts: dict[tuple[str, str], Number] = defaultdict(Fraction)
    for (lender, borrower, slot), gpus in metered.loans.items():
        price = ground.price(metered.flavor, slot).gpu_hour
        lent[lender, borrower] += gpus
        amounts[lender, borrower] += hours(gpus) * price
    period = ground.facts.period
    length = hours(period.end - period.start)
    for pair in sorted(lent):
        still_open = Fraction(metered.open_loans.get(pair, 0))
        price = ground.price(metered.flavor, len(ground.slots) - 1).gpu_hour if still_open else 0
        yield LoanHours(
            metered.cluster,
            metered.flavor,
            *pair,
            gpu_hours=hours(lent[pair]),
            amount=Fraction(amounts[pair]),
            open_gpus=still_open,
            forward_cost=still_open * price * length,
        )


def _tags(rows: list[TokenRow]) -> Iterator[TagCost]:
    tokens: dict[str, int] = defaultdict(int)
    cost: dict[str, Sum] = defaultdict(Sum)
    for row in rows:
        for tag in set(row.use.tags):
            tokens[tag] += row.tokens
            cost[tag].add(row.cost)
    for tag in sorted(tokens):
        yield TagCost(tag, tokens[tag], cost[tag].total)


def _workloads(ground: Ground) -> Iterator[WorkloadHours]:
    held: dict[str, list[tuple[Held, bool]]] = defaultdict(list)
    for metered in ground.metered:
        for (run, _), one in metered.held.items():
            use = ground.facts.usage[run]
            held[use.workload].append((one, use.preempted))
    for workload in sorted(held):
        parts = held[workload]
        yield WorkloadHours(
            workload,
            held=hours(sum(one.total for one, _ in parts)),
            borrowed=hours(sum(one.total - one.own for one, _ in parts)),
            preempted=hours(sum(one.total for one, preempted in parts if preempted)),
        )
