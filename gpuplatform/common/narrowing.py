"""What the address of a list narrows it to, on pages and in their files.

A filter or a value that is not known must not answer with all rows: somebody would take them for
what was asked. A page then says what it did not understand and shows nothing; a file is refused.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from http import HTTPStatus

from django.http import HttpRequest, HttpResponse
from django.utils.translation import gettext

from gpuplatform.common.pages import asked, wanted_format
from gpuplatform.common.problems import Problem, Rejected

ALWAYS = ("page", "format", "sort")
MOST_SHOWN = 40  # letters of what was not understood


@dataclass(frozen=True, slots=True)
class Narrowing:
    """The value of each filter, "" for none; ``told``: what was not understood, or ""."""

    wanted: Mapping[str, str]
    told: str = ""

    @property
    def is_set(self) -> bool:
        """Return whether the list is narrowed by anything."""
        return bool(self.told) or any(self.wanted.values())


def narrowing(
    request: HttpRequest,
    names: Iterable[str],
    *,
    aliases: Mapping[str, str] | None = None,
    choices: Mapping[str, Collection[str]] | None = None,
) -> Narrowing:
    """Read the filters ``names`` from the address.

    Args:
        request: of the page.
        names: the filters of the page.
        aliases: the names that REST has for them.
        choices: which values a filter knows, where not any text will do.
    """
    same, known = dict(aliases or {}), list(names)
    wanted = {name: asked(request, name) for name in known}
    for other, name in same.items():
        wanted[name] = wanted[name] or asked(request, other)
    for name in request.GET:
        if name not in (*known, *same, *ALWAYS):
            return Narrowing(wanted, unknown_filter(name, known))
    for name, values in (choices or {}).items():
        if wanted[name] and wanted[name] not in values:
            return Narrowing(wanted, unknown_value(name, wanted[name], values))
    return Narrowing(wanted)


def unknown_filter(name: str, known: Iterable[str]) -> str:
    """Say that the list has no such filter, and which it has."""
    words = gettext("There is no filter %(name)s here; known are %(known)s.")
    return words % {"name": name[:MOST_SHOWN], "known": ", ".join(sorted(known))}


def unknown_value(name: str, value: str, known: Iterable[str]) -> str:
    """Say that a filter has no such value, and which it has."""
    words = gettext("The filter %(name)s knows no %(value)s; known are %(known)s.")
    shown = {"name": name, "value": value[:MOST_SHOWN]}
    return words % {**shown, "known": ", ".join(sorted(known)) or gettext("none")}


def refuse_untold(asks: Narrowing) -> None:
    """Refuse a page as a whole, where it says what is wrong beside what was asked.

    Raises:
        Rejected: something was not understood.
    """
    if asks.told:
        raise Rejected([Problem("filter", "BAD_VALUE", asks.told)])


def refused(request: HttpRequest, told: str) -> HttpResponse | None:
    """Return the refusal of a file whose filter was not understood; None where none is asked."""
    if not (told and wanted_format(request)):
        return None
    plain = "text/plain; charset=utf-8"
    return HttpResponse(f"{told}\n", status=HTTPStatus.BAD_REQUEST, content_type=plain)
