"""Readers of prices: the list, the price in force, what open loans will cost if they stay."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal

from django.conf import settings

from finops.loader import known_flavors
from finops.metered_facts import gpu_rows
from finops.models import BillingPeriod, Price
from finops.models.prices import PriceUnit
from finops.specs import EVERY_FLAVOR
from finops.staleness import open_periods_touched
from gpuplatform.common.money import rounded
from gpuplatform.common.periods import Month, month_at
from queues.access import Actor
from queues.models import Team
from scheduling.engine.terms import Holding
from scheduling.models import UsageInterval

NOTHING = Decimal("0.00")
HOUR_S = 3600


@dataclass(frozen=True, slots=True)
class PriceRow:
    """One price and how it stands at an instant."""

    price: Price
    state: str  # in_force | past | coming
    gap_after: bool  # nothing follows it at once, although something follows


@dataclass(frozen=True, slots=True)
class LoanRow:
    """A part of an open loan, of one lender to one workload, and what it costs.

    By the hour, until it ends, and next month up to that end. ``ends_at`` None: the borrower
    declared no duration. Such a loan is taken to stay for the whole of next month and has no
    ``until_end``.
    """

    team: Team | None
    cluster_queue: str
    lender: str
    flavor: str
    gpus: int
    since: datetime
    gpu_hour: Decimal | None
    ends_at: datetime | None
    per_hour: Decimal | None
    until_end: Decimal | None
    next_month: Decimal | None


@dataclass(frozen=True, slots=True)
class LoanSums:
    """Open loans together, and how many of them have no end in sight.

    A loan is what one queue borrows of one flavor, as everywhere in the product: its rows, one
    for each lender and workload, are counted once. It stays while one of them has no end.
    """

    count: int
    per_hour: Decimal
    until_end: Decimal
    next_month: Decimal
    staying: int
    ending: int


class PriceBook:
    """The prices in force at one instant, read once."""

    def __init__(self, at: datetime) -> None:
        self.at = at
        self._prices = {
            (price.unit, price.subject): price
            for price in Price.objects.filter(valid_from__lte=at)
            if price.valid_to is None or price.valid_to > at
        }

    def gpu_hour(self, flavor: str) -> Price | None:
        """Return the price of a GPU-hour of ``flavor``; the price for all where it has none."""
        found = self._prices.get((PriceUnit.GPU_HOUR, flavor))
        return found or self._prices.get((PriceUnit.GPU_HOUR, EVERY_FLAVOR))

    def only_gpu_hour(self) -> Price | None:
        """Return the price of a GPU-hour where it is the same whatever the flavor, else None."""
        found = [
            price for (unit, _subject), price in self._prices.items() if unit == PriceUnit.GPU_HOUR
        ]
        return found[0] if len({price.amount for price in found}) == 1 else None


def price_rows(now: datetime, *, unit: str = "", subject: str = "") -> list[PriceRow]:
    """Return all prices by unit and subject, newest first, with gaps marked."""
    prices = Price.objects.order_by("unit", "subject", "-valid_from")
    if unit:
        prices = prices.filter(unit=unit)
    if subject:
        prices = prices.filter(subject__icontains=subject)
    return _with_gaps(list(prices), now)


def flavor_names() -> list[str]:
    """Return the flavors that a price can be set for, "*" first."""
    return [EVERY_FLAVOR, *known_flavors()]


def flavor_to_compare(now: datetime, calculated: Decimal) -> str:
    """Return the flavor with a price in force that is nearest to a ``calculated`` one.

    Of two as near, the price for every flavor, then the first by name.
    """
    book = PriceBook(now)
    priced = {name: price for name in flavor_names() if (price := book.gpu_hour(name))}
    distances = {name: abs(price.amount - calculated) for name, price in priced.items()}
    return min(distances, key=distances.__getitem__) if distances else EVERY_FLAVOR


def price_to_end(pk: int, now: datetime) -> Price | None:
    """Return the price if it can be ended, or taken back as it is still to come; else None."""
    price = Price.objects.filter(pk=pk).first()
    return price if price is not None and _state(price, now) != "past" else None


def months_reached_back(
    start: datetime | None, end: datetime | None, now: datetime
) -> list[BillingPeriod]:
    """Return the open months that a price from ``start`` in the past on changes, oldest first."""
    if start is None or start >= now:
        return []
    return list(open_periods_touched(start, end))


def open_loans(actor: Actor, now: datetime) -> list[LoanRow]:
    """Return the open loans of the teams whose bill the actor may see, largest first."""
    rows = gpu_rows(UsageInterval.objects.select_related("team", "workload")).filter(
        ended_at=None, holding=Holding.BORROWED.value
    )
    book = PriceBook(now)
    running = month_at(now, settings.BILLING_TIME_ZONE)
    coming = month_at(running.ends_at, running.time_zone)
    loans = [
        _loan(row, book, now, coming)
        for row in rows
        if actor.may_see_bills or row.team_id in actor.bill_team_ids
    ]
    return sorted(loans, key=lambda loan: (-loan.gpus, loan.since, loan.cluster_queue))


def loan_sums(loans: Sequence[LoanRow]) -> LoanSums:
    """Return what the loans cost together; one without a price adds nothing."""
    every = {(loan.cluster_queue, loan.flavor) for loan in loans}
    staying = {(loan.cluster_queue, loan.flavor) for loan in loans if loan.ends_at is None}
    return LoanSums(
        count=len(every),
        per_hour=sum((loan.per_hour or NOTHING for loan in loans), NOTHING),
        until_end=sum((loan.until_end or NOTHING for loan in loans), NOTHING),
        next_month=sum((loan.next_month or NOTHING for loan in loans), NOTHING),
        staying=len(staying),
        ending=len(every - staying),
    )


def _with_gaps(prices: Sequence[Price], now: datetime) -> list[PriceRow]:
    rows: list[PriceRow] = []
    for position, price in enumerate(prices):
        later = prices[position - 1] if position else None
        same = later is not None and (later.unit, later.subject) == (price.unit, price.subject)
        gap = same and later is not None and price.valid_to != later.valid_from
        rows.append(PriceRow(price, _state(price, now), gap))
    return rows


def _state(price: Price, now: datetime) -> str:
    if price.valid_from > now:
        return "coming"
    return "in_force" if price.valid_to is None or price.valid_to > now else "past"


def _loan(row: UsageInterval, book: PriceBook, now: datetime, coming: Month) -> LoanRow:
    price = book.gpu_hour(row.flavor)
    per_hour = None if price is None else price.amount * row.amount
    ends_at = _expected_end(row)
    hours_left = None if ends_at is None else _hours(now, ends_at)
    hours_coming = _hours(coming.starts_at, min(ends_at or coming.ends_at, coming.ends_at))
    return LoanRow(
        team=row.team,
        cluster_queue=row.cluster_queue,
        lender=row.lender,
        flavor=row.flavor,
        gpus=row.amount,
        since=row.started_at,
        gpu_hour=None if price is None else price.amount,
        ends_at=ends_at,
        per_hour=per_hour,
        until_end=_cost(per_hour, hours_left),
        next_month=_cost(per_hour, hours_coming),
    )


def _expected_end(row: UsageInterval) -> datetime | None:
    """Return when the borrower said it would be done; None where it said nothing."""
    declared_s = row.workload.expected_duration_s
    if declared_s is None:
        return None
    return (row.workload.started_at or row.started_at) + timedelta(seconds=declared_s)


def _hours(start: datetime, end: datetime) -> Decimal:
    """Return the hours from ``start`` to ``end``; none where that is already past."""
    seconds = max(Decimal(0), Decimal((end - start) // timedelta(seconds=1)))
    return seconds / HOUR_S


def _cost(per_hour: Decimal | None, hours: Decimal | None) -> Decimal | None:
    return None if per_hour is None or hours is None else rounded(per_hour * hours)
