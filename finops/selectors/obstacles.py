"""What stands between a month and its closing (decisions.md 6): read by board and by closing."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from finops.finding_words import finding_sentence, subject_words
from finops.models import Acknowledgement, Bill, BillingPeriod, Finding
from finops.models.bills import PeriodStatus
from finops.selectors.cost_centers import cost_centers
from finops.selectors.reconciliation import spend_checks
from gpuplatform.common import reasons
from gpuplatform.common.money import digits
from queues.choices import AccountingMode

NOTHING = Decimal("0.00")
CRITICAL = "critical"
# Nobody can say that these are all right: the bills themselves are not.
NOT_TO_BE_HELPED = frozenset(
    {"facts_refused", "no_bills", "sums_differ", "no_cost_center", "changed_since_review"}
)


@dataclass(frozen=True, slots=True)
class Obstacle:
    """Something that keeps a month from being closed until somebody has acknowledged it."""

    code: str
    subject: str
    numbers: Mapping[str, Any]
    acknowledgement: Acknowledgement | None = None
    currency: str = "EUR"

    @property
    def sentence(self) -> str:
        """Return it in the words of people."""
        return finding_sentence(self.code, self.numbers, self.currency)

    @property
    def about(self) -> str:
        """Return what it is about in the words of people."""
        return subject_words(self.subject)

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


@dataclass(frozen=True, slots=True)
class Drafted:
    """What was made of a month: its bills with their lines, and its findings."""

    bills: tuple[Bill, ...]
    findings: tuple[Finding, ...]


def drafted(period: BillingPeriod) -> Drafted:
    """Return what was made of a month."""
    bills = period.bills.select_related("team").prefetch_related("lines")
    return Drafted(tuple(bills), tuple(period.findings.all()))


def obstacles(period: BillingPeriod, made: Drafted | None = None) -> list[Obstacle]:
    """Return everything in the way of closing ``period``, acknowledged or not, by code."""
    made = made or drafted(period)
    known = {(one.code, one.subject): one for one in period.acknowledgements.all()}
    found = [*_own(period, made.bills), *_of_findings(made.findings), *_of_sums(period)]
    return sorted(
        (
            Obstacle(
                code,
                subject,
                numbers,
                _holding(known.get((code, subject)), numbers),
                period.currency,
            )
            for code, subject, numbers in found
        ),
        key=lambda one: (one.code, one.subject),
    )


def acknowledged(period: BillingPeriod) -> list[Obstacle]:
    """Return what people let pass before a month was closed, with the numbers of then."""
    return [
        Obstacle(one.code, one.subject, one.numbers, one, period.currency)
        for one in period.acknowledgements.order_by("code", "subject")
    ]


def _holding(given: Acknowledgement | None, numbers: Mapping[str, Any]) -> Acknowledgement | None:
    """An acknowledgement holds for the numbers it was given for and for no others."""
    return given if given is not None and given.numbers == numbers else None


Found = tuple[str, str, Mapping[str, Any]]


def _of_findings(findings: Iterable[Finding]) -> Iterator[Found]:
    for finding in findings:
        if finding.severity == CRITICAL or _is_spend_without_home(finding):
            yield finding.code, finding.subject, finding.numbers


def _of_sums(period: BillingPeriod) -> Iterator[Found]:
    """Yield the days on which LiteLLM's own sums are not its requests (finops.md 8, T10)."""
    for check in spend_checks(period):
        if check.status == CRITICAL:
            numbers = {"spend": digits(check.a or NOTHING), "sums": digits(check.b or NOTHING)}
            yield "sums_of_litellm", check.subject, numbers


def _is_spend_without_home(finding: Finding) -> bool:
    """Models without a deployment carry spend that nobody is billed for (decisions.md 6)."""
    return finding.code == "unmapped_model" and bool(Decimal(finding.numbers.get("amount", 0)))


def _own(period: BillingPeriod, bills: Sequence[Bill]) -> Iterator[Found]:
    if not bills:
        yield "no_bills", "", {}
    if period.status == PeriodStatus.REVIEWED and period.rebuilt_at is None:
        yield "changed_since_review", "", {}
    teams = [bill.team for bill in bills if bill.team]
    centers = cost_centers(period, teams)
    for bill in bills:
        team = bill.team
        if team is None or team.accounting_mode != AccountingMode.CHARGEBACK:
            continue
        if not centers[team.pk] and bill.total:
            yield "no_cost_center", f"team={team.name}", {"team": str(team)}
    billed = sum((line.amount for bill in bills for line in bill.lines.all()), NOTHING)
    wanted = period.total_cost
    if billed != wanted or sum((bill.total for bill in bills), NOTHING) != billed:
        yield "sums_differ", "", {"billed": digits(billed), "cost": digits(wanted)}
