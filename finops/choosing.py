"""The rules of one month but for its idle policy: whose hours are billed, how idle is counted ...

Each is a choice of ``finops.allocation.facts.Policy`` (FORMAT.md 1); all of them hold for whole
months, are frozen with a closed one, and are chosen here alone.
"""

from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import get_args

from django.db import transaction
from django.utils.translation import gettext as _

from finops import billing
from finops.allocation import facts
from finops.models import BillingPeriod
from finops.models.bills import DRAFTED, UsageSource
from gpuplatform.common import audit, clock
from gpuplatform.common.money import digits, parse_decimal
from gpuplatform.common.problems import Problem, Rejected
from queues.models import User

WORDS: Mapping[str, tuple[str, ...]] = {
    "usage_source": tuple(UsageSource.values),
    "idle_scope": get_args(facts.FileIdleScope),
    "idle_basis": get_args(facts.IdleBasis),
    "preempted": get_args(facts.PreemptedPolicy),
    "token_weight": get_args(facts.TokenWeight),
    "tokens_without_team": get_args(facts.TokensWithoutTeam),
}
# A factor on borrowed hours, and a part of their cost that goes to the lender: from, to.
NUMBERS: Mapping[str, tuple[Decimal, Decimal]] = {
    "borrow_surcharge": (Decimal(1), Decimal(100)),
    "lender_credit": (Decimal(0), Decimal(1)),
}
COLUMNS = ("usage_source",)  # the others stand in the column ``policy``
PLACES = 8


def choices_of(period: BillingPeriod) -> dict[str, str]:
    """Return every choice of a month as text, defaults included."""
    plain = facts.Policy()
    chosen = {
        name: str(getattr(plain, name)) for name in (*WORDS, *NUMBERS) if name not in COLUMNS
    }
    columns = {name: str(getattr(period, name)) for name in COLUMNS}
    return {**columns, **chosen, **period.policy}


def choose(
    name: str,
    wanted: Mapping[str, str],
    actor: User | None,
    reason: str = "",
    if_version: int | None = None,
) -> BillingPeriod:
    """Set some choices of one open month, and rebuild its bills in the same transaction.

    Args:
        name: the month.
        wanted: words, and numbers as texts, by the name of the choice; what is not named stays.
        actor: who chooses.
        reason: why, for the audit trail.
        if_version: the version of the choices that was seen; None takes any.

    Raises:
        Stale: the choices are not of the version that was seen; nothing was changed.
        Rejected: no such choice, no such word, choices that do not go together, a month that is
            not open, or facts that contradict each other; nothing was changed.
    """
    problems = [found for key, value in wanted.items() for found in _problems(key, value)]
    if problems:
        raise Rejected(problems)
    now = clock.now()
    with transaction.atomic():
        period = billing.open_month(name, now)
        if if_version not in (None, period.policy_version):
            raise billing.stale_rules(period)
        before = choices_of(period)
        after = before | {key: _tidy(key, value) for key, value in wanted.items()}
        if after != before:
            billing.refuse_together(period.idle_policy, after["usage_source"])
            _write(period, after)
            changed = sorted(key for key in after if after[key] != before[key])
            audit.record(
                actor,
                "billing_period.policy_chosen",
                ("BillingPeriod", name),
                before={key: before[key] for key in changed},
                after={key: after[key] for key in changed},
                reason=reason,
            )
        return billing.rebuild_draft(name, now=now)


def _problems(key: str, value: str) -> Iterator[Problem]:
    if key in WORDS:
        if value not in WORDS[key]:
            words = _("{value} is none of {words}.")
            said = words.format(value=value[:32], words=", ".join(WORDS[key]))
            yield Problem(key, "BAD_VALUE", said)
    elif key in NUMBERS:
        low, high = NUMBERS[key]
        number = _number(value)
        if number is None or not low <= number <= high or number != round(number, PLACES):
            words = _("A number from {low} to {high} with at most 8 decimals.")
            yield Problem(key, "OUT_OF_RANGE", words.format(low=low, high=high))
    else:
        words = _("There is no such choice; known are {known}.")
        said = words.format(known=", ".join((*WORDS, *NUMBERS)))
        yield Problem(key[:40], "unknown_choice", said)


def _write(period: BillingPeriod, after: Mapping[str, str]) -> None:
    plain = facts.Policy()
    differ = {
        key: value
        for key, value in after.items()
        if key not in COLUMNS and value != str(getattr(plain, key))
    }
    columns = {key: after[key] for key in COLUMNS}
    grown = {"policy_version": period.policy_version + 1}
    rows = BillingPeriod.objects.filter(pk=period.pk, status__in=DRAFTED)
    if not rows.exists():
        return  # the rebuild that follows says so
    if not rows.filter(policy_version=period.policy_version).update(
        policy=differ, **columns, **grown
    ):
        raise billing.stale_rules(period)


def _tidy(key: str, value: str) -> str:
    number = _number(value) if key in NUMBERS else None
    return value if number is None else digits(number.normalize())


def _number(text: str) -> Decimal | None:
    try:
        return parse_decimal(text)
    except ValueError:
        return None
