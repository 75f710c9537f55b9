"""Shapes of answers in the REST schema that no serializer writes."""

import types
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from decimal import Decimal
from typing import Any, Union, get_args, get_origin, get_type_hints

ROW: dict[str, Any] = {"type": "object", "additionalProperties": {}}  # of whatever fields
ROW_OR_NONE: dict[str, Any] = ROW | {"type": ["object", "null"]}
ROWS: dict[str, Any] = {"type": "array", "items": ROW}


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
        "type": "object",
        "required": ["code", "severity", "detail"],
        "properties": {
            **{name: {"type": "string"} for name in ("code", "severity", "subject", "path")},
            **{name: {"type": "string"} for name in ("detail", "next_step")},
            "numbers": ROW,
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
