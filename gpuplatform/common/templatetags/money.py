"""Money and GPU-hours the way people read them, by the page's language.

A minus is a true minus; what was not measured is ``-``, never a zero.
"""

from decimal import Decimal

from babel.numbers import format_currency, format_decimal
from django import template

from gpuplatform.common.locales import page_locale

register = template.Library()

UNKNOWN = "-"
MINUS = "\N{MINUS SIGN}"


@register.filter
def money(amount: Decimal | None) -> str:
    """Return an amount with two decimals and no currency: ``1,512.00``."""
    return _decimal(amount, "#,##0.00")


@register.filter
def signed_money(amount: Decimal | None) -> str:
    """Return a difference with its sign: ``+956.57``; one of nothing is ``0.00``."""
    return f"+{money(amount)}" if amount is not None and amount > 0 else money(amount)


@register.filter
def unit_price(amount: Decimal | None) -> str:
    """Return a price per unit with two to eight decimals: ``1.40``, ``1.4024``."""
    return _decimal(amount, "#,##0.00######")


@register.filter
def gpu_hours(hours: Decimal | None) -> str:
    """Return GPU-hours with one decimal: ``1,080.0``."""
    return _decimal(hours, "#,##0.0")


@register.filter
def all_hours(hours: Decimal) -> str:
    """Return hours with every digit that was billed, for a reader who reckons after: ``0.58``."""
    return _decimal(hours, "#,##0.0#####")


@register.filter
def whole_number(number: int | None) -> str:
    """Return a count with thousands apart, like ``380,000,000``."""
    return "-" if number is None else _decimal(Decimal(number), "#,##0")


@register.filter
def percent(ratio: Decimal | None) -> str:
    """Return a ratio as whole percent: ``0.61`` is ``61 %``."""
    if ratio is None:
        return UNKNOWN
    whole = (ratio * 100).quantize(Decimal(1)) + 0  # a share of almost nothing is no minus zero
    return f"{_decimal(whole, '#,##0')} %"


@register.filter
def with_currency(amount: Decimal | None, currency: str = "EUR") -> str:
    """Return an amount with its currency, two decimals: ``€2,468.57``."""
    if amount is None:
        return UNKNOWN
    text = format_currency(_exact(amount), currency, locale=page_locale())
    return text.replace("-", MINUS)


@register.filter
def whole_currency(amount: Decimal | None, currency: str = "EUR") -> str:
    """Return an amount in whole units of its currency, for tiles: ``€4,032``."""
    if amount is None:
        return UNKNOWN
    locale = page_locale()
    whole = locale.currency_formats["standard"].pattern.replace(".00", "")
    text = format_currency(_exact(amount), currency, whole, locale=locale, currency_digits=False)
    return text.replace("-", MINUS)


def _decimal(amount: Decimal | None, pattern: str) -> str:
    if amount is None:
        return UNKNOWN
    return format_decimal(_exact(amount), pattern, locale=page_locale()).replace("-", MINUS)


def _exact(amount: Decimal | int) -> Decimal:
    return Decimal(amount)
