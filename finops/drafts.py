"""From the one arithmetic of money to the lines a draft shows.

``finops.allocation`` tells lines apart by namespace and queue; a draft adds up those that differ
in nothing it shows, and gives every line of idle its GPU-hours. What nobody owns keeps the names
it could be assigned by. No cent is made or moved here: the amounts are sums of the bill's.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import date, timedelta
from decimal import Decimal
from fractions import Fraction
from typing import NamedTuple

from finops.allocation.apportion import apportion
from finops.allocation.bill import Outcome, chargeback
from finops.allocation.checks import overlaps
from finops.allocation.facts import Capacity, Facts, IdlePolicy, Period, Usage, moment
from finops.allocation.findings import Finding
from finops.allocation.idle import Where
from finops.allocation.idle_hours import idle_hours
from finops.allocation.lines import Line, Sources
from finops.allocation.money import (
    HOURS_PLACES,
    RATE_PLACES,
    ZERO,
    Sum,
    exact_sum,
    round_half_up,
)
from finops.allocation.places import NOBODYS
from finops.allocation.timeline import Span, inside, local_date
from finops.loader import MonthFacts
from finops.words import CAPACITY_KINDS

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
    origin: str
    kind: str
    cluster: str
    namespace: str
    queue: str
    flavor: str
    lender: str
    model_group: str
    counterparty: str
    ref: str
    unit_price: Fraction | None
    pool: Where
    is_hidden: bool


@dataclass(slots=True)
class DraftLine:
    """One line of a draft: exact hours, whole cents, and the days they fell on."""

    key: DraftKey
    quantity: Fraction = ZERO
    unit: str = ""
    amount: Decimal = NOTHING
    exact: Fraction = ZERO
    days: dict[date, Decimal] = field(default_factory=lambda: defaultdict(lambda: NOTHING))

    @property
    def hours(self) -> Decimal:
        """The quantity as a bill shows it: GPU-hours, or what ``unit`` says."""
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
    outcome: Outcome

    @property
    def sources(self) -> Sources:
        """The five totals that the lines add up to."""
        return self.outcome.sources

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
    lines = _merged(outcome, unpriced, _only_prices(facts, unpriced), month)
    _give_idle_its_days(outcome, lines)
    capacity = exact_sum(row.capacity for row in outcome.memo.gpu_hours)
    return Draft(
        lines=tuple(lines),
        teams=tuple(team.id for team in facts.teams),
        by_queue=_by_queue(outcome),
        findings=(
            *month.findings,
            *_unpriced(month),
            *(_shown(one, month) for one in outcome.findings),
        ),
        capacity_hours=round_half_up(capacity, HOURS_PLACES),
        outcome=outcome,
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
    outcome: Outcome, unpriced: set[str], only_prices: Mapping[Where, Fraction], month: MonthFacts
) -> list[DraftLine]:
    found: dict[DraftKey, DraftLine] = {}
    unused = idle_hours(outcome)
    for index, line in enumerate(outcome.lines):
        key = _key(line, unpriced, month)
        is_idle = key.kind in CAPACITY_KINDS
        if is_idle and key.unit_price is None and line.key.unit_price is None:
            key = key._replace(unit_price=only_prices.get(key.pool))
        into = found.setdefault(key, DraftLine(key))
        into.unit = into.unit or line.unit or ("gpu_hours" if is_idle else "")
        into.quantity += line.quantity or unused.get(index, ZERO)
        into.amount += line.amount
        into.exact += line.exact
        for part in line.days:
            into.days[part.day] += part.amount
    return list(found.values())


def _key(line: Line, unpriced: set[str], month: MonthFacts) -> DraftKey:
    name, key = line.account.name, line.key
    price = None if key.unit_price is None else Fraction(key.unit_price)
    is_nobodys = line.account in NOBODYS
    return DraftKey(
        team=CENTRAL if line.account.is_bucket else name,
        bucket=name if line.account.is_bucket else "",
        origin=line.origin,
        kind=_kind(line),
        cluster="" if key.cluster == month.cluster else key.cluster,
        namespace=key.namespace if is_nobodys else "",
        queue=key.queue if is_nobodys else "",
        flavor=key.flavor,
        lender=_lender(line, month),
        model_group=key.model_group,
        counterparty=key.counterparty,
        ref=key.ref,
        unit_price=None if not price and key.flavor in unpriced else price,
        pool=Where(key.cluster, key.flavor),
        is_hidden=line.is_hidden,
    )


def _lender(line: Line, month: MonthFacts) -> str:
    """Return who lent: a queue; a cohort whose own quota it was, as metering wrote it down."""
    key = line.key
    if key.line_type == "loan_income":
        return key.queue
    if key.line_type == "gpu_borrowed" and not key.lender:
        return month.cohort_lenders.get((key.queue, key.flavor), "")
    return key.lender


def _only_prices(facts: Facts, unpriced: set[str]) -> dict[Where, Fraction]:
    """Return by pool the price of all its GPU-hours, where it is one and the same."""
    flavors: dict[Where, set[str]] = defaultdict(set)
    rows: tuple[Capacity | Usage, ...] = (*facts.capacity, *facts.usage)
    for row in rows:
        flavors[Where(row.cluster, "")].add(row.flavor)
        flavors[Where(row.cluster, row.flavor)].add(row.flavor)
    billed = _prices_met(facts, rows)
    found = {}
    for pool, names in flavors.items():
        prices = set[Fraction]().union(*(billed[name] for name in names))
        if len(prices) == 1 and not names & unpriced:
            found[pool] = prices.pop()
    return found


def _prices_met(facts: Facts, rows: Iterable[Capacity | Usage]) -> dict[str, set[Fraction]]:
    """Return the prices of each flavor while anything of it was there, in the period.

    What nothing was billed at, like the hours before a flavor's first node, is no second price.
    """
    there: dict[str, list[Span]] = defaultdict(list)
    for row in rows:
        if window := inside(row, facts.period):
            there[row.flavor].append(window)
    found: dict[str, set[Fraction]] = defaultdict(set)
    for price in facts.prices:
        window = inside(price, facts.period)
        if window and any(
            one.start < window.end and window.start < one.end for one in there[price.flavor]
        ):
            found[price.flavor].add(Fraction(price.gpu_hour))
    return found


def _kind(line: Line) -> str:
    is_metered = bool(line.key.flavor)  # a row of OpenCost names none, and no queue either
    if line.key.line_type == "gpu_direct" and is_metered and not line.key.queue:
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
def _give_idle_its_days(outcome: Outcome, lines: Collection[DraftLine]) -> None:
    """Lines of use know their days; idle falls as its pool's does, tokens as they were asked for.

    What is left falls in equal parts on all days, but for capacity, which falls on the last.
    """
    period = outcome.facts.period
    is_asked = any(line.unit == "tokens" for line in lines)
    asked = _token_days(outcome.facts) if is_asked else {}
    every = dict.fromkeys(_days(period), Fraction(1))
    last = {local_date(period, period.end - 1): Fraction(1)}
    for line in lines:
        if line.days:
            continue
        if line.key.kind in CAPACITY_KINDS:
            weights = _idle_days(outcome, line.key.pool) or last
        else:
            weights = (asked if line.unit == "tokens" else {}) or every
        line.days.update(apportion(line.amount, weights))


def _idle_days(outcome: Outcome, pool: Where) -> dict[date, Fraction]:
    days = outcome.idle_by_day.get(pool) or outcome.idle_by_day.get(Where(pool.cluster, ""), {})
    weights = {day: max(ZERO, Fraction(amount)) for day, amount in days.items()}
    return weights if any(weights.values()) else {}


def _days(period: Period) -> Iterator[date]:
    day, last = local_date(period, period.start), local_date(period, period.end - 1)
    while day <= last:
        yield day
        day += timedelta(days=1)


def _token_days(facts: Facts) -> dict[date, Fraction]:
    found: dict[date, Sum] = defaultdict(Sum)
    for row in facts.tokens:
        if row.spend and facts.period.start <= row.instant < facts.period.end:
            found[local_date(facts.period, row.instant)].add(row.spend)
    return {day: spent.total for day, spent in found.items()}


# ---- findings ----------------------------------------------------------------------------------
def _unpriced(month: MonthFacts) -> Iterator[Finding]:
    """Yield the hours that were billed at nothing, which is never what was meant."""
    for (source, flavor), hours in sorted(month.unpriced.items()):
        subject = {"flavor": flavor, "source": source}
        yield Finding("unpriced", "critical", subject, {"gpu_hours": hours})


def _shown(found: Finding, month: MonthFacts) -> Finding:
    """Return a finding that names no cluster where it is the one that we schedule."""
    subject = {
        name: text
        for name, text in found.subject.items()
        if (name, text) != ("cluster", month.cluster)
    }
    return Finding(found.code, found.level, subject, found.numbers, found.cause)
