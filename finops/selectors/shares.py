"""How shares of idle came about, and the platform's own idle as a memo on bills of teams."""

from collections import defaultdict
from dataclasses import dataclass
from decimal import Decimal

from finops.models import BillLine
from finops.models.bills import IdlePolicy
from finops.selectors.bills import WHOLE_CLUSTER, BillView
from finops.selectors.figures import NOTHING
from finops.words import USE_KINDS


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
