"""Rows of several tables in one statement: as they stood at one instant, and in one round trip.

Each row travels as an array of JSON beside the number of its query, and gets the types of its
columns again here; the values are equal to those of a ``values_list``.
"""

import json
from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from functools import reduce
from typing import Any, TypeVar
from uuid import UUID

import msgspec
from django.db import models
from django.db.models import F, QuerySet, TextField, Value
from django.db.models.functions import Cast, JSONArray

Row = TypeVar("Row", bound=models.Model)
Decode = Callable[[Any], Any]
_decoder = msgspec.json.Decoder()


def read_together(*asked: QuerySet[Any, Any]) -> list[list[tuple[Any, ...]]]:
    """Return the rows of each ``values_list``, in its order. 1 query.

    They are ordered here, by code points as SQLite does; nothing is ordered backwards.
    """
    names = [(_names(query), _order(query)) for query in asked]
    parts = [
        _numbered(number, query, [*shown, *order])
        for number, (query, (shown, order)) in enumerate(zip(asked, names, strict=True))
    ]
    decoders = [
        [_decode(_field(query, name)) for name in (*shown, *order)]
        for query, (shown, order) in zip(asked, names, strict=True)
    ]
    found: list[list[tuple[Any, ...]]] = [[] for _query in asked]
    for number, line in reduce(lambda one, other: one.union(other, all=True), parts):
        values = zip(decoders[number], _decoder.decode(line), strict=True)
        found[number].append(tuple(v if v is None or to is None else to(v) for to, v in values))
    return [
        _sorted(rows, len(shown)) if order else rows
        for rows, (shown, order) in zip(found, names, strict=True)
    ]


def whole(rows: QuerySet[Any, Any]) -> QuerySet[Any, Any]:
    """Return the question for all columns of a table; :func:`instances` makes its rows of it."""
    columns = [column.attname for column in rows.model._meta.concrete_fields]  # noqa: SLF001
    return rows.values_list(*columns)


def instances(model: type[Row], lines: Sequence[tuple[Any, ...]]) -> list[Row]:
    """Return rows of a model, as reading them alone would."""
    columns = [column.attname for column in model._meta.concrete_fields]  # noqa: SLF001
    return [model.from_db("default", columns, line) for line in lines]


def _numbered(number: int, query: QuerySet[Any, Any], names: Sequence[str]) -> QuerySet[Any, Any]:
    columns = [_column(query, name) for name in names]
    line = Cast(JSONArray(*columns), TextField())
    return query.order_by().values_list(Value(number), line)


def _sorted(rows: list[tuple[Any, ...]], shown: int) -> list[tuple[Any, ...]]:
    """Return rows by what stands behind the columns that were asked for, and without it."""
    rows.sort(key=lambda row: row[shown:])
    return [row[:shown] for row in rows]


def _column(query: QuerySet[Any, Any], name: str) -> Any:
    """Return a column as JSON can hold it without loss."""
    is_text = isinstance(_field(query, name), models.JSONField | models.DecimalField)
    return Cast(name, TextField()) if is_text else F(name)


def _names(query: QuerySet[Any, Any]) -> tuple[str, ...]:
    return tuple(query._fields)  # type: ignore[attr-defined]


def _field(query: QuerySet[Any, Any], name: str) -> Any:
    field = F(name).resolve_expression(query.query.clone()).output_field
    return field.target_field if isinstance(field, models.ForeignKey) else field


def _order(query: QuerySet[Any, Any]) -> tuple[str, ...]:
    usual = query.model._meta.ordering if query.query.default_ordering else ()  # noqa: SLF001
    return tuple(query.query.order_by or usual)


def _decode(field: Any) -> Decode | None:
    """Return what makes a value of a column again; None where JSON has it already."""
    if isinstance(field, models.DecimalField):
        scale = Decimal(1).scaleb(-(field.decimal_places or 0))
        return lambda text: Decimal(text).quantize(scale)
    known: tuple[tuple[Any, Decode], ...] = (
        (models.JSONField, json.loads),
        (models.DateTimeField, _instant),
        (models.DateField, date.fromisoformat),
        (models.UUIDField, UUID),
        (models.BooleanField, bool),
        (models.FloatField, float),
    )
    return next((decode for kind, decode in known if isinstance(field, kind)), None)


def _instant(text: str) -> datetime:
    at = datetime.fromisoformat(text)
    return at.astimezone(UTC) if at.tzinfo else at.replace(tzinfo=UTC)
