"""What finance must look at before it believes a bill (FORMAT.md 6, findings). Exact."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Literal

from finops.allocation.direct import Used
from finops.allocation.facts import Number
from finops.allocation.ground import Ground
from finops.allocation.idle import Idle, over_allocated
from finops.allocation.lines import Line
from finops.allocation.memo import Memo
from finops.allocation.money import exact_sum
from finops.allocation.places import NOBODYS
from finops.allocation.timeline import hours
from finops.allocation.unit_cost import UnitCost

Level = Literal["info", "warning", "critical"]

OVER_ALLOCATION_TOLERANCE = Fraction(5, 1000)
UNALLOCATED_TOLERANCE = Fraction(5, 100)
HOURS_TOLERANCE = Fraction(2, 100)
DRIFT_WARNING = Fraction(5, 100)
DRIFT_CRITICAL = Fraction(15, 100)
DRIFT_IRON = 50  # below this much iron, or this many tokens, a drift means nothing
DRIFT_TOKENS = 1_000_000


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing to look at: ``subject`` says where, ``numbers`` how much, exactly."""

    code: str
    level: Level
    subject: Mapping[str, str] = field(default_factory=dict)
    numbers: Mapping[str, Number] = field(default_factory=dict)
    cause: str | None = None

    @property
    def order(self) -> tuple[object, ...]:
        """The order of findings: code, subject, numbers, and the cause as the last key."""
        subject, numbers = sorted(self.subject.items()), sorted(self.numbers.items())
        return (self.code, subject, numbers, self.cause or "")


def missing_coverage(ground: Ground) -> Iterator[Finding]:
    """Yield the hours that a source was not loaded; only sources that say what was loaded."""
    period = ground.facts.period
    clusters = sorted({row.cluster for row in ground.facts.capacity})
    for source in ground.loaded.sources:
        for cluster in [""] if source == "tokens" else clusters:
            covered = ground.loaded.coverage(source, cluster).within(period)
            missing = period.end - period.start - sum(one.end - one.start for one in covered)
            if missing:
                subject = {"source": source} | ({"cluster": cluster} if cluster else {})
                yield Finding("missing_coverage", "critical", subject, {"hours": hours(missing)})


def over_allocation(ground: Ground, idle: Idle) -> Iterator[Finding]:
    """Yield where more was charged than stands there."""
    for excess, amount in over_allocated(ground, idle).items():
        cluster, node, resource, flavor = excess
        stands = sum(
            cost
            for pool, cost in idle.capacity.items()
            if pool.cluster == cluster
            and (pool.resource, pool.flavor) == (resource, flavor)
            and (pool.node == node or _is_owned(ground, resource))
        )
        ratio = Fraction(amount) / stands if stands else None
        is_small = ratio is not None and ratio <= OVER_ALLOCATION_TOLERANCE
        subject = {"cluster": cluster, "resource": resource} | ({"node": node} if node else {})
        subject |= {"flavor": flavor} if flavor else {}
        numbers = {"amount": amount} | ({} if ratio is None else {"ratio": ratio})
        yield Finding("over_allocation", "info" if is_small else "warning", subject, numbers)


def _is_owned(ground: Ground, resource: str) -> bool:
    """Whether idle is counted by owner: then it is by cluster, whatever the scope."""
    return resource == "gpu" and ground.facts.policy.idle in {"owner", "owner_net"}


def unallocated(lines: Iterable[Line]) -> Iterator[Finding]:
    """Yield what nobody could be named for, against the total."""
    listed = list(lines)
    amount = exact_sum(Fraction(one.amount) for one in listed if one.account in NOBODYS)
    total = exact_sum(Fraction(one.amount) for one in listed)
    if not amount:
        return
    ratio = amount / total if total else None
    is_small = ratio is not None and abs(ratio) <= UNALLOCATED_TOLERANCE
    numbers = {"amount": amount} | ({} if ratio is None else {"ratio": ratio})
    yield Finding("unallocated", "warning" if is_small else "critical", {}, numbers)


def quotas(ground: Ground) -> Iterator[Finding]:
    """Yield promises beyond capacity, and borrowing beyond its limit."""
    for metered in ground.metered:
        place = {"cluster": metered.cluster, "flavor": metered.flavor}
        beyond = sum(totals.overcommitted for totals in metered.slots.values())
        if beyond:
            yield Finding("overcommitted", "info", place, {"gpu_hours": hours(beyond)})
        by_queue: dict[str, Number] = {}
        for (queue, _), record in metered.queues.items():
            by_queue[queue] = by_queue.get(queue, 0) + record.beyond_limit
        for queue, over in by_queue.items():
            if over:
                subject = place | {"queue": queue}
                yield Finding(
                    "borrow_limit_exceeded", "warning", subject, {"gpu_hours": hours(over)}
                )


def hours_differ(used: Used) -> Iterator[Finding]:
    """Yield the teams whose hours our metering and OpenCost count differently."""
    has_rows = any(hours_of for hours_of in used.iron_hours.values())
    has_usage = bool(used.metered_hours)
    if not (has_rows and has_usage):
        return
    for account in used.metered_hours.keys() | used.iron_hours.keys():
        ours = used.metered_hours.get(account, Fraction(0))
        theirs = used.iron_hours.get(account, Fraction(0))
        if account.is_bucket or abs(ours - theirs) <= max(Fraction(1), HOURS_TOLERANCE * ours):
            continue
        numbers = {"scheduler": ours, "opencost": theirs}
        yield Finding("hours_differ", "warning", {"team": account.name}, numbers)


def drift(memo: Memo) -> Iterator[Finding]:
    """Yield models and teams whose tokens bring back another sum than their iron costs."""
    for name, costs in (("model_group", memo.models), ("team", memo.teams)):
        for cost in costs:
            level = _drift_level(cost)
            if level and cost.drift is not None:
                numbers = {
                    "token_cost": cost.token_cost,
                    "iron": cost.iron_direct,
                    "drift": cost.drift,
                }
                yield Finding("drift", level, {name: cost.name}, numbers)


def _drift_level(cost: UnitCost) -> Level | None:
    if cost.iron_direct < DRIFT_IRON or cost.tokens < DRIFT_TOKENS or cost.drift is None:
        return None
    if abs(cost.drift) > DRIFT_CRITICAL:
        return "critical"
    return "warning" if abs(cost.drift) > DRIFT_WARNING else None
