"""The same month under every idle policy: who would pay what, beside what holds now."""

from dataclasses import dataclass
from decimal import Decimal
from typing import cast

from finops.allocation.facts import IdlePolicy as AllocationPolicy
from finops.drafts import CENTRAL, draft
from finops.loader import MonthFacts, load_facts
from finops.models.bills import IdlePolicy
from finops.selectors.bills import MonthView
from finops.selectors.figures import NOTHING
from gpuplatform.common import clock
from queues.models import Team


@dataclass(frozen=True, slots=True)
class PolicyCell:
    """What an account would come to under a policy, and how far that is from now."""

    policy: str
    total: Decimal
    difference: Decimal
    chosen: bool


@dataclass(frozen=True, slots=True)
class PolicyRow:
    """One account under every idle policy; ``team`` None is the central account."""

    team: Team | None
    cells: tuple[PolicyCell, ...]


@dataclass(frozen=True, slots=True)
class PolicyComparison:
    """The same month under every idle policy: accounts as rows, policies as columns."""

    policies: tuple[tuple[str, str, bool], ...]  # value, name, whether it is in force
    rows: tuple[PolicyRow, ...]
    total: Decimal  # of every column


def policy_comparison(view: MonthView) -> PolicyComparison:
    """Return the same month under every idle policy; reads all facts, writes nothing.

    Up to the instant the bills were made, so that the policy in force shows their figures.
    """
    period = view.period
    facts = load_facts(period, period.rebuilt_at or min(clock.now(), period.ends_at))
    totals = {policy: _accounts(facts, policy, view) for policy in IdlePolicy}
    now = totals[IdlePolicy(period.idle_policy)]
    rows = tuple(
        PolicyRow(
            one.team,
            tuple(
                PolicyCell(policy.value, sums[place], sums[place] - now[place], sums is now)
                for policy, sums in totals.items()
            ),
        )
        for place, one in enumerate(view.bills)
    )
    names = tuple((one.value, str(one.label), one == period.idle_policy) for one in IdlePolicy)
    return PolicyComparison(names, rows, sum(now, NOTHING))


def _accounts(facts: MonthFacts, policy: IdlePolicy, view: MonthView) -> list[Decimal]:
    """Return what each account of the month comes to under ``policy``, in the month's order."""
    made = draft(facts, cast("AllocationPolicy", policy.value))
    return [made.of(one.team.name if one.team else CENTRAL) for one in view.bills]
