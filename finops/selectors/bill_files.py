"""What files of bills are made from: heads of bills, and their lines one after the other.

A month may have a hundred thousand lines; they are read in pieces and never held together.
"""

from collections.abc import Iterator, Sequence

from django.db.models import Case, Count, IntegerField, Value, When

from finops.models import BillLine
from finops.selectors.bills import CENTRAL, BillView, visible_bills
from finops.selectors.figures import Figures
from gpuplatform.common.periods import month
from queues.access import Actor

PIECE = 2_000  # lines read at a time
NO_FIGURES = Figures()
Lines = Iterator[tuple[BillView, BillLine]]


def bill_heads(actor: Actor, name: str, scope: str = "") -> tuple[list[BillView], int]:
    """Return the bills of a month without their lines, and how many lines they have.

    Teams by name, the central account last; ``scope`` is one of them, "" all that are seen.
    """
    bills = visible_bills(actor).filter(period__name=name).prefetch_related(None)
    if scope:
        whose = {"team": None} if scope == CENTRAL else {"team__name": scope}
        bills = bills.filter(**whose)
    found = list(bills.annotate(line_count=Count("lines")))
    heads = [
        BillView(bill, bill.period, month(name, bill.period.time_zone), (), NO_FIGURES)
        for bill in found
    ]
    heads.sort(key=lambda view: (view.team is None, view.scope))
    return heads, sum(bill.line_count for bill in found)


def lines_of(heads: Sequence[BillView]) -> Lines:
    """Yield the lines of bills in the order of the bills and of their numbers."""
    by_bill = {view.bill.pk: view for view in heads}
    ranks = [When(bill=bill, then=Value(rank)) for rank, bill in enumerate(by_bill)]
    if not ranks:
        return
    lines = BillLine.objects.filter(bill__in=by_bill).annotate(
        rank=Case(*ranks, output_field=IntegerField())
    )
    for line in lines.order_by("rank", "number").iterator(chunk_size=PIECE):
        yield by_bill[line.bill_id], line
