"""The admission check ``budget``: work of a team whose hard budget is gone does not start."""

import math
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from uuid import UUID

from django.conf import settings
from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from finops.budget_judging import is_exhausted
from finops.models import BudgetState
from finops.models.budgets import BudgetMeasure, BudgetScope
from gpuplatform.common.money import plain
from scheduling.checks import Opinion
from scheduling.engine.terms import BlockerCode, CheckVerdict
from scheduling.models import AdmissionCheck, Workload
from scheduling.routes import Refusal


class BudgetCheck:
    """Agrees unless a hard budget of the workload's team has nothing left in its window.

    Then it asks to try again when the next window begins; where the budget gets room sooner,
    ``finops.budgets.saving`` has it asked anew. A window that is over says nothing: the new one
    begins with nothing spent, also before it is measured. Work that runs is not stopped.
    """

    name: str = "budget"
    label: str | Promise = gettext_lazy("The team's hard budgets")
    watches: bool = False

    def opinions(
        self, check: AdmissionCheck, workloads: Sequence[Workload], now: datetime
    ) -> Mapping[UUID, Opinion]:
        """Return what the budgets say of each workload. 1 query."""
        del check
        gone = gone_budgets(now, {work.team_id for work in workloads if work.team_id})
        return {work.pk: opinion_of(gone.get(work.team_id or 0), now) for work in workloads}

    def refused(self, now: datetime) -> Mapping[int, Refusal]:
        """Return the teams whose budgets are gone, until their next window begins. 1 query."""
        code = BlockerCode.BUDGET_BLOCK.value
        gone = gone_budgets(now)
        return {team: Refusal(code, state.ends_at.timestamp()) for team, state in gone.items()}


def gone_budgets(now: datetime, teams: Collection[int] | None = None) -> dict[int, BudgetState]:
    """Return the hard budget of each team, or of these, that has nothing left for longest."""
    states = BudgetState.objects.filter(
        budget__scope=BudgetScope.TEAM, budget__is_hard=True, budget__team__isnull=False
    ).select_related("budget")
    if teams is not None:
        states = states.filter(budget__team__in=teams)
    gone: dict[int, BudgetState] = {}
    for state in states.order_by("-ends_at"):
        if is_gone(state, now):
            gone.setdefault(state.budget.team_id or 0, state)
    return gone


def is_gone(state: BudgetState, now: datetime) -> bool:
    """Return whether nothing is left in a window that is not over."""
    return state.ends_at > now and is_exhausted(state.spent, state.budget.limit)


def opinion_of(gone: BudgetState | None, now: datetime) -> Opinion:
    """Return ready, or later with the budget, its numbers and when it begins anew."""
    if gone is None:
        return Opinion(CheckVerdict.READY)
    is_money = gone.budget.measure == BudgetMeasure.MONEY
    words = _(
        "Budget {name} is gone: {spent} of {limit} {unit}. It is tried again when the next window "
        "begins, at {at} UTC, or as soon as the budget is raised."
    )
    said = words.format(
        name=gone.budget.name,
        spent=plain(gone.spent, 0, 2),
        limit=plain(gone.budget.limit, 0, 2),
        unit=settings.CURRENCY if is_money else gone.budget.get_measure_display(),
        at=f"{gone.ends_at:%Y-%m-%d %H:%M}",
    )
    seconds = math.ceil((gone.ends_at - now).total_seconds())
    return Opinion(CheckVerdict.RETRY, said, retry_after_s=max(1, seconds))
