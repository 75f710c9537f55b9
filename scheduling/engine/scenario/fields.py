"""Strict reading of JSON objects: every problem is noted with its path, nothing is ignored."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, TypeVar

E = TypeVar("E", bound=StrEnum)
MOST_INTEGER = 2**63 - 1  # what other schedulers hold in an amount; more is a slip of the pen
MOST_NUMBER = 1e15  # seconds, weights and the like; exact to less than a second
_MISSING: Any = object()


@dataclass(frozen=True, slots=True)
class Problem:
    """What is wrong, and where: ``cluster_queues[0].cohort``."""

    path: str
    message: str

    def __str__(self) -> str:
        return f"{self.path}: {self.message}"


class BadScenario(ValueError):
    """A scenario cannot be run. ``problems`` lists all that is wrong with it."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = tuple(problems)
        super().__init__("; ".join(map(str, self.problems)))


class Fields:
    """One JSON object that is being read. A wrong value is noted and reads as its default.

    What is no object at all is noted once: its fields are not missed one by one.
    """

    def __init__(self, value: Any, path: str, problems: list[Problem]) -> None:
        self.path, self._problems, self._read = path, problems, set[str]()
        self._value: dict[str, Any] = {}
        self._mute = False
        if isinstance(value, dict):
            self._value = value
        else:
            self.problem("must be an object")
            self._mute = True

    def problem(self, message: str, name: str = "") -> None:
        """Note a problem of this object, or of one of its fields."""
        if not self._mute:
            self._problems.append(Problem(self.at(name), message))

    def at(self, name: str) -> str:
        """Return the path of a field."""
        return ".".join(part for part in (self.path, name) if part)

    def has(self, name: str) -> bool:
        """Return whether the field is there and not null."""
        return self._value.get(name) is not None

    def text(self, name: str, default: str | None = _MISSING) -> Any:
        """Return a string."""
        return self._typed(name, str, default, "must be text", "")

    def name(self, name: str, default: str | None = _MISSING) -> Any:
        """Return a text that is not empty: what something is called."""
        if self._value.get(name) == "":
            self.problem("must not be empty", name)
        return self.text(name, default)

    def integer(
        self,
        name: str,
        default: int | None = _MISSING,
        *,
        least: int = 0,
        most: int = MOST_INTEGER,
    ) -> Any:
        """Return a whole number that is at least ``least`` and at most ``most``."""
        value = self._typed(name, int, default, "must be a whole number", least)
        if self.has(name) and isinstance(value, int):
            return self._bounded(name, value, least, most)
        return value

    def number(
        self, name: str, default: float | None = _MISSING, *, least: float = -MOST_NUMBER
    ) -> Any:
        """Return a finite number that is at least ``least``; None only where that is allowed."""
        value = self._typed(name, (int, float), default, "must be a number", 0.0)
        if value is None:
            return None
        if isinstance(value, float) and not math.isfinite(value):
            self.problem("must be finite", name)
            return 0.0
        return float(self._bounded(name, value, least, MOST_NUMBER))

    def _bounded(self, name: str, value: Any, least: float, most: float) -> Any:
        """Return the value, or the bound that it breaks, which is noted."""
        if value < least:
            self.problem(f"must not be below {_shown(least)}", name)
            return least
        if value > most:
            self.problem(f"must not be above {_shown(most)}", name)
            return most
        return value

    def flag(self, name: str, *, default: bool) -> bool:
        """Return true or false."""
        return bool(self._typed(name, bool, default, "must be true or false", default))

    def choice(self, name: str, kind: type[E], default: E) -> E:
        """Return a member of an enumeration."""
        value = self.text(name, default.value)
        if value in set(kind):
            return kind(value)
        self.problem(f"must be one of {', '.join(kind)}", name)
        return default

    def texts(self, name: str) -> tuple[str, ...]:
        """Return a list of strings."""
        value = self._typed(name, list, [], "must be a list", [])
        if all(isinstance(item, str) for item in value):
            return tuple(value)
        self.problem("must be a list of texts", name)
        return ()

    def labels(self, name: str) -> dict[str, str]:
        """Return an object of strings."""
        return {key: str(value) for key, value in self._mapping(name, str, "texts").items()}

    def amounts(self, name: str) -> dict[str, int]:
        """Return an object of whole numbers, none negative."""
        amounts = self._mapping(name, int, "whole numbers")
        for key, value in amounts.items():
            if value < 0:
                self.problem("must not be negative", f"{name}.{key}")
            elif value > MOST_INTEGER:
                self.problem(f"must not be above {MOST_INTEGER}", f"{name}.{key}")
        return {key: max(0, min(value, MOST_INTEGER)) for key, value in amounts.items()}

    def numbers(self, name: str) -> dict[str, float]:
        """Return an object of finite numbers, none negative."""
        found, numbers = self._mapping(name, (int, float), "numbers"), dict[str, float]()
        for key, value in found.items():
            finite = not isinstance(value, float) or math.isfinite(value)
            if not finite or not 0 <= value <= MOST_NUMBER:
                self.problem(f"must be a number from 0 to {MOST_NUMBER:g}", f"{name}.{key}")
            else:
                numbers[key] = float(value)
        return numbers

    def object(self, name: str) -> "Fields":
        """Return a nested object; an empty one if it is not there."""
        value = self._typed(name, dict, {}, "must be an object", {})
        return Fields(value, self.at(name), self._problems)

    def objects(self, name: str) -> list["Fields"]:
        """Return a list of nested objects."""
        value = self._typed(name, list, [], "must be a list", [])
        return [
            Fields(item, f"{self.at(name)}[{i}]", self._problems) for i, item in enumerate(value)
        ]

    def keys(self) -> list[str]:
        """Return the names of an object whose fields are names, and mark them as read."""
        self._read |= self._value.keys()
        return list(self._value)

    def raw(self, name: str) -> Any:
        """Return a field as it stands."""
        self._read.add(name)
        return self._value.get(name)

    def done(self) -> None:
        """Note every field that nobody asked for."""
        for name in self._value:
            if name not in self._read:
                self.problem("unknown field", name)

    def _typed(self, name: str, kind: Any, default: Any, message: str, substitute: Any) -> Any:
        self._read.add(name)
        value = self._value.get(name)
        if value is None:
            if default is _MISSING:
                self.problem("is required", name)
                return substitute
            return default
        wrong_bool = isinstance(value, bool) and kind is not bool
        if wrong_bool or not isinstance(value, kind):
            self.problem(message, name)
            return substitute
        return value

    def _mapping(self, name: str, kind: Any, what: str) -> Mapping[str, Any]:
        value = self._typed(name, dict, {}, "must be an object", {})
        for key, item in value.items():
            if not isinstance(item, kind) or isinstance(item, bool):
                self.problem(f"must be an object of {what}", f"{name}.{key}")
                return {}
        found: Mapping[str, Any] = value
        return found


def _shown(bound: float) -> str:
    return str(bound) if isinstance(bound, int) else f"{bound:g}"
