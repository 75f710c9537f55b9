"""Whatever is asked over REST, in whatever shape and by whom, is answered as the schema says.

Requests are made up by schemathesis from the schema itself, right ones and wrong ones, about the
things that are there and others. Nothing may fail (5xx), no status or content type may come that
the schema does not name, every body has its shape, every refusal is a problem document.
"""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import schemathesis
from django.core.handlers.wsgi import WSGIHandler
from django.core.signals import request_finished, request_started
from django.db import close_old_connections, transaction

from tests.matrix.contract import (
    CALLERS,
    METHODS,
    STORIES,
    Ask,
    all_of,
    judge,
    known_parts,
    tell_stories,
    try_edges,
    try_out,
)
from tests.matrix.world import World


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


@pytest.fixture
def ask(world: World, db: None) -> Ask:
    """Send a request as somebody and check the answer; nothing of it stays."""

    def send(case: Any, who: str) -> Any:
        with transaction.atomic():
            response = case.call(headers={"Authorization": world.tokens[who]})
            transaction.set_rollback(True)
        judge(case, response)
        return response

    return send


def test_some_requests_of_every_operation_are_answered_as_the_schema_says(
    operations: list[Any], ask: Ask
) -> None:
    assert operations
    all_of(operations, lambda one: try_out(one, ask, examples=1))


@pytest.mark.long
def test_many_requests_of_every_operation_are_answered_as_the_schema_says(
    operations: list[Any], ask: Ask
) -> None:
    all_of(operations, lambda one: try_out(one, ask, examples=25))


@pytest.mark.long
def test_every_edge_of_every_parameter_is_answered_as_the_schema_says(
    schema: Any, operations: list[Any], ask: Ask
) -> None:
    all_of(operations, lambda one: try_edges(schema, one, ask))


@pytest.mark.long
@pytest.mark.parametrize("teller", CALLERS)
def test_whole_stories_are_answered_as_the_schema_says(
    world: World, schema: Any, db: None, teller: str
) -> None:
    """What one operation has made is read, changed and taken away by the others.

    Each caller tells the stories once; the admin, who may do most, makes things for the others.
    """
    with transaction.atomic():
        asked = tell_stories(schema, world.tokens, teller, STORIES)
        transaction.set_rollback(True)
    assert asked & {200, 201}


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
