"""JSON texts of facts and scenarios, in and out, without a float on the way."""

import json
from collections.abc import Callable, Iterator
from typing import Any

from finops.allocation.fields import LONGEST_NUMBER

Members = Callable[[list[tuple[str, Any]]], dict[str, Any]]


class Inexact:
    """A JSON number with a fraction, an exponent or no end of digits: nothing reads it."""

    def __repr__(self) -> str:
        return "an inexact number"


def parse(text: str | bytes, members: Members = dict) -> Any:
    """Return what a JSON text says; ValueError or RecursionError where it says nothing.

    ``members`` makes an object of its members, and may refuse them with a ValueError.
    """
    return json.loads(
        text,
        parse_float=_refuse,
        parse_int=_whole_number,
        parse_constant=_refuse,
        object_pairs_hook=members,
    )


def text_of(value: object) -> str:
    """Return JSON, one line for each thing, the same bytes for the same value."""
    return json.dumps(value, indent=1) + "\n"


def differences(expected: object, found: object, path: str = "") -> Iterator[str]:
    """Yield what differs as "path: expected ..., found ..."; lists in their order."""
    if isinstance(expected, dict) and isinstance(found, dict):
        for name in sorted(expected.keys() | found.keys()):
            step = f"{path}.{name}" if path else name
            if name in expected and name in found:
                yield from differences(expected[name], found[name], step)
            else:
                yield _difference(step, expected.get(name, _NOTHING), found.get(name, _NOTHING))
    elif isinstance(expected, list) and isinstance(found, list):
        for i in range(max(len(expected), len(found))):
            one, other = (side[i] if i < len(side) else _NOTHING for side in (expected, found))
            yield from differences(one, other, f"{path}[{i}]")
    elif expected != found or type(expected) is not type(found):
        yield _difference(path, expected, found)


_NOTHING = Inexact()


def _difference(path: str, expected: object, found: object) -> str:
    sides = (
        "nothing" if side is _NOTHING else json.dumps(side, default=repr)
        for side in (expected, found)
    )
    return "{}: expected {}, found {}".format(path, *sides)


def _refuse(_text: str) -> Inexact:
    return Inexact()


def _whole_number(text: str) -> int | Inexact:
    return int(text) if len(text) <= LONGEST_NUMBER else Inexact()
