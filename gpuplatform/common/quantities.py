"""Kubernetes quantities to integers in canonical units and back. Pure.

Canonical units: ``cpu`` in millicores, every other resource in whole units (memory in bytes).
CPU, memory and storage that do not divide evenly are rounded up, as Kubernetes does
(``admission.md`` 4.4); everything else comes in whole pieces only.
"""

import re
from collections.abc import Iterable
from decimal import ROUND_CEILING, Decimal
from difflib import SequenceMatcher
from fractions import Fraction

INT64_MAX = 2**63 - 1
DIVISIBLE = frozenset({"cpu", "memory", "ephemeral-storage", "storage"})
PAGES = "hugepages-"
SHOWN = 64  # characters of a wrong text that a sentence repeats
_QUANTITY = re.compile(
    r"(?P<number>[+-]?(?:\d+\.?\d*|\.\d+))"
    r"(?:(?P<suffix>[numkMGTPE]|[KMGTPE]i)|[eE](?P<exponent>[+-]?\d{1,3}))?",
    re.ASCII,
)
_SCALES = {
    "n": Decimal("1e-9"),
    "u": Decimal("1e-6"),
    "m": Decimal("1e-3"),
    **{suffix: Decimal(1000) ** power for power, suffix in enumerate("kMGTPE", 1)},
    **{f"{suffix}i": Decimal(1024) ** power for power, suffix in enumerate("KMGTPE", 1)},
}
_BINARY = [(1024**power, f"{suffix}i") for power, suffix in reversed([*enumerate("KMGTPE", 1)])]


class NotWholeError(ValueError):
    """A part of something that only comes whole, such as half a GPU."""


def is_divisible(resource: str) -> bool:
    """Return whether a fraction of ``resource`` means something."""
    return resource in DIVISIBLE or resource.startswith(PAGES)


def parse_quantity(resource: str, text: object) -> int:
    """Return ``text`` (``"512Gi"``, ``"500m"``, ``4``) in canonical units of ``resource``.

    Raises:
        ValueError: not a quantity, negative, or larger than 64 bits can hold.
        NotWholeError: a fraction of what comes in whole pieces.
    """
    shown = str(text)[:SHOWN]
    if isinstance(text, bool) or not isinstance(text, int | float | str):
        raise ValueError(f"{shown!r} is not a quantity")  # noqa: TRY004  # one kind of refusal
    match = _QUANTITY.fullmatch(str(text)) if len(str(text)) <= SHOWN else None
    if match is None:
        raise ValueError(f"{shown!r} is not a quantity")
    value = Decimal(match["number"])
    if match["suffix"]:
        value *= _SCALES[match["suffix"]]
    elif match["exponent"]:
        value = value.scaleb(int(match["exponent"]))
    if resource == "cpu":
        value *= 1000
    if value < 0:
        raise ValueError(f"{shown!r} is negative")
    if value > INT64_MAX:
        raise ValueError(f"{shown!r} is larger than any cluster")
    if value != value.to_integral_value() and not is_divisible(resource):
        raise NotWholeError(f"{shown!r}: {resource[:SHOWN]} only comes in whole pieces")
    return int(value.to_integral_value(ROUND_CEILING))


def parse_factor(text: object) -> Fraction:
    """Return a quantity of either sign exactly: ``"5Ki"``, ``"0.5"``, ``-8``.

    Raises:
        ValueError: not a quantity.
    """
    shown = str(text)[:SHOWN]
    match = _QUANTITY.fullmatch(str(text)) if len(str(text)) <= SHOWN else None
    if match is None or isinstance(text, bool):
        raise ValueError(f"{shown!r} is not a quantity")
    value = Fraction(match["number"])
    if match["suffix"]:
        value *= Fraction(_SCALES[match["suffix"]])
    elif match["exponent"]:
        value *= Fraction(10) ** int(match["exponent"])
    return value


def format_quantity(resource: str, amount: int) -> str:
    """Return a canonical amount the way people write it: ``128``, ``500m``, ``512Gi``."""
    if resource == "cpu":
        return str(amount // 1000) if amount % 1000 == 0 else f"{amount}m"
    if "memory" in resource or "storage" in resource:
        for scale, suffix in _BINARY:
            if amount and amount % scale == 0:
                return f"{amount // scale}{suffix}"
    return str(amount)


def nearest_resource(resource: str, known: Iterable[str]) -> str:
    """Return the known resource that was most likely meant; GPUs where none is known.

    The part behind the domain counts as much as the whole: ``gpu`` is ``nvidia.com/gpu``.
    """

    def likeness(name: str) -> float:
        short = name.rpartition("/")[2]
        return max(SequenceMatcher(None, resource[:317], one).ratio() for one in (name, short))

    return max(sorted(known), key=likeness, default="nvidia.com/gpu")
