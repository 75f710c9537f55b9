"""The only writers of prices, and of the note that somebody took a bill home."""

from collections.abc import Iterable
from datetime import datetime

from django.conf import settings
from django.db import transaction
from django.utils.translation import gettext as _

from finops import rules
from finops.dated import SetOne, all_or_none, is_taken_back, take_back
from finops.loader import known_flavors
from finops.models import Price
from finops.models.prices import BILLED_UNITS
from finops.outdating import closed_until, hold_guard, outdate_drafts
from finops.specs import EVERY_FLAVOR, PriceSpec
from gpuplatform.common import audit, clock
from gpuplatform.common.money import digits
from gpuplatform.common.problems import Problem, Rejected
from queues.models import User

PRICE_GUARD = "prices"


def set_price(spec: PriceSpec, actor: User | None, reason: str = "") -> Price:
    """Bring a price into force; the open price before it ends where the new one starts.

    A price equal to the one in force changes nothing. Nothing else is ever edited.

    Raises:
        Rejected: a rule of ``finops.rules`` is broken; nothing was changed.
    """
    return set_prices([spec], actor, reason)[0]


def set_prices(specs: Iterable[PriceSpec], actor: User | None, reason: str = "") -> list[Price]:
    """Bring several prices into force in one transaction: all or none.

    Raises:
        Rejected: with the problems of every price; paths start with ``prices[1]`` where there
            are several.
    """
    sentence = _("Another price was set at the same time; look again.")
    clash = Problem("valid_from", "PRICE_OVERLAPS", sentence)

    def ready() -> SetOne[PriceSpec, Price]:
        now = clock.now()
        return lambda spec: _set_one(spec, spec.valid_from or now, actor, reason)

    return all_or_none(specs, ready, guard=PRICE_GUARD, name="prices", clash=clash)


def check_price(spec: PriceSpec) -> None:
    """Say whether :func:`set_price` would take ``spec``; writes nothing.

    Raises:
        Rejected: with the problems that ``set_price`` would refuse it for.
    """
    world, starts_at = _world(spec), spec.valid_from or clock.now()
    problems = rules.check_price(spec, starts_at, world)
    if problems and not _is_standing(spec, starts_at, world, problems):
        raise Rejected(problems)


def check_end(price: Price, ends_at: datetime) -> None:
    """Say whether :func:`end_price` would end ``price`` then; writes nothing.

    Raises:
        Rejected: with the problems that ``end_price`` would refuse it for.
    """
    problems = rules.check_end(price, ends_at, closed_until())
    if problems:
        raise Rejected(problems)


def end_price(pk: int, actor: User | None, reason: str, ends_at: datetime | None = None) -> Price:
    """Let a price end at ``ends_at``, by default now, without another that follows it.

    One that has not begun is taken back by default: the one before it goes on.

    Raises:
        Rejected: it ends sooner already, it would end before it began or in a closed month;
            nothing was changed.
    """
    with transaction.atomic():
        hold_guard(PRICE_GUARD)
        price = Price.objects.get(pk=pk)
        now = clock.now()
        before, outdated_until = _as_json(price), price.valid_to
        if is_taken_back(price, ends_at, now):
            take_back(price, Price.objects.filter(unit=price.unit, subject=price.subject))
            action, after = "price.taken_back", None
        else:
            check_end(price, ends_at or now)
            price.valid_to = ends_at or now
            price.save(update_fields=["valid_to"])
            action, after = "price.ended", _as_json(price)
        subject = ("Price", f"{price.unit} {price.subject}")
        audit.record(actor, action, subject, before=before, after=after, reason=reason)
        _outdate_drafts(price, price.valid_to or now, outdated_until)
    return price


def record_download(actor: User | None, subject: str, team: str = "") -> None:
    """Note in the audit trail that ``actor`` exported figures of money."""
    audit.record(actor, "bill.exported", ("Bill", subject), team=team)


def _set_one(
    spec: PriceSpec, starts_at: datetime, actor: User | None, reason: str
) -> tuple[Price | None, list[Problem]]:
    world = _world(spec)
    problems = rules.check_price(spec, starts_at, world)
    standing = _is_standing(spec, starts_at, world, problems)
    if standing is not None:
        return standing, []
    if problems:
        return None, problems
    followed = rules.followed_by(starts_at, world.standing)
    if followed is not None:
        Price.objects.filter(pk=followed.pk, valid_to=None).update(valid_to=starts_at)
    price = Price.objects.create(
        unit=spec.unit,
        subject=spec.subject,
        amount=spec.amount,
        currency=spec.currency,
        valid_from=starts_at,
        valid_to=spec.valid_to,
        source=spec.source,
        note=spec.note,
        created_by=actor,
    )
    _record(price, followed, actor, reason or spec.note)
    _outdate_drafts(price, starts_at, spec.valid_to)
    return price, []


def _world(spec: PriceSpec) -> rules.PriceWorld:
    standing = Price.objects.filter(unit=spec.unit, subject=spec.subject)
    flavors = frozenset({EVERY_FLAVOR, *known_flavors()})
    return rules.PriceWorld(tuple(standing), settings.CURRENCY, flavors, closed_until())


def _is_standing(
    spec: PriceSpec, starts_at: datetime, world: rules.PriceWorld, problems: list[Problem]
) -> Price | None:
    """Return the price that stands already, where nothing but that it stands is wrong."""
    standing = _same_in_force(spec, starts_at, world)
    only_stands = {p.code for p in problems} <= {"PRICE_OVERLAPS", "PERIOD_CLOSED"}
    return standing if only_stands else None


def _outdate_drafts(price: Price, start: datetime, end: datetime | None) -> None:
    """Call drafts out of date that the price touches; only prices that bills are made from."""
    if price.unit in BILLED_UNITS:
        outdate_drafts(start, end)


def _same_in_force(spec: PriceSpec, starts_at: datetime, world: rules.PriceWorld) -> Price | None:
    """Return the price that already says what ``spec`` says, so that an import may be repeated."""
    for price in world.standing:
        in_force = price.valid_from <= starts_at and (
            price.valid_to is None or price.valid_to > starts_at
        )
        same = (price.amount, price.currency, price.valid_to)
        if in_force and same == (spec.amount, spec.currency, spec.valid_to):
            return price
    return None


def _record(price: Price, followed: Price | None, actor: User | None, reason: str) -> None:
    audit.record(
        actor,
        "price.set",
        ("Price", f"{price.unit} {price.subject}"),
        before=None if followed is None else _as_json(followed),
        after=_as_json(price),
        reason=reason,
    )


def _as_json(price: Price) -> dict[str, str | None]:
    return {
        "amount": digits(price.amount),
        "currency": price.currency,
        "valid_from": price.valid_from.isoformat(),
        "valid_to": price.valid_to.isoformat() if price.valid_to else None,
        "source": price.source,
    }
