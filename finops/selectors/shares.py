"""How shares of idle came about, and the platform's own idle as a memo on bills of teams."""

from collections import defaultdict
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal

from django.conf import settings
from django.db.models import Q

from finops.models import BillingPeriod, BillLine, SharedCost
from finops.models.bills import IdlePolicy
from finops.models.shared_costs import SharingMethod
from finops.selectors.bills import WHOLE_CLUSTER, BillView
from finops.selectors.figures import NOTHING
from finops.words import USE_KINDS
from gpuplatform.common.periods import month_at


@dataclass(frozen=True, slots=True)
class ShareFormula:
    """A proportional share of idle: idle x own use / all use, in money."""

    idle: Decimal
    own: Decimal
    all: Decimal


def share_formulas(view: BillView) -> dict[int, ShareFormula]:
    """Return by line how a proportional share of idle came about: sums only, no other team's."""
    shares = [line for line in view.lines if line.kind == "idle_share"]
    if not shares or view.period.idle_policy != IdlePolicy.PROPORTIONAL:
        return {}
    rows = BillLine.objects.filter(
        bill__period=view.period, kind__in=[*USE_KINDS, "idle_share"]
    ).values_list("flavor", "kind", "amount", "bill")
    sums: dict[tuple[str, str], Decimal] = defaultdict(lambda: NOTHING)
    for flavor, kind, amount, bill in rows:
        column = "idle" if kind == "idle_share" else "all"
        # A share that names no flavor is one of the whole cluster.
        for pool in {flavor, WHOLE_CLUSTER}:
            sums[pool, column] += amount
            if column == "all" and bill == view.bill.pk:
                sums[pool, "own"] += amount
    return {
        line.pk: ShareFormula(*(sums[line.flavor, part] for part in ("idle", "own", "all")))
        for line in shares
    }


@dataclass(frozen=True, slots=True)
class EvenShares:
    """What all teams of a month bear in equal parts, of whole months whenever a team was made."""

    month: date
    costs: tuple[str, ...]
    idle: bool


def even_shares(now: datetime) -> EvenShares | None:
    """Return what a team that is made now shares of the running month; None where nothing is."""
    month = month_at(now, settings.BILLING_TIME_ZONE)
    rows = SharedCost.objects.filter(
        Q(valid_to=None) | Q(valid_to__gt=month.starts_at),
        method=SharingMethod.EVEN,
        valid_from__lt=month.ends_at,
    )
    costs = tuple(sorted(set(rows.values_list("name", flat=True))))
    idle = BillingPeriod.objects.filter(name=month.name, idle_policy=IdlePolicy.EVEN).exists()
    return EvenShares(month.first_day, costs, idle) if costs or idle else None


def pool_idle(view: BillView) -> BillLine | None:
    """Return the platform's idle row as a memo on a team's bill, unless the policy hides it."""
    if view.team is None or view.period.idle_policy != IdlePolicy.SEPARATE:
        return None
    rows = BillLine.objects.filter(bill__period=view.period, bill__team=None, kind="idle")
    found = list(rows)
    if not found:
        return None
    return BillLine(
        kind="idle",
        quantity=sum((row.quantity or NOTHING for row in found), Decimal(0)),
        amount=sum((row.amount for row in found), NOTHING),
        currency=view.period.currency,
    )
