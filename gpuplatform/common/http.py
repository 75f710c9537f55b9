"""How refusals look over HTTP, the same for every endpoint (RFC 9457)."""

from typing import Any

from rest_framework.response import Response
from rest_framework.views import exception_handler


def handle_exception(error: Exception, context: dict[str, Any]) -> Response | None:
    """Answer what DRF knows."""
    return exception_handler(error, context)
