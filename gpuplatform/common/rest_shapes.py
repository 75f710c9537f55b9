"""Shapes of answers in the REST schema that no serializer writes."""

from typing import Any

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
