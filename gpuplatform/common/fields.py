"""Walk the body of a manifest field by field; say what is wrong, and where, all of it. Pure."""

import re
from collections.abc import Collection, Iterator, Mapping
from decimal import Decimal
from typing import Any

from gpuplatform.common.diagnostics import Diagnostic
from gpuplatform.common.likeness import nearest_name
from gpuplatform.common.quantities import NotWholeError, parse_quantity

# The codes that make a submission unreadable: nothing of it is taken.
UNREADABLE = frozenset(
    ("BAD_TYPE", "REQUIRED", "BAD_QUANTITY", "NEGATIVE", "BAD_VALUE", "OUT_OF_RANGE")
)
INT32_MAX = 2**31 - 1
KINDS: tuple[tuple[type, str], ...] = (
    (bool, "true or false"),
    (int, "a whole number"),
    (float, "a number"),
    (str, "text"),
    (dict, "a mapping"),
    (list, "a list"),
)
MOST_COMPARED = 20  # unknown fields of one mapping for which the nearest name is looked up
KEPT = 64  # characters of a wrong value that an answer repeats
# Python would read full-width digits and underscores, too.
_DECIMAL = re.compile(r"-?[0-9]+(\.[0-9]+)?([eE][-+]?[0-9]{1,3})?", re.ASCII)


