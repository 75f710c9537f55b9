"""What all pages share: the rail, tiles that rooms above contribute, and exports of tables.

The ground floor knows no room. Rooms register what only they know (who is looking, what the
month costs) when Django starts; the page asks for what is registered.
"""

import csv
import io
import json
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from decimal import Decimal
from itertools import chain, islice
from typing import Any, cast

from asgiref.sync import sync_to_async
from django.core.handlers.asgi import ASGIRequest
from django.core.serializers.json import DjangoJSONEncoder
from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.urls import NoReverseMatch, reverse
from django.urls.converters import StringConverter
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from gpuplatform.common.money import digits

FORMATS = ("csv", "json")
CSV = "text/csv; charset=utf-8"
ROWS_AT_ONCE = 1000  # of a file that is sent while it is made
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


@dataclass(frozen=True, slots=True)
class Tile:
    """A key number: label, value, one line below, and the list it leads to."""

    label: str
    value: str
    sub: str = ""
    href: str = ""
    unit: str = ""
    role: str = ""  # nominal | borrowed | idle | pending: colours the spark line
    spark: Sequence[float] = ()
    spark_label: str = ""


@dataclass(frozen=True, slots=True)
class Viewer:
    """Who looks at the page, as far as the frame of a page cares."""

    name: str = ""
    role: str = ""
    may: frozenset[str] = field(default_factory=frozenset)  # keys of RailItem.needs


@dataclass(frozen=True, slots=True)
class RailItem:
    """One entry of the rail. ``needs`` "" is for everybody; ``key`` is pressed after ``g``.

    ``also``: where else in the address space pages stand that belong to it.
    """

    name: str
    label: str | Promise
    icon: str
    key: str
    needs: str = ""
    also: tuple[str, ...] = ()


RAIL = (
    RailItem("overview", _("Overview"), "overview", "o"),
    RailItem("queues", _("Queues"), "queues", "q", also=("/cohorts/",)),
    RailItem("workloads", _("Workloads"), "workloads", "w", also=("/priority-classes/",)),
    RailItem("submit", _("Submit"), "submit", "s", "submit"),
    RailItem(
        *("nodes", _("Nodes"), "nodes", "n"),
        also=("/flavors/", "/topologies/", "/topology/", "/agents/"),
    ),
    RailItem("teams", _("Teams"), "teams", "t"),
    RailItem("people", _("People"), "people", "e", "people"),
    RailItem("requests", _("Requests"), "requests", "x", "requests"),
    RailItem("fair-share", _("Fair share"), "fair", "r"),
    RailItem("replays", _("What if"), "replays", "i", "everything"),
    RailItem("borrowing", _("Borrowing"), "borrowing", "b", also=("/evictions/",)),
    RailItem("cost", _("Cost"), "cost", "c", "cost"),
    RailItem("bills", _("Bills"), "bills", "l", "bills"),
    RailItem("budgets", _("Budgets"), "budgets", "u", "bills"),
    RailItem("drift", _("Drift"), "drift", "f", "sources"),
    RailItem("prices", _("Prices"), "prices", "p", "prices", also=("/shared-costs/",)),
    RailItem("mappings", _("Mappings"), "mappings", "m", "prices"),
    RailItem("sources", _("Sources"), "sources", "d", "sources", also=("/failures/",)),
    RailItem("audit", _("Audit"), "audit", "a", "audit"),
    RailItem("webhooks", _("Webhooks"), "webhooks", "h", "webhooks"),
    RailItem("settings", _("Settings"), "settings", "k", "settings"),
)


@dataclass(frozen=True, slots=True)
class RailLink:
    """A rail item that leads somewhere for this reader."""

    item: RailItem
    href: str
    current: bool


ViewerOf = Callable[[HttpRequest], Viewer]
TileOf = Callable[[HttpRequest], Tile | None]
_viewers: list[ViewerOf] = []
_tiles: list[TileOf] = []


def register_viewer(viewer_of: ViewerOf) -> None:
    """Register who can tell who looks at a page; the room that owns roles calls this."""
    _viewers[:] = [viewer_of]


def register_tile(tile_of: TileOf) -> TileOf:
    """Register a key number of the overview; None hides it from this reader."""
    if tile_of not in _tiles:
        _tiles.append(tile_of)
    return tile_of


def viewer_of(request: HttpRequest) -> Viewer:
    """Return who looks; nobody before a room has registered or before sign-in."""
    user = getattr(request, "user", None)
    if not _viewers or user is None or not user.is_authenticated:
        return Viewer()
    return _viewers[0](request)


def extra_tiles(request: HttpRequest) -> list[Tile]:
    """Return the tiles of the rooms above, in order of registration."""
    return [tile for tile_of in _tiles if (tile := tile_of(request)) is not None]


