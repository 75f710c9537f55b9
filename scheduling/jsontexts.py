"""JSON columns read as texts: equal texts become one object, and equal values one text."""

import json
from functools import lru_cache
from typing import Any


@lru_cache(maxsize=20_000)
def read_json(text: str) -> Any:
    """Return what a text of a row says; equal texts give one object, which nobody may change."""
    return json.loads(text)


@lru_cache(maxsize=20_000)
def canonical(text: str) -> str:
    """Return JSON as this process would write it, whatever its database made of the blanks."""
    return as_text(json.loads(text))


def as_text(value: Any) -> str:
    """Return a value as JSON with its keys in order: equal values give equal texts."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"))
