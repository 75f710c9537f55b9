"""What stands between a month and its closing (decisions.md 6): read by board and by closing."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from django.db.models import Sum

from finops.models import Acknowledgement, Bill, BillingPeriod, Finding
from finops.selectors.cost_centers import cost_centers
from gpuplatform.common import reasons
from gpuplatform.common.money import digits
from queues.choices import AccountingMode

NOTHING = Decimal("0.00")
CRITICAL = "critical"
# Nobody can say that these are all right: the bills themselves are not.
NOT_TO_BE_HELPED = frozenset({"facts_refused", "no_bills", "sums_differ", "no_cost_center"})


@dataclass(frozen=True, slots=True)
class Obstacle:
    """Something that keeps a month from being closed until somebody has acknowledged it."""

    code: str
    subject: str
    numbers: Mapping[str, Any]
    acknowledgement: Acknowledgement | None = None

    @property
    def sentence(self) -> str:
        """Return it in the words of people."""
        return reasons.sentence(self.code, self.numbers)

    @property
    def next_step(self) -> str:
        """Return what would help, or ""."""
        return reasons.next_step(self.code, self.numbers)

    @property
    def may_be_acknowledged(self) -> bool:
        """Return whether a person may let it pass."""
        return self.code not in NOT_TO_BE_HELPED

    @property
    def blocks(self) -> bool:
        """Return whether it still stands in the way."""
        return self.acknowledgement is None


def obstacles(period: BillingPeriod) -> list[Obstacle]:
    """Return everything in the way of closing ``period``, acknowledged or not, by code."""
    known = {(one.code, one.subject): one for one in period.acknowledgements.all()}
    found = [*_own(period), *_of_findings(period)]
    return sorted(
        (
            Obstacle(code, subject, numbers, _holding(known.get((code, subject)), numbers))
            for code, subject, numbers in found
        ),
        key=lambda one: (one.code, one.subject),
    )


def _holding(given: Acknowledgement | None, numbers: Mapping[str, Any]) -> Acknowledgement | None:
    """An acknowledgement holds for the numbers it was given for and for no others."""
    return given if given is not None and given.numbers == numbers else None


Found = tuple[str, str, Mapping[str, Any]]


def _of_findings(period: BillingPeriod) -> Iterator[Found]:
    for finding in period.findings.all():
        if finding.severity == CRITICAL or _is_spend_without_home(finding):
            yield finding.code, finding.subject, finding.numbers


def _is_spend_without_home(finding: Finding) -> bool:
    """Models without a deployment carry spend that nobody is billed for (decisions.md 6)."""
    return finding.code == "unmapped_model" and bool(Decimal(finding.numbers.get("amount", 0)))


def _own(period: BillingPeriod) -> Iterator[Found]:
    bills = list(Bill.objects.filter(period=period).select_related("team"))
    if not bills:
        yield "no_bills", "", {}
    centers = cost_centers(period)
    for bill in bills:
        team = bill.team
        if team is None or team.accounting_mode != AccountingMode.CHARGEBACK:
            continue
        if team.pk not in centers and bill.total:
            yield "no_cost_center", f"team={team.name}", {"team": str(team)}
    billed = _sum_of_lines(period)
    wanted = period.total_cost
    if billed != wanted or sum((bill.total for bill in bills), NOTHING) != billed:
        yield "sums_differ", "", {"billed": digits(billed), "cost": digits(wanted)}


def _sum_of_lines(period: BillingPeriod) -> Decimal:
    found = Bill.objects.filter(period=period).aggregate(sum=Sum("lines__amount"))
    return Decimal(found["sum"] or 0).quantize(NOTHING)
