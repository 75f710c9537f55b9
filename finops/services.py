"""The only writers of prices, and of the note that somebody took a bill home."""

import logging
from collections.abc import Iterable
from datetime import datetime

from celery import current_app
from django.conf import settings
from django.db import IntegrityError, transaction
from django.db.models import F, Max
from django.utils.translation import gettext as _

from finops import rules
from finops.models import BillingPeriod, Price
from finops.specs import PriceSpec
from gpuplatform.common import audit, clock
from gpuplatform.common.models import Lease
from gpuplatform.common.problems import Problem, Rejected
from queues.models import User

REBUILD_TASK = "finops.rebuild_drafts"
PRICE_GUARD = "prices"
logger = logging.getLogger(__name__)


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
    wanted = list(specs)
    try:
        with transaction.atomic():
            return _set_all(wanted, actor, reason)
    except IntegrityError as error:  # a constraint saw what the rules did not
        sentence = _("Another price was set at the same time; look again.")
        raise Rejected([Problem("valid_from", "PRICE_OVERLAPS", sentence)]) from error


def record_download(actor: User | None, subject: str, team: str = "") -> None:
    """Note in the audit trail that ``actor`` exported figures of money."""
    audit.record(actor, "bill.exported", ("Bill", subject), team=team)


def _set_all(specs: list[PriceSpec], actor: User | None, reason: str) -> list[Price]:
    _hold_guard()
    now = clock.now()
    prices, problems = [], []
    for position, spec in enumerate(specs):
        price, found = _set_one(spec, spec.valid_from or now, actor, reason)
        prefix = f"prices[{position}]." if len(specs) > 1 else ""
        problems += [Problem(prefix + p.path, p.code, p.message, p.numbers) for p in found]
        prices += [price] if price else []
    if problems:
        raise Rejected(problems)
    return prices


def _hold_guard() -> None:
    """Let one writer of prices go at a time, on both databases: it holds a row to the end."""
    Lease.objects.get_or_create(name=PRICE_GUARD)
    Lease.objects.filter(name=PRICE_GUARD).update(fence=F("fence") + 1)


def _set_one(
    spec: PriceSpec, starts_at: datetime, actor: User | None, reason: str
) -> tuple[Price | None, list[Problem]]:
    world = _world(spec)
    problems = rules.check_price(spec, starts_at, world)
    standing = _same_in_force(spec, starts_at, world)
    if standing is not None and {p.code for p in problems} <= {"PRICE_OVERLAPS", "PERIOD_CLOSED"}:
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
    transaction.on_commit(_request_rebuild, robust=True)
    return price, []


def _world(spec: PriceSpec) -> rules.PriceWorld:
    standing = Price.objects.filter(unit=spec.unit, subject=spec.subject)
    closed = BillingPeriod.objects.filter(status="closed").aggregate(until=Max("ends_at"))
    return rules.PriceWorld(tuple(standing), settings.CURRENCY, closed["until"])


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
        "amount": str(price.amount),
        "currency": price.currency,
        "valid_from": price.valid_from.isoformat(),
        "valid_to": price.valid_to.isoformat() if price.valid_to else None,
        "source": price.source,
    }


def _request_rebuild() -> None:
    try:
        current_app.send_task(REBUILD_TASK, ignore_result=True, retry=False, expires=600)
    except OSError as error:  # the broker is away: the hourly beat rebuilds
        logger.warning("rebuild.lost", extra={"error": str(error)})
