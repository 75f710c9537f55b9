"""From the one arithmetic of money to the lines a draft shows.

``finops.allocation`` tells lines apart by cluster, namespace and queue; a draft adds up those
that differ in nothing it shows, and gives every line of idle its GPU-hours. No cent is made or
moved here: the amounts are sums of the bill's.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal
from fractions import Fraction
from typing import NamedTuple

from finops.allocation.apportion import apportion
from finops.allocation.bill import Outcome, chargeback
from finops.allocation.checks import overlaps
from finops.allocation.facts import Facts, IdlePolicy, moment
from finops.allocation.findings import Finding
from finops.allocation.lines import Line
from finops.allocation.money import HOURS_PLACES, RATE_PLACES, ZERO, exact_sum, round_half_up
from finops.allocation.timeline import inside, local_date
from finops.loader import SHARED_OVER_ALL, WHOLE_CLUSTER, MonthFacts
from finops.words import USE_KINDS

CENTRAL = ""
NOTHING = Decimal("0.00")


class ContradictionError(ValueError):
    """Metering or prices that cannot both be right; ``field`` names the list they are in."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(f"{field}: {message}")
        self.field = field
        self.message = message


class DraftKey(NamedTuple):
    """What a line of a draft shows; ``team`` or ``bucket`` is empty, ``pool`` names the idle."""

    team: str
    bucket: str
    kind: str
    flavor: str
    lender: str
    unit_price: Fraction | None
    pool: str


@dataclass(slots=True)
class DraftLine:
    """One line of a draft: exact hours, whole cents, and the days they fell on."""

    key: DraftKey
    quantity: Fraction = ZERO
    amount: Decimal = NOTHING
    exact: Fraction = ZERO
    days: dict[date, Decimal] = field(default_factory=lambda: defaultdict(lambda: NOTHING))

    @property
    def hours(self) -> Decimal:
        """GPU-hours as a bill shows them."""
        return round_half_up(self.quantity, HOURS_PLACES)

    @property
    def unit_price(self) -> Decimal | None:
        """The price of a GPU-hour as a bill shows it; None where none was in force."""
        price = self.key.unit_price
        return None if price is None else round_half_up(price, RATE_PLACES)


@dataclass(frozen=True, slots=True)
class Draft:
    """The bill of a month as the product shows it."""

    lines: tuple[DraftLine, ...]
    teams: tuple[str, ...]
    by_queue: Mapping[str, Mapping[str, Decimal]]  # team -> queue -> cost of use
    findings: tuple[Finding, ...]
    capacity_hours: Decimal

    @property
    def total(self) -> Decimal:
        """What everything cost."""
        return sum((line.amount for line in self.lines), NOTHING)

    def of(self, team: str) -> Decimal:
        """Return what a team comes to; "" is the central account."""
        return sum((line.amount for line in self.lines if line.key.team == team), NOTHING)


def draft(month: MonthFacts, idle: IdlePolicy) -> Draft:
    """Bill a month with a policy.

    Raises:
        ContradictionError: two prices, quotas or nodes of one name at the same time.
    """
    facts = month.under(idle)
    _refuse_overlaps(facts)
    outcome = chargeback(facts, by_day=True)
    unpriced = {flavor for _, flavor in month.unpriced}
    lines = _merged(outcome, unpriced, _only_prices(facts, unpriced))
    _give_idle_its_hours(outcome, lines)
    _give_idle_its_days(outcome, lines)
    capacity = exact_sum(row.capacity for row in outcome.memo.gpu_hours)
    return Draft(
        lines=tuple(lines),
        teams=tuple(team.id for team in facts.teams),
        by_queue=_by_queue(outcome),
        findings=(*_unpriced(month), *(_shown(found, idle) for found in outcome.findings)),
        capacity_hours=round_half_up(capacity, HOURS_PLACES),
    )


def _refuse_overlaps(facts: Facts) -> None:
    """Two prices or twice the same node would be billed twice; nobody could see it later."""
    for problem in sorted(overlaps(facts))[:1]:
        name, _, index = problem.path.rstrip("]").partition("[")
        row = getattr(facts, name)[int(index)]
        parts = [getattr(row, part, None) for part in ("node", "queue", "flavor")]
        since = "" if row.start is None else f" from {moment(row.start).isoformat()}"
        label = "/".join(part for part in parts if part)
        raise ContradictionError(name, f"{label} overlaps{since}")


# ---- lines -------------------------------------------------------------------------------------
def _merged(
    outcome: Outcome, unpriced: set[str], only_prices: Mapping[str, Fraction]
) -> list[DraftLine]:
    found: dict[DraftKey, DraftLine] = {}
    for line in outcome.lines:
        key = _key(line, unpriced)
        if key.unit_price is None and line.key.unit_price is None:
            key = key._replace(unit_price=only_prices.get(key.pool))
        into = found.setdefault(key, DraftLine(key))
        into.quantity += line.quantity
        into.amount += line.amount
        into.exact += line.exact
        for part in line.days:
            into.days[part.day] += part.amount
    return list(found.values())


