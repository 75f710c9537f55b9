"""REST of the cost of any window by anything."""

from typing import Any

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from finops.cost_rows import ASKED, GROUP_COLUMNS, group_rows, query_of
from finops.selectors import bills, groups
from gpuplatform.common import clock
from gpuplatform.common.money import digits
from gpuplatform.common.paging import CheckedView
from queues.access import HasScope, actor_of, demand_visible

TEXTS = ("amount", "share", "gpu_hours", "token_cost")


class CostView(CheckedView):
    """The cost of a window."""

    permission_classes = (HasScope,)
    scopes = {"GET": "cost:read"}
    parameters = {"GET": ASKED}

    @extend_schema(responses=OpenApiTypes.OBJECT, operation_id="cost_by_group")
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
                "rests_on": view.rests_on,
                "rows": [_texts(row) for row in group_rows(view)],
            }
        )


def _texts(row: dict[str, Any]) -> dict[str, Any]:
    """Return a row with its decimals as texts, without what the answer says once."""
    said_once = {"currency", "from", "to", "idle_policy"}
    return {
        name: digits(row[name]) if name in TEXTS else row[name]
        for name in GROUP_COLUMNS
        if name not in said_once
    }
