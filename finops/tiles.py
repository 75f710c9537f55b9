"""The key number that this room puts on the overview."""

from collections import defaultdict
from decimal import Decimal

from django.http import HttpRequest
from django.urls import reverse
from django.utils.translation import gettext as _

from finops.selectors import bills
from gpuplatform.common import clock
from gpuplatform.common.pages import Tile
from gpuplatform.common.templatetags.money import whole_currency
from queues.access import actor_of


def cost_tile(request: HttpRequest) -> Tile | None:
    """Return what the month has cost so far; None for somebody who may see no bill."""
    actor = actor_of(request)
    if not bills.may_see_bills(actor):
        return None
    view = bills.cost_so_far(actor, clock.now())
    if view.period is None:
        return Tile(_("Cost this month"), "-", _("nothing is billed yet"), reverse("cost"))
    currency = view.period.currency
    idle = whole_currency(view.figures.idle, currency)
    return Tile(
        label=_("Cost this month"),
        value=whole_currency(view.figures.total, currency),
        sub=_("{amount} of it idle").format(amount=idle),
        href=reverse("cost"),
        role="idle",
        spark=_by_day(view),
        spark_label=_("cost by day of this month"),
    )


def _by_day(view: bills.CostView) -> list[float]:
    days: dict[str, Decimal] = defaultdict(Decimal)
    for one in view.bills:
        for day, kinds in bills.days_of(one).items():
            days[day] += sum(kinds.values(), Decimal(0))
    return [float(amount) for _day, amount in sorted(days.items())]