def _key(line: Line, unpriced: set[str]) -> DraftKey:
    name, key = line.account.name, line.key
    price = None if key.unit_price is None else Fraction(key.unit_price)
    is_idle = line.origin != "direct"
    return DraftKey(
        team=CENTRAL if line.account.is_bucket else name,
        bucket=name if line.account.is_bucket else "",
        kind=_kind(line),
        # Where each flavor is a pool of its own, the pool's name is the flavor's.
        flavor=key.cluster if is_idle else key.flavor,
        lender=key.queue if key.line_type == "loan_income" else key.lender,
        unit_price=None if not price and key.flavor in unpriced else price,
        pool=key.cluster,
    )


def _only_prices(facts: Facts, unpriced: set[str]) -> dict[str, Fraction]:
    """Return by pool the price of all its GPU-hours, where it is one and the same."""
    flavors: dict[str, set[str]] = defaultdict(set)
    for capacity in facts.capacity:
        flavors[capacity.cluster].add(capacity.flavor)
    for use in facts.usage:
        flavors[use.cluster].add(use.flavor)
    found = {}
    for pool, names in flavors.items():
        prices = {
            Fraction(price.gpu_hour)
            for price in facts.prices
            if price.flavor in names and inside(price, facts.period)
        }
        if len(prices) == 1 and not names & unpriced:
            found[pool] = prices.pop()
    return found


def _kind(line: Line) -> str:
    if line.key.line_type == "gpu_direct" and not line.key.queue:
        return "unmanaged"
    return line.key.line_type


def _by_queue(outcome: Outcome) -> dict[str, dict[str, Decimal]]:
    found: dict[str, dict[str, Decimal]] = defaultdict(lambda: defaultdict(lambda: NOTHING))
    for line in outcome.lines:
        if line.origin == "direct":
            team = CENTRAL if line.account.is_bucket else line.account.name
            found[team][line.key.queue] += line.amount
    return {team: dict(queues) for team, queues in found.items()}


# ---- idle --------------------------------------------------------------------------------------
def _give_idle_its_hours(outcome: Outcome, lines: Iterable[DraftLine]) -> None:
    """Give lines of idle their part of the pool's unused GPU-hours, in proportion to money."""
    is_owned = outcome.facts.policy.idle in {"owner", "owner_net"}
    pools: dict[str, list[DraftLine]] = defaultdict(list)
    for line in lines:
        if line.key.kind not in USE_KINDS and not line.quantity:
            pools[line.key.pool].append(line)
    for pool, found in pools.items():
        if is_owned:
            _by_metering(outcome, pool, found)
        else:
            _by_money(_unused(outcome, pool), found)


def _unused(outcome: Outcome, pool: str) -> Fraction:
    return exact_sum(row.idle for row in outcome.memo.gpu_hours if row.cluster == pool)


def _by_money(hours: Fraction, lines: list[DraftLine]) -> None:
    total = exact_sum(line.exact for line in lines)
    for line in lines:
        line.quantity = hours * line.exact / total if total else ZERO


def _by_metering(outcome: Outcome, pool: str, lines: list[DraftLine]) -> None:
    """Under owner policies what is left is in nobody's quota, or beyond capacity."""
    metered = [row for row in outcome.memo.metering if row.cluster == pool]
    for line in lines:
        if line.key.kind == "idle":
            line.quantity = exact_sum(row.unquota for row in metered)
        if line.key.kind == "over_allocation":
            line.quantity = -exact_sum(row.over for row in metered)


def _give_idle_its_days(outcome: Outcome, lines: Iterable[DraftLine]) -> None:
    """Lines of use know their days; idle falls as its pool's does, else on the last day."""
    for line in lines:
        if line.days:
            continue
        weights = {
            day: max(ZERO, Fraction(amount))
            for day, amount in outcome.idle_by_day.get(line.key.pool, {}).items()
        }
        if any(weights.values()):
            line.days.update(apportion(line.amount, weights))
        else:
            period = outcome.facts.period
            line.days[local_date(period, period.end - 1)] = line.amount


# ---- findings ----------------------------------------------------------------------------------
def _unpriced(month: MonthFacts) -> Iterator[Finding]:
    """Yield the hours that were billed at nothing, which is never what was meant."""
    for (source, flavor), hours in sorted(month.unpriced.items()):
        subject = {"flavor": flavor, "source": source}
        yield Finding("unpriced", "critical", subject, {"gpu_hours": hours})


def _shown(found: Finding, idle: IdlePolicy) -> Finding:
    """Return a finding that names a flavor where its pool is one, and no cluster."""
    subject = dict(found.subject)
    pool = subject.pop("cluster", WHOLE_CLUSTER)
    if pool and idle not in SHARED_OVER_ALL:
        subject["flavor"] = pool
    return Finding(found.code, found.level, subject, found.numbers, found.cause)
