"""Plotly figures of money, and the tables that say the same."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import date, timedelta
from decimal import Decimal
from typing import Any

from django.conf import settings
from django.utils.translation import gettext as _

from finops import words
from finops.selectors.bills import BillView, CostView, days_of
from gpuplatform.common.figures import Figure, bar, figure, team_color
from gpuplatform.common.money import rounded
from gpuplatform.common.templatetags.money import money
from gpuplatform.common.templatetags.shapes import team_number

# Columns of bills that have a role of their own in the bar grammar.
ROLE_BY_COLUMN: Mapping[str, str] = {"own": "used", "borrowed": "borrowed", "idle": "idle"}
DAYS_NAMED = 8  # of the days below a figure
ROLES = ("used", "borrowed", "lent", "idle", "other")
Table = tuple[Sequence[str], Sequence[Sequence[str]]]


def role_labels() -> dict[str, str]:
    """Return what the parts of a bill are called in a legend."""
    return {
        "used": _("own use"),
        "borrowed": _("borrowed"),
        "lent": _("lent"),
        "idle": _("idle"),
        "other": _("tokens and other"),
    }


def role_of(kind: str) -> str:
    """Return the role of a kind of line, as its column has it; what lenders get back is lent."""
    if kind == "loan_income":
        return "lent"
    return ROLE_BY_COLUMN.get(words.column_of(kind), "other")


def bill_by_day(theme: str, view: BillView) -> Figure:
    """Return the bill's days as stacked bars: own use, borrowed, idle."""
    rows = bill_day_rows(view)
    by_day = dict(rows)
    days = _days_between(rows[0][0], rows[-1][0]) if rows else []
    traces = [
        bar(theme, role, days, [_on(by_day, day, role) for day in days], label)
        for role, label in role_labels().items()
        if any(amounts[role] for _day, amounts in rows)
    ]
    return figure(
        theme,
        traces,
        y_title=view.period.currency,
        view=f"bill-{view.period.name}-{view.scope}",
        **_days_axis(view.period.time_zone, is_empty=not traces),
    )


def _on(by_day: Mapping[str, Mapping[str, Decimal]], day: str, role: str) -> float:
    return float(by_day[day].get(role, 0)) if day in by_day else 0.0


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
            amounts[role_of(kind)] += amount
        rows.append((day, amounts))
    return rows


def idle_by_day(theme: str, view: CostView) -> Figure:
    """Return the cost of idle GPUs by day, this month and the last."""
    found = {_day(day): float(rounded(amount)) for day, amount in view.idle_by_day}
    days = _days_between(min(found), max(found)) if found else []
    amounts = [found.get(day, 0.0) for day in days]
    return figure(
        theme,
        [bar(theme, "idle", days, amounts, _("idle"))],
        y_title=currency_of(view),
        view="cost-idle",
        **_days_axis(view.month.time_zone, is_empty=not any(amounts)),
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
        **_nothing_yet(is_empty=not bills),
    )


def currency_of(view: CostView) -> str:
    """Return the currency of the month, or of the bills in general."""
    return view.period.currency if view.period else settings.CURRENCY


def _days_axis(zone: str, *, is_empty: bool) -> dict[str, Any]:
    """Return the layout of bars by day: days are names, so that one day is no stretch of time."""
    title = {"text": _("day, {zone}").format(zone=zone)}
    axis = {"type": "category", "title": title, "nticks": DAYS_NAMED}
    return {"xaxis": axis, **_nothing_yet(is_empty=is_empty)}


def _days_between(first: str, last: str) -> list[str]:
    """Return every day from ``first`` to ``last``: names on an axis leave no gap by themselves."""
    start, days = date.fromisoformat(first), date.fromisoformat(last) - date.fromisoformat(first)
    return [(start + timedelta(days=n)).isoformat() for n in range(days.days + 1)]


def _nothing_yet(*, is_empty: bool) -> dict[str, Any]:
    """Return the layout that says so where a figure has nothing to show."""
    if not is_empty:
        return {}
    middle = {"xref": "paper", "yref": "paper", "x": 0.5, "y": 0.5, "showarrow": False}
    hidden = {"visible": False}
    note = {**middle, "text": _("nothing yet")}
    return {"annotations": [note], "xaxis": hidden, "yaxis": hidden}


def _day(day: date) -> str:
    return day.isoformat()
