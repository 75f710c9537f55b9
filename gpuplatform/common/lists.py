"""Manners of lists over REST: which fields, in which order, how many in all, as a file.

``?fields=`` and ``?brief=1`` leave fields out, ``?ordering=`` sorts, ``?count=exact`` counts,
``?format=csv`` (or ``Accept: text/csv``) answers all rows of the same filter.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, TypeVar

from django.core.handlers.asgi import ASGIRequest
from django.http import HttpResponse
from django.utils.translation import gettext as _
from drf_spectacular.utils import OpenApiParameter
from rest_framework.exceptions import ValidationError
from rest_framework.renderers import BaseRenderer, JSONRenderer
from rest_framework.request import Request
from rest_framework.response import Response

from gpuplatform.common.pages import csv_rows

Row = TypeVar("Row")
LISTED = ("fields", "brief", "count", "ordering")  # what a list knows beside its pages
CSV = "csv"
BRIEF = ("uid", "namespace", "name", "status", "queue", "team", "version")
PARAMETERS = [
    OpenApiParameter("fields", str, description="Only these fields, with commas."),
    OpenApiParameter("brief", str, enum=["1"], description="Names, states and versions only."),
    OpenApiParameter("count", str, enum=["exact"], description="Say how many there are in all."),
    OpenApiParameter("ordering", str, description="A field, with - the other way round."),
]


class CSVRenderer(BaseRenderer):
    """Lets a client ask for CSV; the view writes it, so only refusals come here: as JSON."""

    media_type, format = "text/csv", CSV

    def render(self, data: Any, *_args: Any, **_kwargs: Any) -> bytes:
        """Return a refusal as JSON."""
        return bytes(JSONRenderer().render(data))


def wants_csv(request: Request) -> bool:
    """Return whether the list is asked for as a file."""
    return getattr(getattr(request, "accepted_renderer", None), "format", "") == CSV


def batched(rows: Iterable[Row], size: int) -> Iterator[list[Row]]:
    """Yield rows in lists of up to ``size``."""
    left = iter(rows)
    while chunk := list(islice(left, size)):
        yield chunk


def csv_answer(request: Request, name: str, rows: Iterable[Mapping[str, Any]]) -> HttpResponse:
    """Return all rows as a file; what has an inner structure stands in its cell as JSON."""
    found = [_asked(request, row) for row in rows]
    columns = list(found[0]) if found else []
    flat = ({key: _cell(value) for key, value in row.items()} for row in found)
    return csv_rows(name, columns, flat, is_async=is_async(request))


def is_async(request: Request) -> bool:
    """Return whether an ASGI server asks: it wants long answers in pieces of its own kind."""
    return isinstance(request._request, ASGIRequest)  # noqa: SLF001  # DRF has no other name


def _cell(value: Any) -> Any:
    return json.dumps(value, ensure_ascii=False, default=str) if _is_inner(value) else value


def _is_inner(value: Any) -> bool:
    return isinstance(value, Mapping | list | tuple)


def narrow(request: Request, response: Response) -> None:
    """Leave only the fields that were asked for in what is answered.

    Raises:
        ValidationError: 400, a field that nothing here has.
    """
    if not isinstance(response.data, Mapping):
        return
    rows = response.data.get("results")
    if isinstance(rows, list) and wanted_fields(request) is not None:
        response.data = {**response.data, "results": [_asked(request, row) for row in rows]}


def wanted_fields(request: Request) -> Sequence[str] | None:
    """Return the fields that were asked for; None: all.

    Raises:
        ValidationError: 400, another value than 1 of ``brief``.
    """
    brief, fields = (request.query_params.get(name) for name in ("brief", "fields"))
    if brief not in (None, "1"):
        raise ValidationError({"brief": [_("The only value is {value}.").format(value=1)]})
    if fields:
        return [name.strip() for name in fields.split(",")]
    return BRIEF if brief else None


def _asked(request: Request, row: Mapping[str, Any]) -> Mapping[str, Any]:
    wanted = wanted_fields(request)
    if wanted is None:
        return row
    unknown = [name for name in wanted if name not in row] if wanted is not BRIEF else []
    if unknown:
        words = _("There is no field {name} here; known are {known}.")
        told = words.format(name=unknown[0][:80], known=", ".join(row))
        raise ValidationError({"fields": [told]})
    return {name: row[name] for name in wanted if name in row}


def chosen_ordering(request: Request, known: Sequence[str]) -> str:
    """Return the order that was asked for, "" without one.

    Raises:
        ValidationError: 400, a field by which nothing is sorted here.
    """
    asked = request.query_params.get("ordering", "")
    if asked and asked.removeprefix("-") not in known:
        words = _("Nothing is sorted by this here; known are {known}.")
        raise ValidationError({"ordering": [words.format(known=", ".join(known))]})
    return asked


def wants_count(request: Request) -> bool:
    """Return whether the exact number of rows is asked for.

    Raises:
        ValidationError: 400, another value than ``exact``.
    """
    value = request.query_params.get("count")
    if value not in (None, "exact"):
        raise ValidationError({"count": [_("The only value is {value}.").format(value="exact")]})
    return value is not None
