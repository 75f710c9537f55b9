"""What the REST schema must know and cannot see in a view.

How programs sign in, keys of POSTs, versions, the parameters that a view names for its check, and
what every operation may answer beside what it is for: problem details (RFC 9457).
"""

from http import HTTPStatus
from typing import Any

from drf_spectacular.extensions import OpenApiAuthenticationExtension
from drf_spectacular.openapi import AutoSchema
from drf_spectacular.utils import OpenApiParameter

from gpuplatform.common import later
from gpuplatform.common.http import CONTENT_TYPE
from gpuplatform.common.once import HEADER, LONGEST
from gpuplatform.common.rest_shapes import FINDINGS, NUMBERS_TOLD
from gpuplatform.doors import examples

KEY = OpenApiParameter(
    HEADER,
    {"type": "string", "maxLength": LONGEST, "pattern": "^[ -~]*$"},
    OpenApiParameter.HEADER,
    description="The same request with the same key counts once, for 24 hours.",
)
PREFER = OpenApiParameter(
    later.HEADER,
    {"type": "string", "enum": [later.ASYNC]},
    OpenApiParameter.HEADER,
    description="Answer 202 at once; the operation in `Location` says what comes of it.",
)
IF_MATCH = OpenApiParameter(
    "If-Match",
    str,
    OpenApiParameter.HEADER,
    description='The version that was seen, such as "v3"; none to create. Admins may send *.',
)
# What a request may meet before a view is asked, and what any view may say.
ALWAYS = (400, 401, 403, 404, 406, 429)
WITH_BODY = (408, 409, 411, 413, 415, 422)
WITH_VERSION = (412, 428)
TEXT = {"type": "string"}
JSON = "application/json"
OTHER_FORMS: dict[str, Any] = {
    "text/csv": TEXT,
    "text/event-stream": {
        "type": "object",
        "description": "One event of the stream; ``id`` is the mark to go on from.",
        "required": ["data"],
        "properties": {
            "id": TEXT,
            "event": TEXT | {"enum": ["added", "modified", "deleted", "bookmark", "gone"]},
            "data": TEXT | {"description": "A row as JSON; of a bookmark an empty object."},
            "retry": {"type": "integer", "description": "Milliseconds."},
        },
    },
    "application/yaml": {"description": "Documents of Kueue, Kubernetes or our own."},
}
FINDING: dict[str, Any] = {
    "type": "object",
    "description": "One thing to correct.",
    "properties": {
        "pointer": TEXT | {"description": "JSON pointer into the body; empty: all of it."},
        "code": TEXT,
        "detail": TEXT,
        "numbers": NUMBERS_TOLD,
    },
    "required": ["pointer", "code", "detail", "numbers"],
}
PROBLEM: dict[str, Any] = {
    "type": "object",
    "description": "A refusal as RFC 9457 spells it; it changed nothing.",
    "properties": {
        "type": TEXT | {"pattern": "^urn:gpuplatform:problem:"},
        "title": TEXT,
        "status": {"type": "integer", "minimum": 400, "maximum": 599},
        "detail": TEXT,
        "instance": TEXT | {"description": "The address that was asked."},
        "request_id": TEXT,
        "errors": {
            "type": "array",
            "minItems": 1,
            "items": {"$ref": "#/components/schemas/ProblemError"},
        },
        "warnings": FINDINGS,
    },
    "required": ["type", "title", "status", "detail", "instance", "request_id", "errors"],
}


class Schema(AutoSchema):
    """The operations of REST."""

    def get_override_parameters(self) -> list[Any]:
        """Return parameters beside those that the view says more about."""
        asked: list[Any] = [KEY] if self.method == "POST" else []
        if self.method in getattr(self.view, "later", ()):
            asked.append(PREFER)
        if self._is_versioned():
            asked.append(IF_MATCH)
        names = getattr(self.view, "parameters", {}).get(self.method, ())
        return [*asked, *(OpenApiParameter(name, str) for name in names)]

    def get_operation(self, *args: Any, **kwargs: Any) -> Any:
        """Return the operation with all that it may answer."""
        operation = super().get_operation(*args, **kwargs)
        if operation is None:
            return None
        answers = operation["responses"]
        for answer in answers.values():
            _as_texts(answer.get("content", {}))
        if self.method == "GET":
            unchanged = "What If-None-Match names has not changed."
            answers.setdefault("304", {"description": unchanged})
            answers.setdefault("412", _refusal(HTTPStatus.PRECONDITION_FAILED))
        if self.method in getattr(self.view, "later", ()):
            shape = {"$ref": "#/components/schemas/Operation"}
            told = "It is answered later; Location is the operation's address."
            answers["202"] = {"description": told, "content": {JSON: {"schema": shape}}}
        for status in self._refusals():
            answers.setdefault(str(status), _refusal(status))
        operation["responses"] = dict(sorted(answers.items()))
        examples.show(operation)
        return operation

    def _is_versioned(self) -> bool:
        return self.method in getattr(self.view, "versioned", ())

    def _refusals(self) -> tuple[int, ...]:
        writes = self.method != "GET"
        own = getattr(self.view, "refusals", {}).get(self.method, ())
        versions = WITH_VERSION if self._is_versioned() else ()
        return (*ALWAYS, *(WITH_BODY if writes else ()), *versions, *own)


