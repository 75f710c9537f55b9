"""A bill as PDF, where the extra ``pdf`` is installed; the same template prints in a browser."""

from functools import cache
from importlib import import_module

from django.template.loader import render_to_string

from finops import exports, words
from finops.models import BillLine
from finops.selectors.bills import BillView

LIBRARY = "weasyprint"


@cache
def can_print() -> bool:
    """Return whether bills can be made as PDF here: the extra and its Pango are installed."""
    try:
        import_module(LIBRARY)
    except (ImportError, OSError):
        return False
    return True


def bill_html(view: BillView, lines: list[BillLine]) -> str:
    """Return a bill as a page that needs nothing beside it."""
    context = {
        "view": view,
        "lines": [(line, exports.describe(line)) for line in lines],
        "rule": words.SHARE_RULES[view.period.idle_policy],
        "unit_names": words.LINE_UNITS,
    }
    return render_to_string("finops/bill_print.html", context)


def bill_pdf(view: BillView, lines: list[BillLine]) -> bytes:
    """Return a bill as PDF; nothing is fetched from anywhere.

    Raises:
        ModuleNotFoundError: the extra is not installed.
    """
    library = import_module(LIBRARY)
    made: bytes = library.HTML(string=bill_html(view, lines), url_fetcher=_nothing).write_pdf()
    return made


def _nothing(url: str) -> dict[str, bytes]:
    raise ValueError(f"a bill refers to nothing outside it: {url[:80]}")
