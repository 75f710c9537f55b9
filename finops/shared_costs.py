"""The only writer of shared costs: what all teams carry, from a day on (finops.md 2.6)."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from typing import Any

from django.conf import settings
from django.db import transaction
from django.utils.translation import gettext as _

from finops.dated import SetOne, all_or_none, is_taken_back, take_back
from finops.models import SharedCost
from finops.models.shared_costs import SharingMethod
from finops.outdating import closed_until, hold_guard, outdate_drafts
from gpuplatform.common import audit, clock
from gpuplatform.common.money import digits
from gpuplatform.common.problems import Problem, Rejected, Stale
from queues.models import Team, User
from queues.rules.words import check_short_name
from queues.services.writing import stale

GUARD = "shared-costs"
MOST, CENTS, HUNDRED = Decimal(10) ** 12, Decimal("0.01"), Decimal(100)


@dataclass(frozen=True, slots=True)
class SharedSpec:
    """What somebody wants teams to share. ``valid_from`` None is now."""

    name: str
    method: str = "even"
    amount: Decimal | None = None  # of a month
    namespace: str = ""
    cluster: str = ""
    percentages: Mapping[str, Decimal] = field(default_factory=dict)
    valid_from: datetime | None = None
    valid_to: datetime | None = None
    note: str = ""


def set_shared_cost(
    spec: SharedSpec, actor: User | None, reason: str = "", if_version: int | None = None
) -> SharedCost:
    """Bring a shared cost into force; the one of its name before it ends where it starts.

    ``if_version``: the number of the row in force that was seen, 0 for none; None takes any.

    Raises:
        Rejected: a rule is broken, each with its field; nothing was changed.
        Stale: another row is in force than the caller saw.
    """
    words = _("Another one of this name was set at the same time; look again.")
    clash = Problem("valid_from", "SHARED_COST_OVERLAPS", words)

    def ready() -> SetOne[SharedSpec, SharedCost]:
        now = clock.now()
        _in_force(spec.name, if_version)
        return lambda one: _set(one, one.valid_from or now, actor, reason)

    return all_or_none([spec], ready, guard=GUARD, name="shared_costs", clash=clash)[0]


def end_shared_cost(
    name: str,
    actor: User | None,
    reason: str = "",
    ends_at: datetime | None = None,
    if_version: int | None = None,
) -> SharedCost | None:
    """Let the shared cost in force end, by default now; None where there is none.

    One that has not begun is taken back by default: the one before it goes on.
    ``if_version``: the number of the row in force that was seen; None takes any.

    Raises:
        Stale: another row is in force than the caller saw.
        Rejected: it would end before it began, or in a closed month.
    """
    standing = SharedCost.objects.filter(name=name, valid_to=None)
    if not standing.exists():
        return None
    with transaction.atomic():
        hold_guard(GUARD)
        row = _in_force(name, if_version)
        if row is None:
            return None
        now, before = clock.now(), describe(row)
        if is_taken_back(row, ends_at, now):
            take_back(row, SharedCost.objects.filter(name=name))
            action = "shared_cost.taken_back"
        else:
            end = ends_at or now
            problems = [*_when(row.valid_from, end), *_closed(end, "valid_to")]
            if problems:
                raise Rejected(problems)
            row.valid_to, action = end, "shared_cost.ended"
            row.save(update_fields=["valid_to"])
        _record(action, row, before, actor, reason)
        outdate_drafts(row.valid_to or now, None)
        return row


def _in_force(name: str, if_version: int | None) -> SharedCost | None:
    """Return the row of this name that has no end, if it is the one that was seen."""
    row = SharedCost.objects.filter(name=name, valid_to=None).first()
    current = row.pk if row else 0
    if if_version is not None and if_version != current:
        raise Stale([stale(current)])
    return row


def describe(row: SharedCost) -> dict[str, Any]:
    """Return a shared cost as it is audited and answered."""
    return {
        "name": row.name,
        "method": row.method,
        "amount": None if row.amount is None else digits(row.amount),
        "namespace": row.namespace,
        "cluster": row.cluster,
        "percentages": row.percentages,
        "currency": row.currency,
        "valid_from": row.valid_from.isoformat(),
        "valid_to": row.valid_to.isoformat() if row.valid_to else None,
        "note": row.note,
    }


def _set(
    spec: SharedSpec, starts_at: datetime, actor: User | None, reason: str
) -> tuple[SharedCost | None, list[Problem]]:
    standing = list(SharedCost.objects.filter(name=spec.name))
    same = next((row for row in standing if _says_so(row, spec, starts_at)), None)
    if same is not None:
        return same, []
    problems = [*_rules(spec), *_when(starts_at, spec.valid_to), *_closed(starts_at, "valid_from")]
    problems += _overlaps(standing, starts_at, spec.valid_to)
    if problems:
        return None, problems
    followed = next((row for row in standing if row.valid_to is None), None)
    if followed is not None:
        SharedCost.objects.filter(pk=followed.pk).update(valid_to=starts_at)
    row = SharedCost.objects.create(
        **{name: getattr(spec, name) for name in ("name", "method", "amount", "namespace")},
        **{name: getattr(spec, name) for name in ("cluster", "valid_to", "note")},
        percentages=_texts(spec),
        currency=settings.CURRENCY,
        valid_from=starts_at,
        created_by=actor,
    )
    before = describe(followed) if followed else None
    _record("shared_cost.set", row, before, actor, reason or spec.note)
    outdate_drafts(starts_at, spec.valid_to)
    return row, []


def _texts(spec: SharedSpec) -> dict[str, str]:
    return {team: digits(part.normalize()) for team, part in sorted(spec.percentages.items())}


def _says_so(row: SharedCost, spec: SharedSpec, starts_at: datetime) -> bool:
    """Return whether a row in force says what is wanted already."""
    in_force = row.valid_from <= starts_at and (row.valid_to is None or starts_at < row.valid_to)
    says = (row.method, row.amount, row.namespace, row.cluster, row.valid_to, row.percentages)
    asked = (spec.method, spec.amount, spec.namespace, spec.cluster, spec.valid_to, _texts(spec))
    return in_force and says == asked


def _rules(spec: SharedSpec) -> Iterator[Problem]:
    yield from check_short_name(spec.name)
    if spec.method not in SharingMethod.values:
        words = _("{value} is none of {words}.")
        said = words.format(value=spec.method[:20], words=", ".join(SharingMethod.values))
        yield Problem("method", "unknown_choice", said)
    if (spec.amount is None) != bool(spec.namespace):
        words = _("Name an amount of a month or a namespace, and not both.")
        yield Problem("amount", "not_allowed", words)
    if spec.cluster and not spec.namespace:
        yield Problem("cluster", "not_allowed", _("Only a namespace is of a cluster."))
    amount = spec.amount
    if amount is not None and not (amount.is_finite() and 0 < amount < MOST):
        yield Problem("amount", "out_of_range", _("An amount is more than 0."))
    elif amount is not None and amount != amount.quantize(CENTS):
        yield Problem("amount", "not_cents", _("An amount has at most two decimals."))
    yield from _parts(spec)


def _parts(spec: SharedSpec) -> Iterator[Problem]:
    """Percentages go with the method that uses them, name teams, and are 100 together."""
    if (spec.method == SharingMethod.FIXED) != bool(spec.percentages):
        words = _("Percentages go with the method fixed, and only with it.")
        yield Problem("percentages", "not_allowed", words)
        return
    known = set(Team.objects.filter(name__in=spec.percentages).values_list("name", flat=True))
    for team, part in spec.percentages.items():
        if team not in known:
            yield Problem(f"percentages.{team[:63]}", "unknown_team", _("There is no such team."))
        elif not part.is_finite() or not 0 < part <= HUNDRED:
            words = _("A percentage is more than 0 and at most 100.")
            yield Problem(f"percentages.{team}", "out_of_range", words)
    if spec.percentages and sum(spec.percentages.values()) != HUNDRED:
        words = _("The percentages do not add up to 100.")
        yield Problem("percentages", "not_100", words)


def _when(start: datetime, end: datetime | None) -> Iterator[Problem]:
    if end is not None and end <= start:
        yield Problem("valid_to", "empty_window", _("It must end after it begins."))


def _closed(at: datetime, path: str) -> Iterator[Problem]:
    until = closed_until()
    if until is not None and at < until:
        words = _("Closed months do not change any more; the first open day is {day}.")
        yield Problem(path, "PERIOD_CLOSED", words.format(day=f"{until:%Y-%m-%d}"))


def _overlaps(
    standing: list[SharedCost], start: datetime, end: datetime | None
) -> Iterator[Problem]:
    """Whoever goes on may be followed; who has an end, or begins later, stands in the way."""
    for row in standing:
        is_followed = row.valid_to is None and row.valid_from < start
        later = end is None or row.valid_from < end
        if not is_followed and later and (row.valid_to is None or row.valid_to > start):
            words = _("One of this name is in force from {day} on.")
            said = words.format(day=f"{row.valid_from:%Y-%m-%d}")
            yield Problem("valid_from", "SHARED_COST_OVERLAPS", said)


def _record(
    action: str,
    row: SharedCost,
    before: dict[str, Any] | None,
    actor: User | None,
    reason: str,
) -> None:
    subject = ("SharedCost", row.name)
    audit.record(actor, action, subject, before=before, after=describe(row), reason=reason)
