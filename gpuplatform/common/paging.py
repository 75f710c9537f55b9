"""Lists over REST: bounded pages by cursor, and no parameter is ignored in silence."""

from collections.abc import Iterable
from typing import Any

from django.utils.translation import gettext as _
from rest_framework.exceptions import ValidationError
from rest_framework.pagination import CursorPagination
from rest_framework.request import Request

DEFAULT_LIMIT, MOST = 50, 500
PARAMETERS = frozenset({"cursor", "limit", "format"})


class NewestFirst(CursorPagination):
    """Pages by ``created_at``, newest first; ``?limit=`` up to 500, ``?cursor=`` as linked."""

    ordering: Any = ("-created_at", "uid")
    page_size = DEFAULT_LIMIT
    page_size_query_param = "limit"
    max_page_size = MOST


class ByName(NewestFirst):
    """Pages by name."""

    ordering: Any = ("name",)


def check_parameters(request: Request, known: Iterable[str]) -> None:
    """Refuse parameters that mean nothing here, and a limit that is no number from 1 to 500.

    Raises:
        ValidationError: 400, each with its name.
    """
    allowed = PARAMETERS | set(known)
    wrong: dict[str, list[str]] = {
        name: [_("There is no such parameter here.")]
        for name in request.query_params
        if name not in allowed
    }
    limit = request.query_params.get("limit")
    if limit is not None and not (limit.isascii() and limit.isdecimal() and _within(limit)):
        wrong["limit"] = [_("A limit lies between 1 and {most}.").format(most=MOST)]
    if wrong:
        raise ValidationError(wrong)


def _within(limit: str) -> bool:
    return len(limit) <= len(str(MOST)) and 1 <= int(limit) <= MOST
