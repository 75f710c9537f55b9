"""The only writer of budgets: one rule for page and REST."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from decimal import Decimal

from django.conf import settings
from django.db import transaction
from django.utils.translation import gettext as _

from finops.budgets.check import BudgetCheck
from finops.budgets.measuring import measure_budget
from finops.budgets.windows import BadDurationError, parse
from finops.models import Budget, BudgetState
from finops.models.budgets import BudgetMeasure, BudgetScope, usual_thresholds
from gpuplatform.common import audit, clock
from gpuplatform.common.money import digits
from gpuplatform.common.periods import month_at
from gpuplatform.common.problems import Problem, Rejected, Stale
from queues.models import Team, User
from queues.rules.words import check_reserved, check_short_name
from scheduling.checks import ask_again

MOST, PLACES, MOST_THRESHOLDS, HIGHEST_THRESHOLD = Decimal(10) ** 13, 6, 8, 1000


@dataclass(frozen=True, slots=True)
class BudgetSpec:
    """What somebody wants a budget to be."""

    name: str
    scope: str
    subject: str
    measure: str
    limit: Decimal
    duration: str = "1mo"
    is_hard: bool = False
    thresholds: tuple[int, ...] = tuple(usual_thresholds())
    first_day: date | None = None  # None is the first of this month
    note: str = ""


def save_budget(
    spec: BudgetSpec, actor: User, reason: str = "", version: int | None = None
) -> Budget:
    """Let the budget be so, and measure it; equal to what stands changes nothing.

    ``version`` is the one that was seen: 0 makes a new budget, None takes any that there is.

    Raises:
        Rejected: what it may not be, each with its field; the name of a new one is taken.
        Stale: it is not the version that was seen.
    """
    row = _saved(spec, actor, reason, version)
    # Nobody has to wait for the next round to see that a budget is gone already.
    if not BudgetState.objects.filter(budget=row, measured_at__gte=row.updated_at).exists():
        measure_budget(row)
    return row


def _saved(spec: BudgetSpec, actor: User, reason: str, version: int | None) -> Budget:
    with transaction.atomic():
        team = Team.objects.filter(name=spec.subject).first() if spec.scope == "team" else None
        problems = list(_problems(spec, team))
        if problems:
            raise Rejected(problems)
        standing = Budget.objects.select_for_update().filter(name=spec.name).first()
        _check_seen(spec.name, standing, version)
        row = standing or Budget(name=spec.name)
        before, standing_team = _as_json(row) if standing else None, row.team_id
        _take(row, spec, team)
        if before == _as_json(row):
            return row
        row.version += 1 if standing else 0
        row.updated_at = clock.now()
        row.save()
        verb = "updated" if standing else "created"
        subject = ("Budget", row.name)
        audit.record(
            actor,
            f"budget.{verb}",
            subject,
            before=before,
            after=_as_json(row),
            reason=reason,
            team=team.name if team else "",
        )
        _let_try(row, standing_team)
        return row


def delete_budget(name: str, actor: User, reason: str = "", version: int | None = None) -> bool:
    """Take a budget away; return whether it was there.

    Raises:
        Stale: it is not the version that was seen.
    """
    with transaction.atomic():
        row = Budget.objects.select_for_update().filter(name=name).first()
        if row is None:
            return False
        _check_seen(name, row, version)
        audit.record(
            actor, "budget.deleted", ("Budget", name), before=_as_json(row), reason=reason
        )
        row.delete()
        _let_try(row, None)
        return True


def _check_seen(name: str, standing: Budget | None, version: int | None) -> None:
    if version is None or version == (standing.version if standing else 0):
        return
    if not version:
        sentence = _("There is a budget called {name} already.").format(name=name)
        raise Rejected([Problem("name", "name_taken", sentence)])
    sentence = _("{name} has changed since it was seen.").format(name=name)
    raise Stale([Problem("version", "stale", sentence)])


def _let_try(row: Budget, other_team: int | None) -> None:
    """Have the check asked anew about work that waits for room in this budget."""
    for team in {row.team_id, other_team} - {None}:
        ask_again(BudgetCheck.name, team, clock.now())  # type: ignore[arg-type]  # no None left


def _take(row: Budget, spec: BudgetSpec, team: Team | None) -> None:
    row.scope, row.subject, row.team = spec.scope, spec.subject, team
    row.measure, row.limit, row.duration = spec.measure, spec.limit, spec.duration
    row.is_hard, row.thresholds = spec.is_hard, sorted(set(spec.thresholds))
    row.note = spec.note
    if spec.first_day is not None:
        row.first_day = spec.first_day
    elif row.pk is None:
        row.first_day = month_at(clock.now(), settings.BILLING_TIME_ZONE).first_day


def _problems(spec: BudgetSpec, team: Team | None) -> Iterator[Problem]:
    yield from check_short_name(spec.name)
    yield from check_reserved(spec.name)
    for path, value, words in (
        ("scope", spec.scope, BudgetScope.values),
        ("measure", spec.measure, BudgetMeasure.values),
    ):
        if value not in words:
            sentence = _("{value} is none of {words}.")
            message = sentence.format(value=value[:20], words=", ".join(words))
            yield Problem(path, "unknown_choice", message)
    if spec.scope == BudgetScope.TEAM and team is None:
        yield Problem("subject", "no_such_team", _("There is no such team."))
    if not spec.subject:
        yield Problem("subject", "required", _("Name whose budget it is."))
    if spec.measure == BudgetMeasure.GPU_HOURS and spec.scope != BudgetScope.TEAM:
        yield Problem("measure", "not_allowed", _("GPU-hours are counted for teams only."))
    if spec.is_hard and spec.scope != BudgetScope.TEAM:
        sentence = _("Only a team's budget can keep work from starting.")
        yield Problem("is_hard", "not_allowed", sentence)
    yield from _problems_of_numbers(spec)


def _problems_of_numbers(spec: BudgetSpec) -> Iterator[Problem]:
    limit = spec.limit
    if not limit.is_finite() or limit < 0 or limit >= MOST:
        yield Problem("limit", "out_of_range", _("A limit is between 0 and 10,000,000,000,000."))
    elif limit != limit.quantize(Decimal(1).scaleb(-PLACES)):
        yield Problem("limit", "too_precise", _("A limit has at most 6 decimals."))
    try:
        parse(spec.duration)
    except BadDurationError as error:
        yield Problem("duration", "BAD_DURATION", str(error))
    wrong = [one for one in spec.thresholds if not 0 < one <= HIGHEST_THRESHOLD]
    if wrong or len(spec.thresholds) > MOST_THRESHOLDS:
        sentence = _("Thresholds are at most 8 whole percentages between 1 and 1000.")
        yield Problem("thresholds", "out_of_range", sentence)


def _as_json(row: Budget) -> dict[str, object]:
    names = ("scope", "subject", "measure", "duration", "is_hard", "thresholds", "note")
    return {
        **{name: getattr(row, name) for name in names},
        "limit": digits(Decimal(row.limit).normalize()),
        "first_day": row.first_day.isoformat(),
    }
