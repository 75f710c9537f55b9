"""What a price may be. Called by the service, so that no door can skip it.

Paths are fields of the price (``amount``, ``valid_from`` ...); database constraints repeat
what a single row can show.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal

from babel.numbers import list_currencies
from django.utils.translation import gettext as _

from finops.models import Price
from finops.models.prices import PriceUnit
from finops.specs import EVERY_FLAVOR, PriceSpec
from gpuplatform.common.money import plain
from gpuplatform.common.problems import Problem

HIGHEST = Decimal(10) ** 9  # a price column holds ten digits before the point
PLACES = 8
SUBJECT_LENGTH = 253
SOURCE_LENGTH = 64
NAMES_SHOWN = 8


@dataclass(frozen=True, slots=True)
class PriceWorld:
    """What a new price must agree with: its sisters and what is already closed."""

    standing: tuple[Price, ...]  # of the same unit and subject
    currency: str  # of the bills
    flavors: frozenset[str]  # that a GPU-hour can be priced for
    closed_until: datetime | None  # end of the last closed period


def check_price(spec: PriceSpec, starts_at: datetime, world: PriceWorld) -> list[Problem]:
    """Return every reason not to take ``spec`` from ``starts_at`` on."""
    problems = [
        *_check_fields(spec),
        *_check_flavor(spec, world),
        *_check_amount(spec.amount),
        *_check_currency(spec, world),
    ]
    if spec.valid_to is not None and spec.valid_to <= starts_at:
        sentence = _("The price must end after it began.")
        problems.append(Problem("valid_to", "WINDOW_BACKWARDS", sentence))
    if not problems:
        problems += [*_check_overlap(spec, starts_at, world), *_check_closed(starts_at, world)]
    return problems


def followed_by(starts_at: datetime, standing: Iterable[Price]) -> Price | None:
    """Return the open price that a new one from ``starts_at`` on ends, if there is one."""
    for price in standing:
        if price.valid_to is None and price.valid_from < starts_at:
            return price
    return None


def _check_fields(spec: PriceSpec) -> Iterator[Problem]:
    if spec.unit not in PriceUnit.values:
        allowed = ", ".join(PriceUnit.values)
        sentence = _("{unit} is not a unit; choose one of {allowed}.").format(
            unit=spec.unit, allowed=allowed
        )
        yield Problem("unit", "BAD_VALUE", sentence)
    if not spec.subject:
        yield Problem("subject", "REQUIRED", _("Name the flavor or the model."))
    for path, text, limit in (
        ("subject", spec.subject, SUBJECT_LENGTH),
        ("source", spec.source, SOURCE_LENGTH),
    ):
        if len(text) > limit:
            sentence = _("At most {limit} characters.").format(limit=limit)
            yield Problem(path, "TOO_LONG", sentence, {"limit": limit})


def _check_flavor(spec: PriceSpec, world: PriceWorld) -> Iterator[Problem]:
    """A price of a flavor that is not there would bill nothing, and nobody would notice."""
    if spec.unit != PriceUnit.GPU_HOUR or spec.subject in world.flavors:
        return
    if not 0 < len(spec.subject) <= SUBJECT_LENGTH:
        return  # said already
    known = _some(world.flavors)
    sentence = _("There is no flavor {flavor}; choose {known}.").format(
        flavor=spec.subject[:64],
        known=_("one of {names}, or * for every flavor without a price of its own").format(
            names=known
        )
        if known
        else _("* for every flavor"),
    )
    yield Problem("subject", "FLAVOR_NOT_FOUND", sentence, {"flavor": spec.subject[:64]})


def _some(names: Iterable[str]) -> str:
    """Return names to choose from, in one line of bounded length."""
    shown = sorted(set(names) - {EVERY_FLAVOR})
    return ", ".join(shown[:NAMES_SHOWN]) + (", ..." if len(shown) > NAMES_SHOWN else "")


def check_end(price: Price, ends_at: datetime, closed_until: datetime | None) -> list[Problem]:
    """Return every reason not to let ``price`` end at ``ends_at``; it may only end sooner."""
    if ends_at <= price.valid_from:
        sentence = _("The price must end after it began, {start}.").format(
            start=f"{price.valid_from:%Y-%m-%d %H:%M}"
        )
        return [Problem("valid_to", "WINDOW_BACKWARDS", sentence)]
    if price.valid_to is not None and ends_at >= price.valid_to:
        sentence = _("The price ends already, at {end}.").format(
            end=f"{price.valid_to:%Y-%m-%d %H:%M}"
        )
        return [Problem("valid_to", "PRICE_ENDED", sentence)]
    if closed_until is not None and ends_at < closed_until:
        sentence = _("The last closed month ended {end}; a price cannot end before that.").format(
            end=f"{closed_until:%Y-%m-%d}"
        )
        return [Problem("valid_to", "PERIOD_CLOSED", sentence)]
    return []


def _check_amount(amount: Decimal) -> Iterator[Problem]:
    if not amount.is_finite():
        yield Problem("amount", "BAD_TYPE", _("A price is a finite number."))
    elif amount < 0:
        yield Problem("amount", "NEGATIVE", _("A price cannot be negative."))
    elif amount >= HIGHEST:
        yield Problem("amount", "OUT_OF_RANGE", _("A price must be below 1,000,000,000."))
    elif amount != amount.quantize(Decimal(1).scaleb(-PLACES)):
        yield Problem("amount", "TOO_PRECISE", _("A price has at most 8 decimals."))


def _check_currency(spec: PriceSpec, world: PriceWorld) -> Iterator[Problem]:
    if spec.currency not in list_currencies():
        sentence = _("{currency} is not an ISO 4217 currency.").format(currency=spec.currency)
        yield Problem("currency", "BAD_VALUE", sentence)
    elif spec.currency != world.currency:
        # Amounts of two currencies are never added up, so a bill has one.
        sentence = _("Bills are in {bills}; a price in {currency} cannot be billed.").format(
            bills=world.currency, currency=spec.currency
        )
        yield Problem("currency", "CURRENCY_MISMATCH", sentence)


def _check_overlap(spec: PriceSpec, starts_at: datetime, world: PriceWorld) -> Iterator[Problem]:
    """A price in force is not edited: a new one may follow it or fill a gap, nothing else."""
    followed = followed_by(starts_at, world.standing)
    for price in world.standing:
        begins_before_our_end = spec.valid_to is None or price.valid_from < spec.valid_to
        ends_after_our_start = price.valid_to is None or price.valid_to > starts_at
        if price is followed or not (begins_before_our_end and ends_after_our_start):
            continue
        until = f"{price.valid_to:%Y-%m-%d %H:%M}" if price.valid_to else _("further notice")
        sentence = _(
            "{amount} {currency} stands already from {start} until {end}; a price is never edited:"
            " let the new one start later, or take back that one if it has not begun."
        ).format(
            amount=plain(price.amount),
            currency=price.currency,
            start=f"{price.valid_from:%Y-%m-%d %H:%M}",
            end=until,
        )
        path = "valid_from" if price.valid_from <= starts_at else "valid_to"
        yield Problem(path, "PRICE_OVERLAPS", sentence)


def _check_closed(starts_at: datetime, world: PriceWorld) -> Iterator[Problem]:
    if world.closed_until is not None and starts_at < world.closed_until:
        sentence = _(
            "The last closed month ended {end}; a price cannot start before that."
        ).format(end=f"{world.closed_until:%Y-%m-%d}")
        yield Problem("valid_from", "PERIOD_CLOSED", sentence)