def refusals_of(title: str, also: dict[str, Any], of_error: dict[str, Any]) -> dict[str, Any]:
    """Return the shape of problems that say more than others; ``of_error``: of each error."""
    of_each = {**FINDING, "properties": {**FINDING["properties"], **of_error}}
    errors = {**PROBLEM["properties"]["errors"], "items": of_each}
    properties = {**PROBLEM["properties"], **also, "errors": errors}
    return {**PROBLEM, "title": title, "properties": properties}


def _refusal(status: int) -> dict[str, Any]:
    schema = {"$ref": "#/components/schemas/Problem"}
    told = HTTPStatus(status).phrase
    return {"description": told, "content": {CONTENT_TYPE: {"schema": schema}}}


def _as_texts(content: dict[str, Any]) -> None:
    """Say of files and streams what they are: only JSON has the shape of the rows."""
    for kind in content:
        if kind in OTHER_FORMS:
            content[kind] = {"schema": OTHER_FORMS[kind]}


def anything(result: Any, **_more: Any) -> Any:
    """Say "any JSON" where drf-spectacular says "any JSON or else null", which null breaks."""
    if isinstance(result, list):
        return [anything(one) for one in result]
    if not isinstance(result, dict):
        return result
    if result.get("oneOf") == [{}, {"type": "null"}]:
        return {key: value for key, value in result.items() if key != "oneOf"}
    return {key: anything(value) for key, value in result.items()}


def name_shapes(result: dict[str, Any], **_more: Any) -> dict[str, Any]:
    """Say each shape that has a title once, as a component of that name.

    Raises:
        ValueError: two different shapes have one name.
    """
    schemas = result["components"]["schemas"]
    result["paths"] = _named(result["paths"], schemas)
    for name in list(schemas):
        parts = {key: _named(value, schemas) for key, value in schemas[name].items()}
        schemas[name] = parts
    result["components"]["schemas"] = dict(sorted(schemas.items()))
    return result


def _named(value: Any, schemas: dict[str, Any]) -> Any:
    if isinstance(value, list):
        return [_named(one, schemas) for one in value]
    if not isinstance(value, dict):
        return value
    shape = {
        key: one if key in ("example", "examples") else _named(one, schemas)
        for key, one in value.items()
    }
    name = value.get("title")
    if not isinstance(name, str) or "properties" not in value:
        return shape
    wanted = {key: one for key, one in shape.items() if key != "title"} | {"type": "object"}
    if schemas.setdefault(name, wanted) != wanted:
        raise ValueError(f"two shapes are called {name}")
    where = {"$ref": f"#/components/schemas/{name}"}
    return where if value["type"] == "object" else {"anyOf": [where, {"type": "null"}]}


def loosen_rows(result: dict[str, Any], **_more: Any) -> dict[str, Any]:
    """Say that rows of a list have fewer fields where ``fields`` or ``brief`` asks for few."""
    schemas = result["components"]["schemas"]
    for operation in (item["get"] for item in result["paths"].values() if "get" in item):
        if not any(one["name"] == "fields" for one in operation.get("parameters", ())):
            continue
        page = operation["responses"]["200"]["content"]["application/json"]["schema"]
        page = schemas.get(page.get("$ref", "").rpartition("/")[2], page)
        rows = page["properties"]["results"]
        name = rows["items"].get("$ref", "").rpartition("/")[2]
        if name and not name.startswith("Some"):
            some = {key: value for key, value in schemas[name].items() if key != "required"}
            schemas[f"Some{name}"] = some | {"description": f"Fields of {name}; not all of them."}
            rows["items"] = {"$ref": f"#/components/schemas/Some{name}"}
    return result


def add_problem(result: dict[str, Any], **_more: Any) -> dict[str, Any]:
    """Name the shape of refusals once; a hook of drf-spectacular."""
    schemas = result.setdefault("components", {}).setdefault("schemas", {})
    schemas |= {"Problem": PROBLEM, "ProblemError": FINDING, "Operation": later.SHAPE}
    return result


class BearerScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]
    """``Authorization: Bearer <token>``."""

    target_class = "queues.tokens.BearerAuthentication"
    name = "bearer"

    def get_security_definition(self, auto_schema: Any) -> dict[str, str]:
        """Return the scheme as OpenAPI spells it."""
        del auto_schema
        return {"type": "http", "scheme": "bearer"}
