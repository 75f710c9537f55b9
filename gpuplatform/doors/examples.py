"""Examples of REST: for each operation a request that was made and the answer that it got.

They are recorded from the running product (``tests/matrix/test_examples.py``) and shown by the
readers of the schema.
"""

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

FILE = Path(__file__).parent / "examples.json"
JSON = "application/json"


@cache
def recorded() -> Mapping[str, Mapping[str, Any]]:
    """Return what was recorded, by the id of the operation.

    Each has ``path`` (its parameters), ``query``, ``status``, and where there is one ``content``
    (the type of the body), ``request`` and ``response``.
    """
    found: Mapping[str, Mapping[str, Any]] = json.loads(FILE.read_text()) if FILE.exists() else {}
    return found


def show(operation: dict[str, Any]) -> None:
    """Add its recorded example to an operation of the schema."""
    example = recorded().get(operation["operationId"])
    if example is None:
        return
    given = {**example["path"], **example["query"]}
    for one in operation.get("parameters", ()):
        if one["in"] in {"path", "query"} and one["name"] in given:
            one["example"] = given[one["name"]]
    if "request" in example:
        content = operation["requestBody"]["content"]
        content[example["content"]]["example"] = example["request"]
    answer = operation["responses"].get(str(example["status"]), {})
    for kind, shape in answer.get("content", {}).items():
        if "response" in example and kind.endswith("json"):
            shape["example"] = example["response"]
