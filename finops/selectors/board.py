"""The close board of a month: where it stands, what is in the way, who did what."""

from dataclasses import dataclass

from finops.closing_words import NEXT
from finops.models import Adjustment, BillingPeriod, Finding, Freeze, PeriodStep
from finops.models.bills import DRAFTED, PeriodStatus
from finops.selectors.bills import MonthView, bill_month
from finops.selectors.digests import digest_of
from finops.selectors.obstacles import Drafted, Obstacle, acknowledged, obstacles
from queues.access import Actor


@dataclass(frozen=True, slots=True)
class Board:
    """Everything that whoever closes a month has to know."""

    month: MonthView
    steps: tuple[PeriodStep, ...]
    obstacles: tuple[Obstacle, ...]
    findings: tuple[Finding, ...]  # those that do not stand in the way
    adjustments: tuple[Adjustment, ...]
    freeze: Freeze | None
    digest: str
    older: tuple[BillingPeriod, ...]  # months before it that are not closed

    @property
    def period(self) -> BillingPeriod:
        """Return the month."""
        return self.month.period

    @property
    def blocking(self) -> int:
        """Return how many things still stand in the way."""
        return sum(one.blocks for one in self.obstacles)

    @property
    def may_be_adjusted(self) -> bool:
        """Return whether lines can be added by hand."""
        return self.period.status in DRAFTED

    @property
    def next_steps(self) -> tuple[str, ...]:
        """Return which steps lead on from here, the usual one first."""
        return () if self.month.is_running else NEXT[self.period.status]

    def is_refused(self, actor: Actor) -> bool:
        """Return whether the actor has reviewed the month and cannot close it."""
        reviews = [step for step in self.steps if step.step == "reviewed"]
        is_reviewed = self.period.status == PeriodStatus.REVIEWED
        return bool(is_reviewed and reviews and actor.user and reviews[-1].by_id == actor.user.pk)


def close_board(actor: Actor, name: str) -> Board | None:
    """Return the board of a month that has bills; None where there is none to see."""
    view = bill_month(actor, name)
    if view is None or not view.bills or not view.is_whole:
        return None
    period = view.period
    is_closed = period.status == PeriodStatus.CLOSED
    bills = tuple(one.bill for one in view.bills)
    made = Drafted(bills, view.findings)
    standing = tuple(acknowledged(period) if is_closed else obstacles(period, made))
    blocked = {(one.code, one.subject) for one in standing}
    return Board(
        month=view,
        steps=tuple(period.steps.all()),
        obstacles=standing,
        findings=tuple(f for f in view.findings if (f.code, f.subject) not in blocked),
        adjustments=tuple(period.adjustments.select_related("team", "original")),
        freeze=Freeze.objects.filter(period=period).first() if is_closed else None,
        digest=digest_of(period, bills=bills).sha256,
        older=() if is_closed else _older(period),
    )


def _older(period: BillingPeriod) -> tuple[BillingPeriod, ...]:
    """Return the earlier months that are still open: what closes a month closes what was before.

    No price, mapping or shared cost begins or ends before the end of the last closed month.
    """
    rows = BillingPeriod.objects.filter(ends_at__lte=period.starts_at)
    return tuple(rows.exclude(status=PeriodStatus.CLOSED).order_by("starts_at"))
