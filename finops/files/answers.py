"""Which file somebody asks for, and the answer: found, named, streamed, noted in the audit."""

from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from urllib.parse import quote

from asgiref.sync import sync_to_async
from django.core.handlers.asgi import ASGIRequest
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.utils.translation import gettext as _

from finops import services
from finops.exports import PROFILES, bill_rows, csv_lines
from finops.files.bundle import Named, archive, manifest
from finops.files.focus import VERSIONS, focus_lines
from finops.files.printing import bill_pdf, can_print
from finops.files.workbook import write_workbook
from finops.selectors.bill_files import bill_heads, lines_of
from finops.selectors.bills import BillView, bill_month
from gpuplatform.common.problems import Problem, Rejected
from queues.access import Actor

STREAMED = 50_000  # lines from which on a file is sent as it is made
PIECE = 1_000  # lines sent at a time
NO_BILL = "none"
CSV = "text/csv; charset=utf-8; header=present"
XLSX = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"


@dataclass(frozen=True, slots=True)
class Asked:
    """Whose bills of which month as which file; ``scope`` "" is all that the actor sees."""

    month: str
    scope: str
    kind: str
    profile: str


@dataclass(frozen=True, slots=True)
class Found:
    """The bills that were asked for, how many lines they have, and what they are called."""

    heads: list[BillView]
    count: int
    named: Named


def wanted_file(request: HttpRequest) -> str:
    """Return which file the reader asks for, else ""."""
    kind = request.GET.get("format", "")
    return kind if kind in KINDS else ""


def file_answer(request: HttpRequest, actor: Actor, asked: Asked) -> HttpResponseBase:
    """Return the file that is asked for; who took it home is noted.

    Raises:
        Http404: no such bill to see, an unknown kind.
        Rejected: a profile that the kind does not have; a PDF where the extra is not installed, or
            of more than one bill.
    """
    if asked.kind not in KINDS:
        raise Http404
    heads, count = bill_heads(actor, asked.month, asked.scope)
    if not heads and (asked.scope or bill_month(actor, asked.month) is None):
        raise Http404
    _check_profile(asked)
    status = heads[0].status if heads else NO_BILL
    scope = asked.scope or ("all" if actor.may_see_bills else "own")
    found = Found(heads, count, Named(asked.month, scope, status))
    answer = KINDS[asked.kind](request, asked, found)
    team = heads[0].team.name if asked.scope and heads[0].team else ""
    services.record_download(actor.user, f"{asked.month} {scope} {asked.kind}", team)
    answer["X-Content-Type-Options"] = "nosniff"
    return answer


def _check_profile(asked: Asked) -> None:
    known = SHAPES.get(asked.kind, ())
    if not asked.profile or asked.profile in known:
        return
    if known:
        sentence = _("There is no such profile of this file; known are {known}.")
    else:
        sentence = _("A file of this kind has no profiles.")
    said = sentence.format(known=", ".join(known))
    raise Rejected([Problem("profile", "UNKNOWN_PROFILE", said)])


# ---- one function for each kind ----------------------------------------------------------------
def _csv(request: HttpRequest, asked: Asked, found: Found) -> HttpResponseBase:
    profile = asked.profile or SHAPES["csv"][0]
    pieces = csv_lines(bill_rows(lines_of(found.heads)), profile)
    return _lines(request, found, pieces, found.named.of("csv", profile))


def _focus(request: HttpRequest, asked: Asked, found: Found) -> HttpResponseBase:
    version = asked.profile or SHAPES["focus"][0]
    pieces = focus_lines(lines_of(found.heads), version)
    return _lines(request, found, pieces, found.named.of("csv", f"focus-{version}"))


def _xlsx(_request: HttpRequest, _asked: Asked, found: Found) -> HttpResponseBase:
    made_at = found.heads[0].period.rebuilt_at if found.heads else None
    body = write_workbook(bill_rows(lines_of(found.heads)), made_at)
    return _download(body, XLSX, found.named.of("xlsx"))


def _manifest(_request: HttpRequest, _asked: Asked, found: Found) -> HttpResponseBase:
    return JsonResponse(manifest(found.named, found.heads))


def _zip(_request: HttpRequest, _asked: Asked, found: Found) -> HttpResponseBase:
    body = archive(found.named, found.heads)
    return _download(body, "application/zip", found.named.of("zip"))


def _pdf(_request: HttpRequest, _asked: Asked, found: Found) -> HttpResponseBase:
    if len(found.heads) != 1:
        sentence = _("A PDF is of one bill.")
        raise Rejected([Problem("format", "PDF_OF_ONE_BILL", sentence)])
    if not can_print():
        sentence = _("This installation makes no PDF: its extra pdf is not installed.")
        raise Rejected([Problem("format", "PDF_NOT_INSTALLED", sentence)])
    lines = [line for _view, line in lines_of(found.heads)]
    body = bill_pdf(found.heads[0], lines)
    return _download(body, "application/pdf", found.named.of("pdf"))


KINDS: Mapping[str, Callable[[HttpRequest, Asked, Found], HttpResponseBase]] = {
    "csv": _csv,
    "focus": _focus,
    "xlsx": _xlsx,
    "manifest": _manifest,
    "zip": _zip,
    "pdf": _pdf,
}

# The words of ``profile``, by kind; the first is meant where none is given.
SHAPES: Mapping[str, tuple[str, ...]] = {"csv": tuple(PROFILES), "focus": tuple(VERSIONS)}


# ---- sending -----------------------------------------------------------------------------------
def _lines(
    request: HttpRequest, found: Found, lines: Iterator[bytes], name: str
) -> HttpResponseBase:
    if found.count < STREAMED:
        return _download(b"".join(lines), CSV, name)
    pieces = _pieces(lines)
    body: Iterable[bytes] | AsyncIterator[bytes] = pieces
    if isinstance(request, ASGIRequest):
        body = _one_by_one(pieces)
    answer = StreamingHttpResponse(body, content_type=CSV)
    answer["Content-Disposition"] = _disposition(name)
    return answer


def _pieces(lines: Iterator[bytes]) -> Iterator[bytes]:
    while piece := b"".join(islice(lines, PIECE)):
        yield piece


async def _one_by_one(pieces: Iterator[bytes]) -> AsyncIterator[bytes]:
    """Read the database in its own thread, a piece at a time, while the last one is sent."""
    following = sync_to_async(lambda: next(pieces, b""))
    while piece := await following():
        yield piece


def _download(body: bytes, content_type: str, name: str) -> HttpResponse:
    answer = HttpResponse(body, content_type=content_type)
    answer["Content-Disposition"] = _disposition(name)
    return answer


def _disposition(name: str) -> str:
    return f"attachment; filename=\"{name}\"; filename*=UTF-8''{quote(name)}"
