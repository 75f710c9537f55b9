"""Values of columns as a database takes them: in a COPY, in an array, or one by one.

A value that comes again in a column is worded once.
"""

import re
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any, TypeVar
from uuid import UUID

import msgspec
from django.db import connection, models
from django.utils.timezone import make_naive

T = TypeVar("T")
_PLAIN = (models.CharField, models.TextField, models.IntegerField)  # values as they are
_EMPTY: dict[type, str] = {dict: "{}", list: "[]"}
_COPIED = str.maketrans({"\\": "\\\\", "\t": "\\t", "\n": "\\n", "\r": "\\r"})
_SPECIAL = re.compile(r"[\\\t\n\r]")
_encoder = msgspec.json.Encoder()  # the library's own takes ten times as long


def as_json(value: Any) -> str | None:
    """Return a value as JSON; most are empty."""
    if value is None:
        return None
    empty = None if value else _EMPTY.get(type(value))
    return empty or _encoder.encode(value).decode()


def adapted(field: Any, value: Any) -> Any:
    """Return a value as the framework hands it to its database."""
    return field.get_db_prep_save(value, connection)


def copied_cells(field: Any, cells: Sequence[Any]) -> list[str]:
    """Return the values of a column as COPY reads them."""
    return _texts(cells, _copied, is_json=isinstance(field, models.JSONField))


def adapted_cells(field: Any, cells: Sequence[Any]) -> list[Any]:
    """Return the values of a column as other databases take them."""
    if isinstance(field, _PLAIN) and set(map(type, cells)) <= {str, int}:
        return list(cells)
    if isinstance(field, models.DateTimeField) and set(map(type, cells)) == {datetime}:
        return [
            str(make_naive(cell, connection.timezone)) for cell in cells
        ]  # as the framework does in the end
    is_json = isinstance(field, models.JSONField)
    return _each_once(cells, lambda cell: adapted(field, cell), by_identity=is_json)


def element_cells(cells: Sequence[Any], *, is_json: bool) -> list[str]:
    """Return the values of a column as the elements of an array's text."""
    return _texts(cells, _element, is_json=is_json)


def _texts(cells: Sequence[Any], text: Callable[[Any], str], *, is_json: bool) -> list[str]:
    """Return the values of a column as texts; each that comes again is worded once."""
    if is_json:
        return _each_once(cells, lambda cell: text(as_json(cell)), by_identity=True)
    kinds = set(map(type, cells))
    if kinds == {UUID}:  # keys, which hardly ever come again
        return [cell.hex for cell in cells]
    if kinds == {int}:
        return list(map(str, cells))
    return _each_once(cells, text)


def _each_once(
    cells: Sequence[Any], turn: Callable[[Any], T], *, by_identity: bool = False
) -> list[T]:
    """Return what becomes of each value; one that comes again is turned once."""
    if by_identity:  # of objects that are alive, so that no number comes twice
        known: dict[Any, T] = {}
        for cell in cells:
            if id(cell) not in known:
                known[id(cell)] = turn(cell)
        return [known[id(cell)] for cell in cells]
    known = {cell: turn(cell) for cell in set(cells)}
    return [known[cell] for cell in cells]


def _copied(value: Any) -> str:
    if value is None:
        return "\\N"
    text = str(value)
    return text.translate(_COPIED) if _SPECIAL.search(text) else text


def _element(value: Any) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, int):  # true and false are numbers to Python alone
        return str(value).lower()
    text = str(value).replace("\\", "\\\\").replace('"', '\\"')
    return f'"{text}"'