def rail_links(request: HttpRequest, viewer: Viewer) -> list[RailLink]:
    """Return the rail for this reader; a page that this installation lacks is left out."""
    links = []
    for item in RAIL:
        if item.needs and item.needs not in viewer.may:
            continue
        try:
            href = reverse(item.name)
        except NoReverseMatch:
            continue
        below = item.also if href == "/" else (href, *item.also)
        current = request.path == href or request.path.startswith(below)
        links.append(RailLink(item, href, current))
    return links


# ---- exports -----------------------------------------------------------------------------------


class NameConverter(StringConverter):
    """A name in an address: any segment without a NUL, which no database can be asked for."""

    regex = r"[^/\x00]+"


class DayConverter:
    """A day in an address: ``2026-06-01``."""

    regex = r"[12]\d{3}-\d{2}-\d{2}"

    def to_python(self, value: str) -> date:
        """Return the day; ValueError, and so 404, where there is none like it."""
        return date.fromisoformat(value)

    def to_url(self, value: date) -> str:
        """Return it as it stands in an address."""
        return value.isoformat()


def asked(request: HttpRequest, name: str) -> str:
    """Return a value of the query string, "" where there is none; without NULs."""
    return request.GET.get(name, "").replace("\x00", "")


def wanted_format(request: HttpRequest) -> str:
    """Return ``csv`` or ``json`` where the reader asks for a file, else ""."""
    wanted = request.GET.get("format", "")
    return wanted if wanted in FORMATS else ""


def is_fragment(request: HttpRequest) -> bool:
    """Return whether htmx asks for a part of the page only."""
    details = getattr(request, "htmx", None)
    return bool(details) and not getattr(details, "boosted", False)


def rows_response(
    request: HttpRequest, name: str, columns: Sequence[str], rows: Iterable[Mapping[str, Any]]
) -> HttpResponse:
    """Return all rows as the file that ``?format=`` asks for; columns in the given order."""
    if wanted_format(request) == "json":
        return json_rows(name, columns, rows)
    return csv_rows(name, columns, rows, is_async=isinstance(request, ASGIRequest))


def csv_rows(
    name: str,
    columns: Sequence[str],
    rows: Iterable[Mapping[str, Any]],
    *,
    is_async: bool = False,
) -> HttpResponse:
    """Return rows as CSV: UTF-8, RFC 4180, ISO instants; no cell starts a formula.

    A long file is sent while it is made, and never held whole. ``is_async``: an ASGI server
    asks, which would collect what is not asynchronous.
    """
    chunks = _csv_chunks(columns, rows)
    begin = [next(chunks), *islice(chunks, 1)]
    if len(begin) == 1:
        response = HttpResponse(begin[0], content_type=CSV)
    else:
        parts = chain(begin, chunks)
        sent = one_by_one(parts) if is_async else parts
        # No other kind of body than any middleware takes; views say which kind of answer.
        response = cast("HttpResponse", StreamingHttpResponse(sent, content_type=CSV))
    response["Content-Disposition"] = f'attachment; filename="{name}.csv"'
    return response


def _csv_chunks(columns: Sequence[str], rows: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """Yield the lines of a file, some at a time; at least those above the rows."""
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(columns)
    for number, row in enumerate(rows, 1):
        writer.writerow([_cell(row.get(column)) for column in columns])
        if number % ROWS_AT_ONCE == 0:
            yield text.getvalue()
            text.seek(0)
            text.truncate()
    if text.tell():
        yield text.getvalue()


async def one_by_one(parts: Iterator[str]) -> AsyncIterator[str]:
    """Yield parts as a thread makes them."""
    following = sync_to_async(lambda: next(parts, None))
    while (part := await following()) is not None:
        yield part


class PlainEncoder(DjangoJSONEncoder):
    """Django's JSON, with decimals as plain texts."""

    def default(self, o: Any) -> Any:
        """Return what JSON does not know in types that it knows."""
        return digits(o) if isinstance(o, Decimal) else super().default(o)


def json_rows(
    name: str, columns: Sequence[str], rows: Iterable[Mapping[str, Any]]
) -> HttpResponse:
    """Return rows as a JSON list of objects."""
    answer = [{column: row.get(column) for column in columns} for row in rows]
    text = json.dumps(answer, cls=PlainEncoder, ensure_ascii=False, indent=1)
    response = HttpResponse(text, content_type="application/json")
    response["Content-Disposition"] = f'inline; filename="{name}.json"'
    return response


def _cell(value: Any) -> str | int:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float | Decimal):
        return digits(value)
    if isinstance(value, int):
        return value
    if isinstance(value, datetime | date):
        return value.isoformat()
    text = str(value)
    return f"'{text}" if text.startswith(_FORMULA) else text
