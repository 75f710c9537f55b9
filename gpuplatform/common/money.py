"""Amounts of money as plain text and back; how people read them stands in a template tag. Pure."""

import re
from decimal import ROUND_HALF_UP, Decimal, InvalidOperation

CENT = Decimal("0.01")
_PLAIN = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d{1,2})?", re.ASCII)


def parse_decimal(text: object) -> Decimal:
    """Return a finite Decimal from a number or a text with a decimal point.

    A float is read by its shortest spelling (``1.4e-06``), so that no binary noise gets in.

    Raises:
        ValueError: not a number, or too long to be meant.
    """
    plain = str(text).strip()
    if isinstance(text, bool) or len(plain) > 40 or not _PLAIN.fullmatch(plain):  # noqa: PLR2004
        raise ValueError(f"{plain[:40]!r} is not a number")
    try:
        return Decimal(plain)
    except InvalidOperation as error:
        raise ValueError(f"{plain[:40]!r} is not a number") from error


def is_plain(text: str) -> bool:
    """Return whether a text is a number as everybody writes it, with a decimal point."""
    return bool(_PLAIN.fullmatch(text.strip()))


def rounded(amount: Decimal, places: int = 2) -> Decimal:
    """Return one value with ``places`` decimals, halves away from zero (finops.md 4.8).

    For a single value on a page; parts of a sum are split by ``finops.allocation.apportion``.
    """
    return amount.quantize(Decimal(1).scaleb(-places), ROUND_HALF_UP)


def digits(number: Decimal | float) -> str:
    """Return a number for CSV and JSON: all its places, a decimal point, never an exponent."""
    return f"{number if isinstance(number, Decimal) else Decimal(repr(float(number))):f}"


def plain(amount: Decimal, least: int = 2, most: int = 8) -> str:
    """Return the amount with a decimal point and no zeros beyond ``least`` places."""
    text = f"{rounded(amount, most):f}"
    whole, _, fraction = text.partition(".")
    fraction = fraction.rstrip("0").ljust(least, "0")
    return f"{whole}.{fraction}" if fraction else whole
