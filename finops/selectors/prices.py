"""Readers of prices: the list, the price in force, what open loans will cost if they stay."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal

from django.conf import settings

from finops.loader import EVERY_FLAVOR, gpu_rows
from finops.models import Price
from finops.models.prices import PriceUnit
from gpuplatform.common.money import rounded
from gpuplatform.common.periods import Month, month_at
from queues.access import Actor
from queues.models import ResourceFlavor, Team
from scheduling.engine.terms import Holding
from scheduling.models import UsageInterval

HOUR_S = 3600


@dataclass(frozen=True, slots=True)
class PriceRow:
    """One price and how it stands at an instant."""

    price: Price
    state: str  # in_force | past | coming
    gap_after: bool  # nothing follows it at once, although something follows


@dataclass(frozen=True, slots=True)
class LoanRow:
    """An open loan: what it costs now, and over the next month if it stays."""

    team: Team | None
    cluster_queue: str
    lender: str
    flavor: str
    gpus: int
    since: datetime
    gpu_hour: Decimal | None
    per_hour: Decimal | None
    next_month: Decimal | None


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
    return [EVERY_FLAVOR, *ResourceFlavor.objects.values_list("name", flat=True)]


def open_loans(actor: Actor, now: datetime) -> list[LoanRow]:
    """Return the open loans of the teams whose bill the actor may see, largest first."""
    rows = gpu_rows(UsageInterval.objects.select_related("team")).filter(
        ended_at=None, holding=Holding.BORROWED.value
    )
    book = PriceBook(now)
    running = month_at(now, settings.BILLING_TIME_ZONE)
    coming = month_at(running.ends_at, running.time_zone)
    loans = [
        _loan(row, book, coming)
        for row in rows
        if actor.may_see_bills or row.team_id in actor.bill_team_ids
    ]
    return sorted(loans, key=lambda loan: (-loan.gpus, loan.since, loan.cluster_queue))


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


def _loan(row: UsageInterval, book: PriceBook, coming: Month) -> LoanRow:
    price = book.gpu_hour(row.flavor)
    per_hour = None if price is None else price.amount * row.amount
    return LoanRow(
        team=row.team,
        cluster_queue=row.cluster_queue,
        lender=row.lender,
        flavor=row.flavor,
        gpus=row.amount,
        since=row.started_at,
        gpu_hour=None if price is None else price.amount,
        per_hour=per_hour,
        next_month=None if per_hour is None else rounded(per_hour * coming.hours),
    )
