"""Answer nothing where the caller has it already."""

from http import HTTPStatus

from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.middleware.http import ConditionalGetMiddleware
from django.utils.translation import gettext as _

from gpuplatform.common.http import plain_problem
from gpuplatform.common.problems import Problem

PERMISSIONS = "camera=(), geolocation=(), microphone=(), payment=(), usb=()"


class UnchangedMiddleware(ConditionalGetMiddleware):
    """Answer 304 over REST where the caller has what would be answered (``If-None-Match``).

    Objects with a version have it in their ETag, anything else a digest of what is answered.
    ``If-Match`` with another one is refused as any refusal is.
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
        found = super().process_response(request, response)
        if found.status_code == HTTPStatus.PRECONDITION_FAILED and found is not response:
            sentence = _("What If-Match names is not what would be answered.")
            stale = [Problem("version", "stale", sentence)]
            return plain_problem(request, HTTPStatus.PRECONDITION_FAILED, stale)
        return found
