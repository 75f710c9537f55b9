"""Numbers and days as the language of the page writes them."""

from datetime import datetime

from babel.core import Locale, UnknownLocaleError
from babel.dates import format_datetime
from django.utils.translation import get_language, to_locale

# A day without its year; babel's own short forms have one.
DAYS = {"de": "d. MMM"}
DAY = "d MMM"


def page_locale() -> Locale:
    """Return the locale of the language that is spoken now; English where there is none."""
    try:
        return Locale.parse(to_locale(get_language() or "en"))
    except (UnknownLocaleError, ValueError):
        return Locale("en")


def by_locale(number: str) -> str:
    """Return a number that is written in English, ``1,234.5``, as the page writes it."""
    locale = page_locale()
    if locale.language == "en":
        return number
    symbols = locale.number_symbols["latn"]
    swapped = {",": symbols["group"], ".": symbols["decimal"]}
    return "".join(swapped.get(character, character) for character in number)


def day_and_time(at: datetime, *, with_year: bool) -> str:
    """Return an instant in its own zone: ``14 Jul 14:03``, ``14. Juli 2025 14:03``."""
    locale = page_locale()
    day = DAYS.get(locale.language, DAY)
    return format_datetime(at, f"{day} yyyy HH:mm" if with_year else f"{day} HH:mm", locale=locale)
