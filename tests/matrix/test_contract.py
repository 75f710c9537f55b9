"""Whatever is asked over REST, in whatever shape and by whom, is answered as the schema says.

Requests are made up by schemathesis from the schema itself, right ones and wrong ones, about the
things that are there and others. Nothing may fail (5xx), no status or content type may come that
the schema does not name, every body has its shape, every refusal is a problem document.
"""

import os
import re
from collections.abc import Callable, Iterator
from typing import Any

import hypothesis
import pytest
import schemathesis
import yaml
from django.core.handlers.wsgi import WSGIHandler
from django.core.signals import request_finished, request_started
from django.db import close_old_connections, transaction
from hypothesis import HealthCheck, Phase, given
from hypothesis import strategies as st
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi import checks

from tests.matrix.doors import REST
from tests.matrix.world import World
from tests.matrix.writes import WRITES

BOTH = (GenerationMode.POSITIVE, GenerationMode.NEGATIVE)
CHECKS = [
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


@pytest.fixture
def schema() -> Iterator[Any]:
    """The schema as it is served; requests are answered on the connection of the test."""
    signals = (request_started, request_finished)
    for signal in signals:
        signal.disconnect(close_old_connections)
    yield schemathesis.openapi.from_wsgi("/api/v1/openapi.json", WSGIHandler())
    for signal in signals:
        signal.connect(close_old_connections)


@pytest.fixture
def operations(schema: Any, db: None) -> list[Any]:
    return [result.ok() for result in schema.get_all_operations()]


Ask = Callable[..., Any]


@pytest.fixture
def ask(world: World, db: None) -> Ask:
    """Send a request as somebody and check the answer; nothing of it stays."""

    def send(case: Any, who: str) -> Any:
        with transaction.atomic():
            response = case.call(headers={"Authorization": world.tokens[who]})
            transaction.set_rollback(True)
        case.validate_response(response, checks=CHECKS)
        assert_problem(case, response)
        return response

    return send


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


def try_out(operation: Any, ask: Ask, examples: int) -> None:
    """Make up so many requests of an operation, and as many wrong ones."""
    about = st.sampled_from([*known_parts(operation) * 3, None])
    for mode in BOTH:

        @hypothesis.seed(SEED)
        @hypothesis.settings(
            max_examples=examples,
            database=None,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        @given(case=operation.as_strategy(mode), who=st.sampled_from(CALLERS), parts=about)
        def asked(case: Any, who: str, parts: dict[str, str] | None) -> None:
            ask(pointed(case, parts), who)

        asked()


def test_some_requests_of_every_operation_are_answered_as_the_schema_says(
    operations: list[Any], ask: Ask
) -> None:
    assert operations
    for operation in operations:
        try_out(operation, ask, examples=1)


@pytest.mark.long
def test_many_requests_of_every_operation_are_answered_as_the_schema_says(
    operations: list[Any], ask: Ask
) -> None:
    for operation in operations:
        try_out(operation, ask, examples=25)


@pytest.mark.long
def test_every_edge_of_every_parameter_is_answered_as_the_schema_says(
    schema: Any, operations: list[Any], ask: Ask
) -> None:
    for operation in operations:
        config = schema.config.generation_for(operation=operation, phase="coverage")
        known = [*known_parts(operation), None]
        cases = schema.iter_coverage_cases(
            operation, generation_modes=list(BOTH), generation_config=config
        )
        for number, case in enumerate(cases):
            who = CALLERS[number // 2 % len(CALLERS)] if number % 2 else CALLERS[0]
            ask(pointed(case, known[number % len(known)]), who)


@pytest.mark.long
@pytest.mark.parametrize("teller", CALLERS)
def test_whole_stories_are_answered_as_the_schema_says(
    world: World, schema: Any, db: None, teller: str
) -> None:
    """What one operation has made is read, changed and taken away by the others.

    Each caller tells the stories once; the admin, who may do most, makes things for the others.
    """
    asked: set[int] = set()

    class Story(schema.as_state_machine()):  # type: ignore[misc]  # made from the schema
        def get_call_kwargs(self, case: Any) -> dict[str, Any]:
            pointed(case, None)
            if isinstance(case.query, dict) and case.query.get("format") == "yaml":
                del case.query["format"]  # several documents, which links cannot be read from
            who = CALLERS[0] if case.method == "POST" else teller
            return {"headers": {"Authorization": world.tokens[who]}}

        def validate_response(self, response: Any, case: Any, **_more: Any) -> None:
            asked.add(response.status_code)
            case.validate_response(response, checks=CHECKS)
            assert_problem(case, response)

    with transaction.atomic():
        Story.run(
            settings=hypothesis.settings(
                max_examples=STORIES,
                stateful_step_count=8,
                database=None,
                derandomize=True,
                deadline=None,
                phases=[Phase.generate],
                suppress_health_check=list(HealthCheck),
            )
        )
        transaction.set_rollback(True)
    assert asked & {200, 201}
    assert not {code for code in asked if code >= 500} - {501}


def test_other_methods_than_those_of_the_schema_are_refused_before_all_else(
    operations: list[Any], program: Callable[[str], Any]
) -> None:
    methods: dict[str, set[str]] = {}
    parts: dict[str, dict[str, str]] = {}
    for one in operations:
        methods.setdefault(one.path, set()).add(one.method.upper())
        if known := known_parts(one):
            parts[one.path] = known[0]
    client = program(CALLERS[0])
    for template, names in methods.items():
        path = template.format(**parts.get(template, {}))
        for method in METHODS - names:
            answer = client.generic(method, f"{path}?nothing=knows&this=parameter")
            assert (path, method, answer.status_code) == (path, method, 405)
            assert answer["Content-Type"] == "application/problem+json"
            assert names <= {one.strip() for one in answer["Allow"].split(",")}
