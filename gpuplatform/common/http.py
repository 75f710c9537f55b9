"""How refusals look over HTTP, the same for every endpoint: RFC 9457 problem details.

``type`` is ``urn:gpuplatform:problem:<code>``; ``errors`` lists what to correct, each with a JSON
pointer into the body, a stable code, a sentence and its numbers. No answer shows a stack trace.
"""

import logging
from collections.abc import Iterable, Mapping
from http import HTTPStatus
from typing import Any

from django.core.exceptions import (
    PermissionDenied,
    RequestDataTooBig,
    SuspiciousOperation,
    ValidationError,
)
from django.http import (
    Http404,
    HttpRequest,
    HttpResponse,
    HttpResponseServerError,
    JsonResponse,
)
from django.template.loader import get_template
from django.utils.translation import gettext as _
from django.views import defaults
from rest_framework import exceptions
from rest_framework.response import Response
from rest_framework.views import exception_handler, set_rollback

from gpuplatform.common.manifests import MAX_BYTES
from gpuplatform.common.middleware import current_request_id
from gpuplatform.common.pointers import pointer
from gpuplatform.common.problems import NotAllowed, Problem, Rejected, Stale
from gpuplatform.common.reasons import ECHOED, shortened

CONTENT_TYPE = "application/problem+json"
API_PREFIX = "/api/"
MOST_SAID = 200  # characters of a sentence that is not ours
# The codes of refusals that are not simply "breaks a rule" (422).
STATUS_OF = {
    "name_taken": HTTPStatus.CONFLICT,
    "already_finished": HTTPStatus.CONFLICT,
    "in_use": HTTPStatus.CONFLICT,
    "STALE_EPOCH": HTTPStatus.CONFLICT,
    "SEQUENCE_GAP": HTTPStatus.CONFLICT,
    "not_found": HTTPStatus.NOT_FOUND,
    "NOT_ALLOWED": HTTPStatus.FORBIDDEN,
    "NOT_YOUR_TEAM": HTTPStatus.FORBIDDEN,
    "TOO_LARGE": HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
    **dict.fromkeys(
        (
            "ANCHOR",
            "BAD_KEY",
            "BAD_NUMBER",
            "BAD_SYNTAX",
            "BAD_TEXT",
            "DUPLICATE_KEY",
            "EMPTY_SUBMISSION",
            "NOT_A_MAPPING",
            "TAG",
            "TOO_DEEP",
            "TOO_MANY_DOCUMENTS",
        ),
        HTTPStatus.BAD_REQUEST,
    ),
}
logger = logging.getLogger(__name__)


class TooLarge(exceptions.APIException):
    """The body is larger than any request may be."""

    status_code = HTTPStatus.REQUEST_ENTITY_TOO_LARGE
    default_code = "too_large"

    def __init__(self) -> None:
        words = _("The body is larger than {limit} bytes.").format(limit=MAX_BYTES)
        super().__init__(words)


def handle_exception(error: Exception, context: Mapping[str, Any]) -> Response:
    """Answer any error of an API view as problem details; DRF's ``EXCEPTION_HANDLER``."""
    request = context.get("request")
    path = request.path if request is not None else ""
    set_rollback()
    if isinstance(error, Rejected):
        status = status_of(error)
        return _response(rejection(error, status, path), status)
    known = exception_handler(_as_api_error(error), dict(context))
    if known is None:
        logger.error("api.failed", exc_info=error, extra={"path": path})
        status = HTTPStatus.INTERNAL_SERVER_ERROR
        return _response(problem(status, path=path), status)
    body = _body_of(_as_api_error(error), known.status_code, path)
    kept = {
        name: known[name] for name in ("Allow", "Retry-After", "WWW-Authenticate") if name in known
    }
    return _response(body, known.status_code, kept)


def status_of(error: Rejected) -> HTTPStatus:
    """Return the status of a refusal: that of the one code all problems share, else 422."""
    if isinstance(error, Stale):
        return HTTPStatus.PRECONDITION_FAILED
    found = {STATUS_OF.get(p.code, HTTPStatus.UNPROCESSABLE_ENTITY) for p in error.problems}
    return found.pop() if len(found) == 1 else HTTPStatus.UNPROCESSABLE_ENTITY


def rejection(error: Rejected, status: int, path: str) -> dict[str, Any]:
    """Return the body that answers a refusal."""
    codes = [p.code for p in error.problems]
    code = codes[0].lower() if len(set(codes)) == 1 else "rejected"
    detail = " ".join(dict.fromkeys(p.message for p in error.problems))
    more = {"warnings": error.warnings} if error.warnings else {}
    return problem(status, code, detail, errors=errors_of(error.problems), path=path, **more)


