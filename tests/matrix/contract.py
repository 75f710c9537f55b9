"""What schemathesis compares with the schema, whoever is asked in whichever way, and by whom."""

import os
import re
from collections.abc import Callable, Iterable, Mapping
from http import HTTPStatus
from types import SimpleNamespace
from typing import Any

import hypothesis
import schemathesis
import yaml
from hypothesis import HealthCheck, Phase, given
from hypothesis import strategies as st
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.core.media_types import YAML_MEDIA_TYPES
from schemathesis.specs.openapi import checks

from tests import answers
from tests.matrix.doors import REST
from tests.matrix.writes import ANY_VERSION, WRITES

Ask = Callable[[Any, str], Any]  # a request as somebody; the answer

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


@schemathesis.deserializer(*YAML_MEDIA_TYPES)
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
    paths = {path.split("?")[0] for path in writes or [door.path for door in REST]}
    own = [path for path in sorted(paths) if answers.template_of(path) == operation.path]
    found = (pattern.fullmatch(path) for path in own)
    return [match.groupdict() for match in found if match and match.groupdict()]


def pointed(case: Any, parts: dict[str, str] | None) -> Any:
    """Return the request about something that is there; no stream, which never ends."""
    if parts is not None:
        parts = dict(parts)
        seen = {name: parts.pop(name) for name in ANY_VERSION if name in parts}
        case.headers = {**(case.headers or {}), **seen}
        case.path_parameters = {**(case.path_parameters or {}), **parts}
    if isinstance(case.query, dict):
        case.query.pop("watch", None)
        if case.query.get("format") == "sse":
            del case.query["format"]
    return case


def all_of(operations: Iterable[Any], act: Callable[[Any], None]) -> None:
    """Do something with each operation, and fail with what is wrong of all of them."""
    wrong = []
    for operation in operations:
        try:
            act(operation)
        except Exception as error:  # noqa: BLE001  # told below, all of them together
            error.add_note(f"{operation.method.upper()} {operation.path}")
            wrong.append(error)
    if wrong:
        raise ExceptionGroup("answers that are not as the schema says", wrong)


def try_out(operation: Any, ask: Ask, examples: int) -> None:
    """Make up so many requests of an operation, and as many wrong ones."""
    known = [{**parts, **seen} for parts in known_parts(operation) for seen in ({}, ANY_VERSION)]
    about = st.sampled_from([*known * 3, None])
    for mode in BOTH:

        @hypothesis.seed(SEED)
        @hypothesis.settings(
            max_examples=examples,
            database=None,
            deadline=None,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        @given(case=operation.as_strategy(mode), who=st.sampled_from(CALLERS), parts=about)
        def asked(case: Any, who: str, parts: dict[str, str] | None) -> None:
            ask(pointed(case, parts), who)

        asked()


def try_edges(schema: Any, operation: Any, ask: Ask) -> None:
    """Try every edge of every parameter of an operation."""
    config = schema.config.generation_for(operation=operation, phase="coverage")
    known = [*known_parts(operation), None]
    cases = schema.iter_coverage_cases(
        operation, generation_modes=list(BOTH), generation_config=config
    )
    for number, case in enumerate(cases):
        who = CALLERS[number // 2 % len(CALLERS)] if number % 2 else CALLERS[0]
        ask(pointed(case, known[number % len(known)]), who)


def tell_stories(schema: Any, tokens: Mapping[str, str], teller: str, stories: int) -> set[int]:
    """Let what one operation has made be read, changed and taken away by the others.

    The admin, who may do most, makes things for ``teller``. Returns how it was answered.
    """
    asked: set[int] = set()

    class Story(schema.as_state_machine()):  # type: ignore[misc]  # made from the schema
        def get_call_kwargs(self, case: Any) -> dict[str, Any]:
            pointed(case, None)
            if isinstance(case.query, dict) and case.query.get("format") == "yaml":
                del case.query["format"]  # several documents, which links cannot be read from
            who = CALLERS[0] if case.method == "POST" else teller
            return {"headers": {"Authorization": tokens[who]}}

        def validate_response(self, response: Any, case: Any, **_more: Any) -> None:
            asked.add(response.status_code)
            judge(case, response)

    Story.run(
        settings=hypothesis.settings(
            max_examples=stories,
            stateful_step_count=8,
            database=None,
            derandomize=True,
            deadline=None,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
    )
    assert not {code for code in asked if code >= HTTPStatus.INTERNAL_SERVER_ERROR} - {501}
    return asked
