"""What schemathesis compares with the schema, whoever is asked in whichever way, and by whom."""

import os
import re
from types import SimpleNamespace
from typing import Any

import schemathesis
import yaml
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi import checks

from tests import answers
from tests.matrix.doors import REST
from tests.matrix.writes import WRITES

BOTH = (GenerationMode.POSITIVE, GenerationMode.NEGATIVE)
OF_SCHEMA = [
    not_a_server_error,
    checks.status_code_conformance,
    checks.content_type_conformance,
    checks.response_headers_conformance,
    checks.response_schema_conformance,
    checks.unsupported_method,
    checks.allow_header_conformance,
]
# Each role with all the scopes that are of use to it, and tokens that are narrowed.
CALLERS = (
    *(f"{who} of everything" for who in ("ada", "fin", "aud", "lea", "ian")),
    *("ada of ia", "lea reading", "agent"),
)
MEMBERS = {"pointer", "code", "detail", "numbers"}
PROBLEM = {"type", "title", "status", "detail", "instance", "request_id", "errors"}
METHODS = {"GET", "POST", "PUT", "PATCH", "DELETE", "TRACE"}
# A different part of what is possible each time: SCHEMATHESIS_SEED=7 make test-long
STORIES = int(os.environ.get("SCHEMATHESIS_STORIES", "20"))
SEED = int(os.environ.get("SCHEMATHESIS_SEED", "1"))


@schemathesis.deserializer("application/yaml")
def documents(_context: Any, response: Any) -> list[Any]:
    """Return all documents of a file."""
    return list(yaml.safe_load_all(response.content))


def judge(case: Any, response: Any) -> None:
    """Fail where an answer is other than the schema says, or a refusal is no problem."""
    case.validate_response(response, checks=OF_SCHEMA)
    assert_problem(case, response)
    kind = "; ".join(response.headers.get("content-type", ()))
    as_django = SimpleNamespace(
        status_code=response.status_code,
        content=response.content or b"",
        streaming=False,
        headers={"Content-Type": kind},
    )
    path = response.request.url.partition("://")[2].partition("/")[2].partition("?")[0]
    if case.method in METHODS:
        assert not list(answers.faults(case.method, f"/{path}", as_django))


def assert_problem(case: Any, response: Any) -> None:
    if response.status_code < 400 or case.method == "HEAD":
        return
    assert response.headers["content-type"][0].startswith("application/problem+json")
    told = response.json()
    assert set(told) >= PROBLEM
    assert told["status"] == response.status_code
    assert told["errors"]
    assert all(set(one) >= MEMBERS for one in told["errors"])


def known_parts(operation: Any) -> list[dict[str, str]]:
    """Return the parts of addresses of this operation that lead to things that are there."""
    pattern = re.compile(re.sub(r"\\\{(\w+)\\\}", r"(?P<\1>[^/]+)", re.escape(operation.path)))
    writes = [one.path for one in WRITES if one.is_rest and one.method == operation.method.upper()]
    paths = writes or [door.path for door in REST]
    found = (pattern.fullmatch(path.split("?")[0]) for path in paths)
    return [match.groupdict() for match in found if match and match.groupdict()]


def pointed(case: Any, parts: dict[str, str] | None) -> Any:
    """Return the request about something that is there; no stream, which never ends."""
    if parts is not None:
        case.path_parameters = {**(case.path_parameters or {}), **parts}
    if isinstance(case.query, dict):
        case.query.pop("watch", None)
    return case
