"""What is turned away before any view looks at it."""

from collections.abc import Callable
from http import HTTPStatus
from urllib.parse import unquote

from django.http import HttpRequest, HttpResponse, HttpResponseBadRequest
from django.utils.translation import gettext as _

from gpuplatform.common.http import API_PREFIX, plain_problem
from gpuplatform.common.problems import Problem


class ThresholdMiddleware:
    """Refuse addresses that no database can hold, and bodies that do not say how long they are.

    A NUL in an address would be a server error on PostgreSQL. A body without a length (chunked)
    would be read as empty: a PUT that seems to say "nothing" must never be taken for a wish.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        """Answer ``request``, or say what is wrong with it."""
        if "\x00" in request.path or "\x00" in unquote(request.META.get("QUERY_STRING", "")):
            words = _("An address cannot hold a NUL character.")
            return _refuse(request, HTTPStatus.BAD_REQUEST, Problem("", "BAD_TEXT", words))
        if request.headers.get("Transfer-Encoding") and not request.META.get("CONTENT_LENGTH"):
            words = _("Send the body with its length (Content-Length), not in chunks.")
            return _refuse(request, HTTPStatus.LENGTH_REQUIRED, Problem("", "NO_LENGTH", words))
        return self.get_response(request)


def _refuse(request: HttpRequest, status: HTTPStatus, problem: Problem) -> HttpResponse:
    if request.path.startswith(API_PREFIX):
        return plain_problem(request, status, [problem])
    return HttpResponseBadRequest(problem.message, status=status, content_type="text/plain")
