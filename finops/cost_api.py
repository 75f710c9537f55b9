"""REST of the cost of any window by anything, and of the prices of tokens."""

from decimal import Decimal
from typing import Any

from django.http.response import HttpResponseBase
from drf_spectacular.utils import extend_schema
from rest_framework import status
from rest_framework.renderers import JSONRenderer
from rest_framework.request import Request
from rest_framework.response import Response

from finops.allocation.money import HOURS_PLACES, round_half_up
from finops.cost_rows import ASKED, GROUP_COLUMNS, group_rows, query_of
from finops.hours import HOURS_WINDOW, hours_by
from finops.selectors import bills, groups, token_prices
from finops.shapes import costs
from finops.token_price_rows import cells_of
from gpuplatform.common import clock
from gpuplatform.common.lists import CSVRenderer, csv_answer, wants_csv
from gpuplatform.common.money import digits
from gpuplatform.common.paging import CheckedView
from queues.access import HasScope, actor_of, demand_visible
from scheduling.counters import SOURCES
from scheduling.selectors.counters import counter_cells

TEXTS = ("amount", "share", "gpu_hours", "idle_gpu_hours", "token_cost")


class CostView(CheckedView):
    """The cost of a window."""

    permission_classes = (HasScope,)
    scopes = {"GET": "cost:read"}
    parameters = {"GET": ASKED}
    refusals = {"GET": (status.HTTP_422_UNPROCESSABLE_ENTITY,)}

    @extend_schema(responses={200: costs.COST}, operation_id="cost_by_group")
    def get(self, request: Request) -> Response:
        """Answer groups that add up to the total; a lead gets the money of the own teams."""
        actor = actor_of(request)
        demand_visible(bills.may_see_bills(actor))
        view = groups.cost_by_group(actor, query_of(request.query_params.dict()), clock.now())
        return Response(
            {
                "window": {"from": view.window.start, "to": view.window.end},
                "group": view.query.group,
                "key": view.query.key,
                "idle_policy": view.idle,
                "currency": view.currency,
                "total": digits(view.found.total),
                "gpu_hours": digits(round_half_up(view.found.gpu_hours, HOURS_PLACES)),
                "idle_gpu_hours": digits(round_half_up(view.found.idle_gpu_hours, HOURS_PLACES)),
                "rests_on": view.rests_on,
                "rows": [_texts(row) for row in group_rows(view)],
            }
        )


class HoursView(CheckedView):
    """What teams, queues and work made of their GPUs in a window."""

    permission_classes = (HasScope,)
    renderer_classes = (JSONRenderer, CSVRenderer)
    parameters = {"GET": ("window", "group")}
    refusals = {"GET": (status.HTTP_422_UNPROCESSABLE_ENTITY,)}

    @extend_schema(responses={200: costs.HOURS}, operation_id="gpu_hours_by_group")
    def get(self, request: Request) -> HttpResponseBase:
        """Answer counters of GPU-hours, as JSON or CSV, of what the reader sees."""
        asked = request.query_params
        window, group = asked.get("window") or HOURS_WINDOW, asked.get("group") or "team"
        view = hours_by(actor_of(request), window, group, clock.now())
        rows = [_hours(counter_cells(*row)) for row in view.rows]
        if wants_csv(request):
            return csv_answer(request, f"gpu-hours_{group}", rows)
        return Response(
            {
                "window": {"from": view.window.start, "to": view.window.end},
                "group": group,
                "sources": SOURCES,
                "total": _hours(counter_cells("", view.total)),
                "rows": rows,
            }
        )


def _hours(cells: dict[str, Any]) -> dict[str, Any]:
    return {k: digits(v) if isinstance(v, Decimal) else v for k, v in cells.items()}


class TokenPricesView(CheckedView):
    """What tokens should cost, and what is charged."""

    permission_classes = (HasScope,)
    scopes = {"GET": "cost:read"}

    @extend_schema(responses={200: costs.TOKEN_PRICES}, operation_id="token_prices")
    def get(self, request: Request) -> Response:
        """Answer models with the price that the iron gives, and lines for LiteLLM to copy."""
        demand_visible(actor_of(request).may_see_bills)
        rows = token_prices.token_price_rows(clock.now())
        return Response([_priced(row) for row in rows])


def _priced(row: token_prices.TokenPriceRow) -> dict[str, Any]:
    cells = {
        name: digits(value) if isinstance(value, Decimal) else value
        for name, value in cells_of(row).items()
    }
    return {**cells, "litellm": row.snippet}


def _texts(row: dict[str, Any]) -> dict[str, Any]:
    """Return a row with its decimals as texts, without what the answer says once."""
    said_once = {"currency", "from", "to", "idle_policy"}
    return {
        name: digits(row[name]) if name in TEXTS else row[name]
        for name in GROUP_COLUMNS
        if name not in said_once
    }