class Fields:
    """A mapping with a path. Each reading marks its key as known; :meth:`close` names the rest.

    Wrong values are reported into ``diagnostics`` and read as the default, so that a reader
    goes on and reports everything in one go.
    """

    def __init__(
        self,
        body: Mapping[str, Any],
        subject: str,
        diagnostics: list[Diagnostic],
        path: str = "",
    ) -> None:
        self.body = body
        self.subject = subject
        self.diagnostics = diagnostics
        self.path = path
        self._known: set[str] = set()
        self._children: dict[str, Fields] = {}

    def __contains__(self, key: str) -> bool:
        return self.body.get(key) is not None

    def at(self, key: str = "") -> str:
        """Return the full path of ``key``; dotted keys stand in brackets."""
        if not key:
            return self.path
        step = f"[{key}]" if "." in key or "/" in key else f".{key}"
        return f"{self.path}{step}".removeprefix(".")

    def report(self, code: str, key: str = "", **numbers: str | int) -> None:
        """Report ``code`` at ``key``."""
        self.diagnostics.append(Diagnostic(code, self.subject, self.at(key), numbers))

    # ---- single values -----------------------------------------------------------------------
    def raw(self, key: str) -> Any:
        """Return the value as it stands, or None, and mark the key as known."""
        self._known.add(key)
        return self.body.get(key)

    def text(self, key: str, default: str = "", *, required: bool = False) -> str:
        """Return a string; a number where a string belongs is a wrong type."""
        value = self._of_type(key, str, "text", required)
        return default if value is None else str(value)

    def flag(self, key: str, default: bool = False) -> bool:
        """Return true or false."""
        value = self._of_type(key, bool, "true or false", False)
        return default if value is None else bool(value)

    def integer(
        self,
        key: str,
        default: int | None = None,
        *,
        minimum: int = 0,
        maximum: int = INT32_MAX,
        required: bool = False,
    ) -> int | None:
        """Return a whole number within bounds."""
        value = self._of_type(key, int, "a whole number", required)
        if value is None:
            return default
        if value < 0 <= minimum:
            self.report("NEGATIVE", key, value=str(value)[:KEPT])
        elif not minimum <= value <= maximum:
            self.report("OUT_OF_RANGE", key, value=str(value)[:KEPT], low=minimum, high=maximum)
        else:
            return int(value)
        return default

    def decimal(self, key: str, default: Decimal | None = None) -> Decimal | None:
        """Return a decimal that is not negative; numbers and texts are both read."""
        value = self.raw(key)
        if value is None:
            return default
        number = _decimal(value)
        if number is None:
            self._wrong_type(key, "a decimal number")
            return default
        if number < 0:
            self.report("NEGATIVE", key, value=str(value)[:KEPT])
            return default
        return number

    def choice(self, key: str, allowed: Collection[str], default: str) -> str:
        """Return one of ``allowed``."""
        value = self.text(key, default)
        if value in allowed:
            return value
        self.report("BAD_VALUE", key, value=value[:KEPT], allowed=", ".join(sorted(allowed)))
        return default

    def quantity(self, key: str, resource: str, *, required: bool = False) -> int | None:
        """Return an amount in canonical units of ``resource``."""
        value = self.raw(key)
        if value is None:
            if required:
                self.report("REQUIRED", key)
            return None
        try:
            return parse_quantity(resource, value)
        except NotWholeError:
            numbers = {"cause": "NotWhole", "resource": resource[:KEPT]}
            self.report("BAD_QUANTITY", key, value=str(value)[:KEPT], **numbers)
            return None
        except ValueError:
            negative = str(value).strip().startswith("-")
            code = "NEGATIVE" if negative else "BAD_QUANTITY"
            self.report(code, key, value=str(value)[:KEPT])
            return None

    # ---- mappings and lists --------------------------------------------------------------------
    def quantities(self, key: str) -> dict[str, int]:
        """Return a resource list: resource to amount in canonical units; null is no amount."""
        rows = self.child(key)
        for resource, value in rows.body.items():
            if value is None:  # an empty line of a manifest would become none in silence
                rows.report("BAD_QUANTITY", resource, value="null")
        found = {resource: rows.quantity(resource, resource) for resource in rows.body}
        return {resource: amount for resource, amount in found.items() if amount is not None}

    def labels(self, key: str) -> dict[str, str]:
        """Return a mapping of text to text."""
        rows = self.child(key)
        return {name: rows.text(name) for name in rows.body}

    def texts(self, key: str) -> list[str]:
        """Return a list of texts."""
        found = self._of_type(key, list, "a list", False) or []
        for position, value in enumerate(found):
            if not isinstance(value, str):
                self.report(
                    "BAD_TYPE", f"{key}[{position}]", expected="text", found=type_of(value)
                )
        return [value for value in found if isinstance(value, str)]

    def child(self, key: str, *, required: bool = False) -> "Fields":
        """Return a nested mapping; an empty one where it is absent or wrong."""
        if key not in self._children:
            value = self._of_type(key, dict, "a mapping", required)
            self._children[key] = Fields(value or {}, self.subject, self.diagnostics, self.at(key))
        return self._children[key]

    def children(self, key: str, *, required: bool = False) -> list["Fields"]:
        """Return a list of mappings, each with its path (``spec.levels[2]``)."""
        rows = self._of_type(key, list, "a list", required) or []
        return list(self._rows(key, rows))

    def _rows(self, key: str, rows: list[Any]) -> Iterator["Fields"]:
        for position, row in enumerate(rows):
            path = f"{self.at(key)}[{position}]"
            if isinstance(row, dict):
                yield self._keep(f"{key}[{position}]", row, path)
            else:
                numbers = {"expected": "a mapping", "found": type_of(row)}
                self.diagnostics.append(Diagnostic("BAD_TYPE", self.subject, path, numbers))

    def _keep(self, name: str, row: dict[str, Any], path: str) -> "Fields":
        """Return the same child for the same row, so that what was read stays known."""
        if name not in self._children:
            self._children[name] = Fields(row, self.subject, self.diagnostics, path)
        return self._children[name]

    # ---- what is left --------------------------------------------------------------------------
    def accept(self, *keys: str) -> None:
        """Mark keys as known that need no reading (they change nothing that we decide)."""
        self._known.update(keys)

    def not_honoured(self, *keys: str) -> None:
        """Warn about keys that would change what happens and that we do not follow."""
        for key in keys:
            if self.raw(key) not in (None, {}, [], "", False):
                self.report("FIELD_NOT_HONOURED", key, field=key)

    def close(self) -> None:
        """Warn about every field that nobody read, with the nearest one that would be read."""
        wanted = self._known - set(self.body)
        for number, key in enumerate(self.unread()):
            near = nearest_name(key[:KEPT], wanted) if number < MOST_COMPARED else ""
            self.report(
                "UNKNOWN_FIELD", key, field=key[:KEPT], **({"nearest": near} if near else {})
            )

    def unread(self) -> list[str]:
        """Return the keys that nobody read, in the order of the document."""
        return [key for key in self.body if key not in self._known]

    def _of_type(self, key: str, kind: type, name: str, required: bool) -> Any:
        value = self.raw(key)
        if value is None:
            if required:
                self.report("REQUIRED", key)
            return None
        if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
            self._wrong_type(key, name)
            return None
        return value

    def _wrong_type(self, key: str, expected: str) -> None:
        self.report("BAD_TYPE", key, expected=expected, found=type_of(self.body.get(key)))


def _decimal(value: Any) -> Decimal | None:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    text = str(value)
    if len(text) > KEPT or not _DECIMAL.fullmatch(text):
        return None
    return Decimal(text)


def type_of(value: Any) -> str:
    """Return what a wrong value is, in the words of people."""
    for kind, name in KINDS:
        if isinstance(value, kind):
            return name
    return "null"
