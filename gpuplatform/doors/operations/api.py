"""REST of operations: how far each is, what came out, and the way to end it."""

from uuid import UUID

from django.http import Http404, HttpResponse
from django.utils.translation import gettext as _
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import extend_schema
from rest_framework import status
from rest_framework.request import Request
from rest_framework.response import Response

from finops.models import QuotaReplay
from gpuplatform.common.later import SHAPE
from gpuplatform.common.models import Operation, WorkState
from gpuplatform.common.paging import CheckedView
from gpuplatform.common.problems import Problem, Rejected
from gpuplatform.doors.operations import showing
from queues.access import HasScope, actor_of


class OperationsView(CheckedView):
    """All operations."""

    permission_classes = (HasScope,)
    scopes = {"GET": "read"}

    @extend_schema(
        responses={200: {"type": "array", "items": SHAPE}}, operation_id="operations_list"
    )
    def get(self, request: Request) -> Response:
        """List the newest 200 that one asked for, replays among them; admins see everybody's."""
        return Response(showing.listed(actor_of(request)))


class OperationView(CheckedView):
    """One operation."""

    permission_classes = (HasScope,)
    scopes = {"GET": "read", "DELETE": "read"}  # and what it took to ask

    @extend_schema(responses={200: SHAPE}, operation_id="operations_one")
    def get(self, request: Request, uid: UUID) -> Response:
        """Answer how far it is; once it is done, where its answer stands, or why there is none."""
        return Response(showing.told(_row(request, uid)))

    @extend_schema(responses={204: None}, operation_id="operations_cancel")
    def delete(self, request: Request, uid: UUID) -> Response:
        """Cancel it: nothing of it stays. 409 where it has ended."""
        row = _row(request, uid)
        if not showing.end(row, actor_of(request)):
            raise Rejected([Problem("", "already_finished", _("It has ended already."))])
        return Response(status=status.HTTP_204_NO_CONTENT)


class OperationResultView(CheckedView):
    """What came out of one."""

    permission_classes = (HasScope,)
    scopes = {"GET": "read"}

    @extend_schema(
        responses={
            (200, "application/json"): {"description": "What the request would have answered."},
            (200, "text/csv"): OpenApiTypes.STR,
            (200, "application/zip"): OpenApiTypes.BINARY,
            (200, "application/pdf"): OpenApiTypes.BINARY,
        },
        operation_id="operations_result",
    )
    def get(self, request: Request, uid: UUID) -> HttpResponse:
        """Answer what the request would have answered at once; 404 until it is done."""
        row = _row(request, uid)
        if isinstance(row, QuotaReplay) or row.state != WorkState.DONE:
            raise Http404
        whole = Operation.objects.only("answer", "answer_headers").get(pk=row.pk)
        headers = {k: v for k, v in whole.answer_headers.items() if k != "ETag"}
        answer = HttpResponse(bytes(whole.answer or b""), headers=headers)
        answer["X-Content-Type-Options"] = "nosniff"
        return answer


def _row(request: Request, uid: UUID) -> Operation | QuotaReplay:
    row = showing.found(actor_of(request), uid)
    if row is None:
        raise Http404
    return row
