"""Shapes of answers in the REST schema that no serializer writes."""

import types
from collections.abc import Iterable, Mapping
from dataclasses import fields, is_dataclass
from decimal import Decimal
from typing import Any, Union, get_args, get_origin, get_type_hints

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

Shape = dict[str, Any]
TEXT: Shape = {"type": "string"}
TRUTH: Shape = {"type": "boolean"}
WHOLE: Shape = {"type": "integer"}
COUNT: Shape = {"type": "integer", "minimum": 0}
FLOAT: Shape = {"type": "number"}
UID: Shape = {"type": "string", "format": "uuid"}
DAY: Shape = {"type": "string", "format": "date"}
INSTANT: Shape = {"type": "string", "format": "date-time"}
MONTH: Shape = {"type": "string", "pattern": r"^\d{4}-(0[1-9]|1[0-2])$"}
SHA256: Shape = {"type": "string", "pattern": "^([0-9a-f]{64})?$"}
CURRENCY: Shape = {"type": "string", "description": "ISO 4217."}
# Numbers that must not lose a digit are texts with a decimal point and without an exponent.
DECIMAL: Shape = {"type": "string", "format": "decimal", "pattern": r"^-?\d+(\.\d+)?$"}
MONEY: Shape = DECIMAL | {"description": "An amount in the currency that is told beside it."}
GPU_HOURS: Shape = DECIMAL | {"description": "GPU-hours."}
FACT: Shape = {"type": ["string", "number", "boolean", "null"]}
NUMBERS_TOLD: Shape = {
    "type": "object",
    "description": "The numbers and names of the sentence, by the names that its code gives them.",
    "additionalProperties": {
        "anyOf": [
            FACT,
            {"type": "array", "items": FACT},
            {"type": "object", "additionalProperties": FACT},
        ]
    },
}


def record(
    name: str, properties: Mapping[str, Shape], optional: Mapping[str, Shape] = {}
) -> Shape:
    """Return the shape of an object; ``name`` is what made clients call it.

    Args:
        name: of the class that a generator makes of it; "" for a part of another.
        properties: fields that are always there.
        optional: fields that may be left out.
    """
    title = {"title": name} if name else {}
    return {
        **title,
        "type": "object",
        "required": list(properties),
        "properties": {**properties, **optional},
    }


def rows_of(row: Shape) -> Shape:
    """Return the shape of a list."""
    return {"type": "array", "items": row}


def values_of(value: Shape, words: str = "") -> Shape:
    """Return the shape of an object with names that nobody knows before, and like values."""
    return said({"type": "object", "additionalProperties": value}, words)


def or_none(shape: Shape) -> Shape:
    """Return the same shape or null."""
    more = {"enum": [*shape["enum"], None]} if "enum" in shape else {}
    return shape | {"type": [shape["type"], "null"]} | more


def choice(values: Iterable[str], words: str = "") -> Shape:
    """Return the shape of one of these words, each once."""
    return said({"type": "string", "enum": list(dict.fromkeys(values))}, words)


def said(shape: Shape, words: str) -> Shape:
    """Return the same shape with a description, such as a unit."""
    return shape | {"description": words} if words else shape


def told(shape: Shape, **options: Any) -> serializers.Field[Any, Any, Any, Any]:
    """Return the field of a serializer that answers JSON of this shape as it is kept."""
    kind = type("ToldField", (serializers.JSONField,), {})
    field: serializers.Field[Any, Any, Any, Any] = extend_schema_field(shape)(kind)(
        **(options or {"read_only": True})
    )
    return field


def results_of(row: dict[str, Any]) -> dict[str, Any]:
    """Return the shape of an answer that holds all rows."""
    rows = {"type": "array", "items": row}
    return {"type": "object", "required": ["results"], "properties": {"results": rows}}


def page_of(row: dict[str, Any]) -> dict[str, Any]:
    """Return the shape of a page of rows; ``count`` is there where it is asked for."""
    link = {"type": ["string", "null"], "description": "Address of the page beside this one."}
    return {
        "type": "object",
        "required": ["next", "previous", "results"],
        "properties": {
            "next": link,
            "previous": link,
            "results": {"type": "array", "items": row},
            "count": {"type": "integer", "minimum": 0},
        },
    }


NUMBERS = {bool: "boolean", int: "integer", float: "number"}
FINDINGS: dict[str, Any] = {
    "type": "array",
    "items": {
        "title": "Diagnostic",
        "type": "object",
        "required": ["code", "severity", "detail"],
        "properties": {
            **{name: {"type": "string"} for name in ("code", "severity", "subject", "path")},
            **{name: {"type": "string"} for name in ("detail", "next_step")},
            "numbers": NUMBERS_TOLD,
        },
    },
}


def shape_of(spec: type, texts: tuple[str, ...] = (), **more: Any) -> dict[str, Any]:
    """Return the shape of a spec as REST answers it: decimals are texts, tuples are lists.

    Args:
        spec: a dataclass.
        texts: fields of numbers that are answered as texts.
        more: fields that are answered beside those of the spec.
    """
    hints = get_type_hints(spec)
    known = {one.name: _shape(hints[one.name], texts, one.name) for one in fields(spec)}
    return {"type": "object", "required": [*known, *more], "properties": {**known, **more}}


def some_of(shape: dict[str, Any], **more: Any) -> dict[str, Any]:
    """Return the same where a part of the fields may be left out, with others beside them."""
    properties = {**shape["properties"], **more}
    return {key: value for key, value in shape.items() if key != "required"} | {
        "properties": properties
    }


def _shape(hint: Any, texts: tuple[str, ...], name: str = "") -> dict[str, Any]:
    parts, origin = get_args(hint), get_origin(hint)
    if origin in (Union, types.UnionType):
        (kind,) = (one for one in parts if one is not type(None))
        found = _shape(kind, texts, name)
        return found | {"type": [found["type"], "null"]}
    if origin is tuple:
        return {"type": "array", "items": _shape(parts[0], texts)}
    if origin is Mapping or hint is Mapping:
        values = {"type": "string"} if parts[1:] == (str,) else {}
        return {"type": "object", "additionalProperties": values}
    if is_dataclass(hint) and isinstance(hint, type):
        return shape_of(hint, texts)
    kind = "string" if name in texts or hint in (str, Decimal) else NUMBERS.get(hint, "string")
    return {"type": kind}
