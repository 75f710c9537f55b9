"""REST's ledgers: who lent what to whom, and whose work was taken away for what."""

from collections.abc import Mapping
from typing import Any

from django.http.response import HttpResponseBase
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.renderers import JSONRenderer
from rest_framework.request import Request

from gpuplatform.common import clock
from gpuplatform.common.lists import PARAMETERS as LISTS
from gpuplatform.common.lists import CSVRenderer, csv_answer, wants_csv
from gpuplatform.common.money import digits
from gpuplatform.common.paging import PAGES, CheckedView, NewestFirst, truth
from gpuplatform.common.rest_shapes import page_of
from queues.access import HasScope, actor_of
from scheduling import rest_shapes as shapes
from scheduling.selectors.evictions import as_evictions, eviction_cells, eviction_rows
from scheduling.selectors.loans import as_loans, loan_cells, loan_rows
from scheduling.selectors.pages import Pages

FILTERS = ("borrower", "lender", "flavor")
EVICTION_FILTERS = ("team", "reason")
HOURS = ("gpu_hours", "lost_gpu_hours")


class NewestLoan(NewestFirst):
    """Pages by the beginning of a loan, newest first."""

    ordering: Any = ("-started_at", "-id")


class LedgerView(CheckedView):
    """``/api/v1/ledger/``: loans that one's queues gave or took."""

    permission_classes = (HasScope,)
    renderer_classes = (JSONRenderer, CSVRenderer)
    parameters = {"GET": (*PAGES, *FILTERS, "open")}

    @extend_schema(
        operation_id="ledger_list",
        responses={200: page_of(shapes.LOAN)},
        parameters=[
            *LISTS,
            *(OpenApiParameter(name, str) for name in FILTERS),
            OpenApiParameter("open", bool, description="Only what is on loan now."),
        ],
    )
    def get(self, request: Request) -> HttpResponseBase:
        """Return one page, the newest loan first, or all of them as a file."""
        actor, wanted = actor_of(request), {n: request.query_params.get(n, "") for n in FILTERS}
        rows = loan_rows(actor, open_only=truth(request, "open") or False, **wanted)
        if wants_csv(request):
            return csv_answer(request, "ledger", self._shown(request, rows.iterator()))
        pages = NewestLoan()
        page = pages.paginate_queryset(rows, request, view=self)
        return pages.get_paginated_response(list(map(_texts, self._shown(request, page or []))))

    def _shown(self, request: Request, rows: Any) -> Any:
        actor, now = actor_of(request), clock.now()
        pages = Pages(actor)
        return loan_cells(as_loans(rows, actor, now, pages))


class NewestEviction(NewestFirst):
    """Pages by the instant of an eviction, newest first."""

    ordering: Any = ("-at", "-id")


class EvictionsView(CheckedView):
    """``/api/v1/evictions/``: who lost its place for whom, and what that was worth."""

    permission_classes = (HasScope,)
    renderer_classes = (JSONRenderer, CSVRenderer)
    parameters = {"GET": (*PAGES, *EVICTION_FILTERS)}

    @extend_schema(
        operation_id="evictions_list",
        responses={200: page_of(shapes.EVICTION)},
        parameters=[*LISTS, *(OpenApiParameter(name, str) for name in EVICTION_FILTERS)],
    )
    def get(self, request: Request) -> HttpResponseBase:
        """Return one page, newest first, or all of them as a file."""
        actor, given = actor_of(request), request.query_params
        rows = eviction_rows(actor, team=given.get("team", ""), reason=given.get("reason", ""))
        if wants_csv(request):
            cells = eviction_cells(as_evictions(rows.iterator(), actor))
            return csv_answer(request, "evictions", cells)
        pages = NewestEviction()
        page = pages.paginate_queryset(rows, request, view=self)
        cells = eviction_cells(as_evictions(page or [], actor))
        return pages.get_paginated_response(list(map(_texts, cells)))


def _texts(cells: Mapping[str, Any]) -> dict[str, Any]:
    """Return a row with money and hours as texts, as everywhere in REST."""
    hours = {name: f"{cells[name]:.6f}" for name in HOURS if name in cells}
    worth = cells["worth"]
    return {**cells, **hours, "worth": None if worth is None else digits(worth)}
