"""Dated prices to facts of a bill: a flavor's own, the one for all, and where none is."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from decimal import Decimal
from fractions import Fraction

from django.conf import settings
from django.db.models import Q

from finops.allocation.facts import Capacity, Instant, Period, Usage, instant
from finops.allocation.facts import Price as PriceFact
from finops.allocation.money import exact, round_half_up
from finops.allocation.timeline import Coverage, Span, hours, inside, span
from finops.models import Price
from finops.models.prices import PriceUnit
from finops.specs import EVERY_FLAVOR
from scheduling.pricing import Held


def price_facts(
    period: Period, flavors: Iterable[str], rows: Iterable[Price] | None = None
) -> Iterator[PriceFact]:
    """Yield the prices of each flavor; where it has none of its own, the price for all.

    ``rows``: all prices of GPU-hours in the period's currency; 1 query without them.
    """
    if rows is None:
        rows = Price.objects.filter(unit=PriceUnit.GPU_HOUR, currency=period.currency)
    facts = [_price_fact(row) for row in rows]
    shared = [price for price in facts if price.flavor == EVERY_FLAVOR]
    for flavor in sorted(set(flavors)):
        own = [price for price in facts if price.flavor == flavor != EVERY_FLAVOR]
        yield from own
        for gap in Coverage(span(price) for price in own).gaps(_window(period)):
            for price in shared:
                part = inside(price, replace(period, start=gap.start, end=gap.end))
                if part is not None:
                    yield replace(price, flavor=flavor, start=part.start, end=part.end)


def free_fillers(
    period: Period, prices: Iterable[PriceFact], flavors: Iterable[str]
) -> Iterator[PriceFact]:
    """Yield a price of 0 for the time in which a flavor has none."""
    covered: dict[str, Coverage] = defaultdict(Coverage)
    for price in prices:
        covered[price.flavor].add(span(price))
    for flavor in sorted(set(flavors)):
        for gap in covered[flavor].gaps(_window(period)):
            yield PriceFact(flavor, 0, start=gap.start, end=gap.end)


def unpriced(
    period: Period,
    fillers: Iterable[PriceFact],
    sources: Mapping[str, Sequence[Capacity | Usage]],
) -> dict[tuple[str, str], Fraction]:
    """Return the GPU-hours that fillers cover, by source and flavor."""
    found: dict[tuple[str, str], Fraction] = defaultdict(Fraction)
    for filler in fillers:
        gap = Period(filler.start or period.start, filler.end or period.end)
        for source, rows in sources.items():
            for row in rows:
                part = inside(row, gap) if row.flavor == filler.flavor else None
                if part is not None:
                    found[source, filler.flavor] += hours(row.gpus * (part.end - part.start))
    return {key: held for key, held in found.items() if held}


def _window(period: Period) -> Span:
    return Span(period.start, period.end)


def _price_fact(row: Price) -> PriceFact:
    return PriceFact(
        row.subject, exact(row.amount), start=instant(row.valid_from), end=end_of(row.valid_to)
    )


def end_of(ended_at: datetime | None) -> Instant | None:
    """Return when a row ends; None goes on."""
    return None if ended_at is None else instant(ended_at)


class GpuHours:
    """What this room answers when scheduling asks for the price of GPU-hours."""

    def at(self, flavors: Collection[str], at: datetime) -> dict[str, Decimal]:
        """Return what a GPU-hour of each flavor costs at an instant.

        The price for all where it has none of its own; a flavor without any is left out.
        """
        rows = Price.objects.filter(
            Q(valid_to=None) | Q(valid_to__gt=at),
            unit=PriceUnit.GPU_HOUR,
            currency=settings.CURRENCY,
            subject__in=[*flavors, EVERY_FLAVOR],
            valid_from__lte=at,
        )
        found = {row.subject: row.amount for row in rows}
        known = {flavor: found.get(flavor, found.get(EVERY_FLAVOR)) for flavor in flavors}
        return {flavor: amount for flavor, amount in known.items() if amount is not None}

    def worth(self, held: Sequence[Held]) -> list[Decimal | None]:
        """Return what each was worth, to the cent; None where a part of it has no price. 1 query.

        A price that changed meanwhile counts from then on, as on the bill.
        """
        start, end = min(one.since for one in held), max(one.until for one in held)
        period = Period(instant(start), instant(end), currency=settings.CURRENCY)
        by_flavor: dict[str, list[PriceFact]] = defaultdict(list)
        for price in price_facts(period, {one.flavor for one in held}):
            by_flavor[price.flavor].append(price)
        return [_worth(one, by_flavor[one.flavor]) for one in held]


def _worth(held: Held, prices: Iterable[PriceFact]) -> Decimal | None:
    window = Period(instant(held.since), instant(held.until))
    total, priced = Fraction(0), 0
    for price in prices:
        if (part := inside(price, window)) is not None:
            priced += part.end - part.start
            total += hours(held.gpus * (part.end - part.start)) * Fraction(price.gpu_hour)
    if priced < window.end - window.start:
        return None
    return round_half_up(total)
