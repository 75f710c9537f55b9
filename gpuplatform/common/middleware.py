"""Give every request a number that its log lines, audit entries and errors share."""

import re
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.middleware.http import ConditionalGetMiddleware

_request_id: ContextVar[str] = ContextVar("request_id", default="")
_ACCEPTABLE = re.compile(r"[A-Za-z0-9._-]{1,64}", re.ASCII)


def current_request_id() -> str:
    """Return the id of the request being answered, or ""."""
    return _request_id.get()


@contextmanager
def under_request_id(request_id: str) -> Iterator[None]:
    """Do something under the id of a request, as what was asked earlier and is done now."""
    token = _request_id.set(request_id)
    try:
        yield
    finally:
        _request_id.reset(token)


PERMISSIONS = "camera=(), geolocation=(), microphone=(), payment=(), usb=()"


class UnchangedMiddleware(ConditionalGetMiddleware):
    """Answer 304 over REST where the caller has what would be answered (``If-None-Match``).

    Objects with a version have it as their ETag, anything else a digest of what is answered.
    What is answered over REST belongs to who asked: nobody between may keep it.
    """

    def process_response(
        self, request: HttpRequest, response: HttpResponseBase
    ) -> HttpResponseBase:
        """Return the answer, or that it has not changed."""
        response.headers.setdefault("Permissions-Policy", PERMISSIONS)
        if not request.path.startswith("/api/v1/"):
            return response
        response.headers.setdefault("Cache-Control", "private, no-cache")
        return super().process_response(request, response)


class RequestIdMiddleware:
    """Take ``X-Request-ID`` from the client if it is decent, else make one; send it back."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        """Answer ``request`` under its id."""
        given = request.headers.get("X-Request-ID", "")
        request_id = given if _ACCEPTABLE.fullmatch(given) else uuid.uuid4().hex
        with under_request_id(request_id):
            response = self.get_response(request)
        response["X-Request-ID"] = request_id
        return response
