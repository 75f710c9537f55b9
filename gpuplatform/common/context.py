"""What every page's frame needs to know."""

from typing import Any

from django.http import HttpRequest
from django.utils import timezone

from gpuplatform.common.middleware import current_request_id
from gpuplatform.common.pages import rail_links, viewer_of


def shell(request: HttpRequest) -> dict[str, Any]:
    """Return theme ("" follows the system), rail, who looks, and the instant of the page."""
    theme = request.COOKIES.get("theme", "")
    viewer = viewer_of(request)
    return {
        "theme": theme if theme in {"light", "dark"} else "",
        "viewer": viewer,
        "rail": rail_links(request, viewer) if viewer.name else [],
        "as_of": timezone.now(),
        "request_id": current_request_id(),
    }
