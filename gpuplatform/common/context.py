"""What every page's frame needs to know."""

from typing import Any

from django.http import HttpRequest


def shell(request: HttpRequest) -> dict[str, Any]:
    """Return the theme that the reader chose; "" follows the system."""
    theme = request.COOKIES.get("theme", "")
    return {"theme": theme if theme in {"light", "dark"} else ""}
