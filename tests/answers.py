"""Every answer of REST in the whole suite is of the shape that the schema promises.

The shapes are closed here: a field that the schema does not name is a fault, too, where a client
of tomorrow must bear it.
"""

import json
import re
from collections.abc import Iterator
from functools import cache
from http import HTTPStatus
from pathlib import Path
from typing import Any

import jsonschema
import referencing
from django.test import Client
from referencing.jsonschema import DRAFT202012

ROOT = Path(__file__).resolve().parent.parent
PREFIX, HERE = "/api/v1/", "urn:gpuplatform:rest"


@cache
def schema() -> dict[str, Any]:
    """Return the schema that is committed."""
    found: dict[str, Any] = json.loads((ROOT / "docs" / "openapi.json").read_text())
    return found


@cache
def registry() -> Any:
    """Return the components of the schema, closed and looked through once."""
    found = {"components": closed(schema()["components"])}
    whole = referencing.Resource.from_contents(found, DRAFT202012)
    return referencing.Registry().with_resource(HERE, whole).crawl()


def judge_of(shape: Any) -> Any:
    """Return what judges values of a shape of the schema, closed."""
    return jsonschema.Draft202012Validator(closed(shape), registry=registry())


def closed(shape: Any) -> Any:
    """Return the shape without room for fields that it does not name: ours are all named."""
    if isinstance(shape, list):
        return [closed(one) for one in shape]
    if not isinstance(shape, dict):
        return shape
    found = {key: one if key == "example" else closed(one) for key, one in shape.items()}
    if isinstance(name := shape.get("$ref"), str) and name.startswith("#"):
        found["$ref"] = f"{HERE}{name}"
    is_object = isinstance(shape.get("properties"), dict) and "type" in shape
    return {"additionalProperties": False, **found} if is_object else found


@cache
def templates() -> tuple[tuple[re.Pattern[str], str], ...]:
    """Return the addresses as patterns, those with fewer parameters first."""
    paths = sorted(schema()["paths"], key=lambda path: path.count("{"))
    parts = ((re.sub(r"\\\{\w+\\\}", "[^/]+", re.escape(path)), path) for path in paths)
    return tuple((re.compile(pattern), path) for pattern, path in parts)


def template_of(path: str) -> str | None:
    """Return the address of the schema that a path is of; one in words goes before the others."""
    return next((one for pattern, one in templates() if pattern.fullmatch(path)), None)


def operation(method: str, path: str) -> dict[str, Any] | None:
    """Return what the schema says of a request, None where it knows no such operation."""
    template = template_of(path)
    if template is None:
        return None
    found: dict[str, Any] | None = schema()["paths"][template].get(method.lower())
    return found


@cache
def validator(name: str, status: str, kind: str) -> Any:
    """Return what judges the answers of one operation with one status and content type."""
    for item in schema()["paths"].values():
        for one in item.values():
            if isinstance(one, dict) and one.get("operationId") == name:
                return judge_of(one["responses"][status]["content"][kind]["schema"])
    raise AssertionError(name)


def faults(method: str, path: str, response: Any) -> Iterator[str]:
    """Yield what of an answer is other than the schema says."""
    known = operation(method, path) if path.startswith(PREFIX) else None
    if known is None or response.status_code >= HTTPStatus.INTERNAL_SERVER_ERROR:
        return
    asked, status = f"{method} {path}", str(response.status_code)
    if status not in known["responses"]:
        yield f"{asked}: {status} is not in the schema: {bytes(response.content)[:300]!r}"
        return
    kind = response.headers.get("Content-Type", "").partition(";")[0]
    content = known["responses"][status].get("content", {})
    if response.streaming or not (response.content or content):
        return
    if kind not in content:
        yield f"{asked}: {status} with {kind} is not in the schema"
    elif kind.endswith("json"):
        judge = validator(known["operationId"], status, kind)
        for error in judge.iter_errors(json.loads(response.content)):
            yield f"{asked}: {status}: {error.json_path}: {error.message[:300]}"


def watch(patch: Any) -> None:
    """Let the client of tests judge each answer; ``patch`` is pytest's monkeypatch."""
    ask = Client.request

    def asked(self: Client, **request: Any) -> Any:
        response = ask(self, **request)
        method, path = request.get("REQUEST_METHOD", "GET"), request.get("PATH_INFO", "")
        found = list(faults(method, path, response))
        assert not found, "\n".join(found)
        return response

    patch.setattr(Client, "request", asked)
