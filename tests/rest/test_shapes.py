"""The schema says field by field what is answered; what it leaves open is open for a reason."""

from collections.abc import Iterator, Mapping
from typing import Any

from tests.answers import schema

METHODS = ("get", "post", "put", "patch", "delete")
# What is whatever somebody else sent, by its last name.
OPEN = {
    "parameters": "settings of an admission check; its kind says which there are",
    "container": "the container of a submitted document, as it was written there",
    "template": "a submitted document, kept and answered unchanged",
    "carried": "what a manifest said that nothing of ours follows, kept unchanged",
    "before": "an object of any kind as it was; the audit trail keeps all kinds",
    "after": "an object of any kind as it became; the audit trail keeps all kinds",
    "rules": "the facts of a bill as finops spells them in files",
    "": "the whole answer of another operation, which was asked for later",
}


def answers() -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield the JSON answers of all operations that went well."""
    for path, item in schema()["paths"].items():
        for method in METHODS:
            for code, answer in item.get(method, {}).get("responses", {}).items():
                shape = answer.get("content", {}).get("application/json")
                if code.startswith("2") and shape is not None:
                    yield f"{method.upper()} {path} {code}", shape.get("schema", {})


def untyped(shape: Mapping[str, Any], path: str = "", inside: tuple[str, ...] = ()) -> Any:
    """Yield the paths at which anything may stand."""
    if name := shape.get("$ref"):
        if name not in inside:
            found = schema()["components"]["schemas"][name.rpartition("/")[2]]
            yield from untyped(found, path, (*inside, name))
        return
    several = [one for key in ("oneOf", "anyOf", "allOf") for one in shape.get(key, ())]
    for one in several:
        yield from untyped(one, path, inside)
    kinds = shape.get("type", ())
    kinds = {kinds} if isinstance(kinds, str) else set(kinds)
    for name, one in shape.get("properties", {}).items():
        yield from untyped(one, f"{path}.{name}", inside)
    if "array" in kinds:
        yield from untyped(shape.get("items", {}), f"{path}[]", inside)
    values = shape.get("additionalProperties")
    if "object" in kinds and not shape.get("properties"):
        yield from untyped(values if isinstance(values, dict) else {}, path, inside)
    if not (kinds or several or {"enum", "const", "properties"} & shape.keys()):
        yield path


def test_every_answer_says_what_stands_in_each_field() -> None:
    found: dict[str, set[str]] = {}
    for operation, shape in answers():
        for path in untyped(shape):
            found.setdefault(path.rpartition(".")[2], set()).add(operation)
    assert found.keys() == OPEN.keys(), found
    assert found[""] == {"GET /api/v1/operations/{uid}/result/ 200"}
