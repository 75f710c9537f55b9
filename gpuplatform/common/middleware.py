"""Give every request a number that its log lines, audit entries and errors share."""

import re
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from django.http import HttpRequest, HttpResponse

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
