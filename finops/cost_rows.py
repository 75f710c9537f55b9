"""Cost by groups as rows: the same for page, file and answer; the query as an address has it."""

from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Any

from django.utils.translation import gettext as _

from finops import words
from finops.allocation.grouping import Group
from finops.allocation.money import HOURS_PLACES, round_half_up
from finops.selectors.groups import FILTERS, CostByGroup, CostQuery

ASKED = ("window", "group", "key", "idle", *FILTERS)
MOST_ASKED = 500  # characters of a parameter that are read
GROUP_COLUMNS = (
    *("group", "name", "label", "amount", "currency", "share", "gpu_hours", "idle_gpu_hours"),
    *("tokens", "token_cost", "from", "to", "idle_policy"),
)
COST_PLACES = 6


def query_of(asked: Mapping[str, str]) -> CostQuery:
    """Return what an address asks for."""
    texts = {name: asked.get(name, "").replace("\x00", "")[:MOST_ASKED] for name in ASKED}
    return CostQuery(
        window=texts["window"] or "month",
        group=texts["group"] or "team",
        key=texts["key"],
        idle=texts["idle"],
        kept={name: texts[name] for name in FILTERS if texts[name]},
    )


def group_rows(view: CostByGroup) -> Iterator[dict[str, Any]]:
    """Yield the groups, what none can be named for, and what tags count twice; they add up.

    ``label`` is what people call the group: teams by their names.
    """
    for group in view.found.groups:
        row = _row(view, "group", _shown(view, group.name), group)
        yield row | {"label": view.labels.get(group.name, row["name"])}
    rest = view.found.remainder
    hours = rest.gpu_hours or rest.idle_gpu_hours
    if rest.amount or hours or rest.tokens or not view.found.groups:
        yield _row(view, "remainder", _("without one"), rest)
    overlap = view.found.overlap
    if overlap.amount or overlap.gpu_hours or overlap.idle_gpu_hours or overlap.tokens:
        yield _row(view, "overlap", _("counted more than once above"), overlap)


def _shown(view: CostByGroup, name: str) -> str:
    if view.query.group == "team":
        return str(words.BUCKETS.get(name, name))
    if view.query.group == "type":
        return str(words.KINDS.get(name, name))
    return name


def _row(view: CostByGroup, kind: str, name: str, group: Group) -> dict[str, Any]:
    total = view.found.total
    return {
        "group": kind,
        "name": name,
        "label": name,
        "amount": group.amount,
        "currency": view.currency,
        "share": round_half_up(group.amount / total, 4) if total else Decimal(0),
        "gpu_hours": round_half_up(group.gpu_hours, HOURS_PLACES),
        "idle_gpu_hours": round_half_up(group.idle_gpu_hours, HOURS_PLACES),
        "tokens": group.tokens,
        "token_cost": round_half_up(group.token_cost, COST_PLACES),
        "from": view.window.start,
        "to": view.window.end,
        "idle_policy": view.idle,
    }
