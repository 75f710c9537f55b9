"""REST's ledgers: who lent what to whom, and whose work was taken away for what."""

from typing import Any

from django.db.models import QuerySet
from django.http.response import HttpResponseBase
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema, extend_schema_field
from rest_framework import serializers
from rest_framework.generics import ListAPIView
from rest_framework.renderers import JSONRenderer
from rest_framework.request import Request

from gpuplatform.common import clock
from gpuplatform.common.lists import PARAMETERS as LISTS
from gpuplatform.common.lists import CSVRenderer, csv_answer, wants_csv
from gpuplatform.common.paging import PAGES, CheckedView, NewestFirst, truth
from queues.access import HasScope, actor_of, visible
from scheduling.models import Workload, WorkloadEvent
from scheduling.selectors.loans import as_loan, loan_cells, loan_rows
from scheduling.selectors.pages import Pages
from scheduling.serializers import EventSerializer

CHUNK = 500  # rows read at once for a file
FILTERS = ("borrower", "lender", "flavor")
EVICTED = "evicted"


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
        responses={200: OpenApiTypes.OBJECT},
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
        return pages.get_paginated_response(list(self._shown(request, page or [])))

    def _shown(self, request: Request, rows: Any) -> Any:
        actor, now = actor_of(request), clock.now()
        pages = Pages(actor)
        return loan_cells(as_loan(row, actor, now, pages) for row in rows)


class EvictionSerializer(serializers.ModelSerializer[WorkloadEvent]):
    """Work that was taken away; ``other`` is for whom, null where the reader may not see it."""

    uid = serializers.UUIDField(source="workload.uid")
    namespace = serializers.CharField(source="workload.namespace")
    name = serializers.CharField(source="workload.name")
    queue = serializers.CharField(source="workload.queue_name")
    team = serializers.CharField(source="workload.team.name", default=None, allow_null=True)
    other = serializers.SerializerMethodField()

    class Meta:
        model = WorkloadEvent
        fields = (
            "id",
            "at",
            "uid",
            "namespace",
            "name",
            "queue",
            "team",
            "reason",
            "facts",
            "other",
        )

    @extend_schema_field(serializers.UUIDField(allow_null=True))
    def get_other(self, row: WorkloadEvent) -> Any:
        """Return what a line of a story says of the other one."""
        return EventSerializer(row, context=self.context).data["other"]


class NewestEviction(NewestFirst):
    """Pages by number, newest first."""

    ordering: Any = ("-id",)


class EvictionsView(CheckedView, ListAPIView[WorkloadEvent]):
    """``/api/v1/evictions/``: work of one's teams that lost its place, and why."""

    permission_classes = (HasScope,)
    renderer_classes = (JSONRenderer, CSVRenderer)
    pagination_class = NewestEviction
    serializer_class = EvictionSerializer
    parameters = {"GET": (*PAGES, "reason", "queue")}
    queryset = WorkloadEvent.objects.filter(kind=EVICTED)

    def get_queryset(self) -> QuerySet[WorkloadEvent]:
        """Return the lines of stories that the actor sees, of the filter."""
        own = visible(Workload.objects.all(), actor_of(self.request))
        rows = super().get_queryset().filter(workload__in=own)
        columns = {"reason": "reason", "queue": "workload__queue_name"}
        given = self.request.query_params
        wanted = {column: given[name] for name, column in columns.items() if given.get(name)}
        rows = rows.filter(**wanted).order_by("-id")
        return rows.select_related("workload__team", "other")

    def get_serializer_context(self) -> dict[str, Any]:
        """Return DRF's context with the reader, whose sight decides what rows say."""
        return {**super().get_serializer_context(), "actor": actor_of(self.request)}

    @extend_schema(
        operation_id="evictions_list",
        parameters=[*LISTS, OpenApiParameter("reason", str), OpenApiParameter("queue", str)],
    )
    def get(self, request: Request, *args: Any, **kwargs: Any) -> HttpResponseBase:  # type: ignore[override]  # a file is no Response
        """Return one page, newest first, or all of them as a file."""
        if not wants_csv(request):
            return super().get(request, *args, **kwargs)
        rows = self.get_queryset().iterator(chunk_size=CHUNK)
        context = self.get_serializer_context()
        return csv_answer(
            request, "evictions", (EvictionSerializer(row, context=context).data for row in rows)
        )
