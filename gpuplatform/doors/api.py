"""REST's door for manifests."""

from http import HTTPStatus
from typing import Any

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.exceptions import NotFound
from rest_framework.renderers import JSONRenderer
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from gpuplatform.common.diagnostics import Diagnostic
from gpuplatform.common.dry_run import PARAMETER as DRY_RUN
from gpuplatform.common.dry_run import is_dry_run
from gpuplatform.common.http import CONTENT_TYPE, problem
from gpuplatform.common.paging import CheckedView, truth
from gpuplatform.common.parsers import (
    JsonManifestParser,
    ManifestParser,
    OldManifestParser,
    TextManifestParser,
)
from gpuplatform.common.pointers import pointer
from gpuplatform.common.reasons import shortened
from gpuplatform.common.rest_shapes import TEXT
from gpuplatform.common.why import PARAMETER as REASON
from gpuplatform.common.why import given_reason
from gpuplatform.doors.importer import import_documents
from gpuplatform.doors.paths import document_path
from gpuplatform.doors.report import SHAPE, ImportReport, ObjectResult
from gpuplatform.doors.schema import refusals_of
from queues.access import HasScope, actor_of

REFUSAL = refusals_of("ManifestProblem", SHAPE["properties"], {"path": TEXT})


class ManifestsView(CheckedView):
    """``POST /api/v1/manifests/``: take documents of every kind that is read here."""

    parser_classes = (ManifestParser, TextManifestParser, OldManifestParser, JsonManifestParser)
    renderer_classes = (JSONRenderer,)
    permission_classes = (HasScope,)
    scopes = {"POST": "workloads:submit"}  # what else a document needs is asked per object

    parameters = {"POST": ("atomic", "dry_run", "reason")}
    later = ("POST",)
    refusals = {"POST": (HTTPStatus.PRECONDITION_FAILED,)}

    @extend_schema(
        operation_id="manifests_create",
        request={("application/yaml"): OpenApiTypes.STR},
        parameters=[
            OpenApiParameter("atomic", bool, description="Keep all objects or none."),
            DRY_RUN,
            REASON,
        ],
        responses=dict.fromkeys((200, 201, 207), SHAPE)
        | dict.fromkeys(((status, CONTENT_TYPE) for status in (403, 412, 422)), REFUSAL),
    )
    def post(self, request: Request) -> Response:
        """Decide every document; 207 where some are accepted and some are not."""
        report = import_documents(
            _text(request.data),
            actor=actor_of(request),
            atomic=truth(request, "atomic") or False,
            dry_run=is_dry_run(request),
            reason=given_reason(request),
        )
        return _answer(report, request.path)


def _text(body: Any) -> bytes:
    """Return the body as ManifestParser left it; nothing where none was sent."""
    return body if isinstance(body, bytes) else b""


def _answer(report: ImportReport, path: str) -> Response:
    if not report.all_rejected:
        status = HTTPStatus.CREATED if report.created else HTTPStatus.OK
        return Response(report.as_json(), HTTPStatus.MULTI_STATUS if report.rejected else status)
    status = HTTPStatus.UNPROCESSABLE_ENTITY
    if report.is_forbidden:
        status = HTTPStatus.FORBIDDEN
    elif report.is_stale:
        status = HTTPStatus.PRECONDITION_FAILED
    return Response(_refusal(report, status, path), status, content_type=CONTENT_TYPE)


def _refusal(report: ImportReport, status: int, path: str) -> dict[str, Any]:
    reasons = [
        (result, diagnostic)
        for result in report.rejected
        for diagnostic in result.diagnostics
        if diagnostic.is_error
    ]
    errors = [
        {
            "pointer": pointer(f"{result.document.path}.{_own(result, diagnostic)}"),
            "path": diagnostic.path,
            "code": diagnostic.code,
            "detail": diagnostic.sentence,
            "numbers": shortened(diagnostic.numbers),
        }
        for result, diagnostic in reasons
    ]
    detail = " ".join(dict.fromkeys(diagnostic.sentence for _, diagnostic in reasons))
    codes = {diagnostic.code for _, diagnostic in reasons}
    code = codes.pop().lower() if len(codes) == 1 else "rejected"
    return problem(status, code, detail, errors=errors, path=path, **report.as_json())


def _own(result: ObjectResult, diagnostic: Diagnostic) -> str:
    """Return the finding's path if it is one of the document."""
    return document_path(result.document.body, diagnostic.path)


class UnknownAddress(APIView):
    """Everything else under ``/api/``: problem details, never a page."""

    permission_classes = ()
    authentication_classes = ()
    schema = None

    def initial(self, *_args: Any, **_kwargs: Any) -> None:
        """Refuse before anything is read."""
        raise NotFound