def errors_of(problems: Iterable[Problem]) -> list[dict[str, Any]]:
    """Return problems as ``errors`` spells them."""
    return [
        {
            "pointer": pointer(p.path),
            "code": p.code,
            "detail": p.message,
            "numbers": shortened(p.numbers),
        }
        for p in problems
    ]


def problem(
    status: int,
    code: str = "",
    detail: str = "",
    *,
    errors: Iterable[Mapping[str, Any]] = (),
    path: str = "",
    **members: Any,
) -> dict[str, Any]:
    """Return the body of a problem; ``members`` are extensions of its own."""
    title = HTTPStatus(status).phrase
    code = code or title.lower().replace(" ", "_")
    listed = list(errors) or [
        {"pointer": "", "code": code, "detail": detail or title, "numbers": {}}
    ]
    return {
        "type": f"urn:gpuplatform:problem:{code}",
        "title": title,
        "status": int(status),
        "detail": detail or title,
        "instance": path,
        "request_id": current_request_id(),
        "errors": listed,
        **members,
    }


def _response(
    body: Mapping[str, Any], status: int, headers: Mapping[str, str] | None = None
) -> Response:
    return Response(body, int(status), headers=headers, content_type=CONTENT_TYPE)


def _as_api_error(error: Exception) -> Exception:
    """Return Django's own refusals as DRF knows them."""
    if isinstance(error, RequestDataTooBig):
        return TooLarge()
    if isinstance(error, SuspiciousOperation | ValidationError):  # a cursor that was tampered with
        return exceptions.ParseError()
    if isinstance(error, NotAllowed | PermissionDenied):
        return exceptions.PermissionDenied(str(error) or None)
    return exceptions.NotFound() if isinstance(error, Http404) else error


def _body_of(error: Exception, status: int, path: str) -> dict[str, Any]:
    assert isinstance(error, exceptions.APIException)
    if isinstance(error, exceptions.ValidationError):
        problems = list(_flattened(error.detail, ""))
        detail = " ".join(dict.fromkeys(p.message for p in problems))
        return problem(status, "invalid", detail, errors=errors_of(problems), path=path)
    code = error.default_code if isinstance(error.detail, list | dict) else error.detail.code
    return problem(status, str(code), str(error.detail), path=path)


def _flattened(detail: Any, path: str) -> Iterable[Problem]:
    """Yield DRF's nested errors one by one, with their paths."""
    if isinstance(detail, Mapping):
        for key, value in detail.items():
            yield from _flattened(value, f"{path}.{key}".removeprefix("."))
    elif isinstance(detail, list):
        for value in detail:
            yield from _flattened(value, path)
    else:
        yield Problem(path, str(getattr(detail, "code", "invalid")), _short(str(detail)))


def _short(sentence: str) -> str:
    """Return a sentence of DRF's, which may begin with all that somebody sent."""
    return sentence if len(sentence) <= MOST_SAID else f"{sentence[:ECHOED]}..."


# ---- where no view is reached ------------------------------------------------------------------
def not_found(request: HttpRequest, exception: Exception | None = None) -> HttpResponse:
    """Answer an unknown address: problem details under ``/api/``, else the page; handler404."""
    if request.path.startswith(API_PREFIX):
        return plain_problem(request, HTTPStatus.NOT_FOUND)
    return defaults.page_not_found(request, exception or Http404())


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:
    """Answer what no view is asked for, such as an unknown ``Host``, the same way; handler400."""
    if request.path.startswith(API_PREFIX):
        return plain_problem(request, HTTPStatus.BAD_REQUEST)
    return defaults.bad_request(request, exception)


def server_error(request: HttpRequest) -> HttpResponse:
    """Answer an unexpected fault the same way; handler500."""
    if request.path.startswith(API_PREFIX):
        return plain_problem(request, HTTPStatus.INTERNAL_SERVER_ERROR)
    # Without the context of other pages: something there may be what has failed.
    again = request.get_full_path() if request.method == "GET" else ""
    page = get_template("500.html").render({"request_id": current_request_id(), "again": again})
    return HttpResponseServerError(page)


def plain_problem(
    request: HttpRequest, status: HTTPStatus, problems: Iterable[Problem] = ()
) -> JsonResponse:
    """Return problem details from outside REST's own views."""
    body = problem(status, errors=errors_of(problems), path=request.path)
    return JsonResponse(body, status=status, content_type=CONTENT_TYPE)
