"""Plotly figures of money, and the tables that say the same."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import date
from decimal import Decimal

from django.conf import settings
from django.utils.translation import gettext as _

from finops import words
from finops.selectors.bills import BillView, CostView, days_of
from gpuplatform.common.figures import Figure, bar, figure, team_color
from gpuplatform.common.templatetags.money import money
from gpuplatform.common.templatetags.shapes import team_number

# Order of the bar grammar: used, borrowed, lent, idle.
ROLE_BY_KIND: Mapping[str, str] = {
    "gpu_direct": "used",
    "unmanaged": "used",
    "gpu_borrowed": "borrowed",
    "loan_income": "lent",
    **dict.fromkeys(words.IDLE_KINDS, "idle"),
}
ROLES = ("used", "borrowed", "lent", "idle")
Table = tuple[Sequence[str], Sequence[Sequence[str]]]


def role_labels() -> dict[str, str]:
    """Return what the parts of a bill are called in a legend."""
    return {
        "used": _("own use"),
        "borrowed": _("borrowed"),
        "lent": _("lent"),
        "idle": _("idle"),
    }


def bill_by_day(theme: str, view: BillView) -> Figure:
    """Return the bill's days as stacked bars: own use, borrowed, idle."""
    rows = bill_day_rows(view)
    days = [day for day, _amounts in rows]
    traces = [
        bar(theme, role, days, [float(amounts[role]) for _day, amounts in rows], label)
        for role, label in role_labels().items()
        if any(amounts[role] for _day, amounts in rows)
    ]
    return figure(
        theme,
        traces,
        y_title=view.period.currency,
        x_title=_("day, {zone}").format(zone=view.period.time_zone),
        view=f"bill-{view.period.name}-{view.scope}",
    )


def bill_day_table(view: BillView) -> Table:
    """Return the same days as a table."""
    labels = role_labels()
    rows = bill_day_rows(view)
    shown = [role for role in ROLES if any(amounts[role] for _day, amounts in rows)]
    head = [_("Day"), *(labels[role] for role in shown), view.period.currency]
    return head, [
        [day, *(money(amounts[role]) for role in shown), money(sum(amounts.values(), Decimal(0)))]
        for day, amounts in rows
    ]


def bill_day_rows(view: BillView) -> list[tuple[str, dict[str, Decimal]]]:
    """Return the amounts of each day by role."""
    rows = []
    for day, kinds in days_of(view).items():
        amounts: dict[str, Decimal] = defaultdict(Decimal)
        for kind, amount in kinds.items():
            amounts[ROLE_BY_KIND.get(kind, "used")] += amount
        rows.append((day, amounts))
    return rows


def idle_by_day(theme: str, view: CostView) -> Figure:
    """Return the cost of idle GPUs by day, this month and the last."""
    days = [day.isoformat() for day, _amount in view.idle_by_day]
    amounts = [float(amount) for _day, amount in view.idle_by_day]
    return figure(
        theme,
        [bar(theme, "idle", days, amounts, _("idle"))],
        y_title=currency_of(view),
        x_title=_("day, {zone}").format(zone=view.month.time_zone),
        view="cost-idle",
    )


def idle_table(view: CostView) -> Table:
    """Return the same days as a table."""
    head = [_("Day"), currency_of(view)]
    return head, [[_day(day), money(amount)] for day, amount in view.idle_by_day]


def cost_by_team(theme: str, view: CostView) -> Figure:
    """Return the month so far by team, one bar each, the dearest on top."""
    bills = sorted((one for one in view.bills if one.team), key=lambda one: one.total)
    trace = {
        "type": "bar",
        "orientation": "h",
        "name": _("cost so far"),
        "y": [str(one.team) for one in bills],
        "x": [float(one.total) for one in bills],
        "marker": {"color": [team_color(theme, team_number(one.team)) for one in bills]},
    }
    return figure(
        theme,
        [trace],
        y_title="",
        x_title=currency_of(view),
        view="cost-team",
        hovermode="closest",
    )


def currency_of(view: CostView) -> str:
    """Return the currency of the month, or of the bills in general."""
    return view.period.currency if view.period else settings.CURRENCY


def _day(day: date) -> str:
    return day.isoformat()
