"""REST of fair sharing."""

from django.http import HttpResponse
from drf_spectacular.utils import extend_schema
from rest_framework.renderers import JSONRenderer
from rest_framework.request import Request
from rest_framework.response import Response

from gpuplatform.common.lists import CSVRenderer, csv_answer, wants_csv
from gpuplatform.common.paging import CheckedView
from gpuplatform.common.rest_shapes import results_of
from queues.access import HasScope, actor_of
from scheduling.rest_shapes import FAIR_SHARE
from scheduling.selectors.fair_share import fair_cells, fair_trees


class FairShareView(CheckedView):
    """``/api/v1/fair-share/``: whose turn it is in every cohort that shares, and why."""

    permission_classes = (HasScope,)
    renderer_classes = (JSONRenderer, CSVRenderer)
    parameters = {"GET": ("fields",)}

    @extend_schema(operation_id="fair_share_list", responses={200: results_of(FAIR_SHARE)})
    def get(self, request: Request) -> HttpResponse:
        """Return every visible sister with the figures that decide, in the order of turns."""
        rows = list(fair_cells(fair_trees(actor_of(request))))
        if wants_csv(request):
            return csv_answer(request, "fair-share", rows)
        return Response({"results": rows})
