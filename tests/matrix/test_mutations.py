"""One field of a right request is wrong: every write over REST refuses it, or takes it.

Requests that are made up from the schema seldom get past the first rule; these are right but for
one field, so that they reach whatever rests on it.
"""

import copy
import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.db import transaction
from django.test import Client

from tests import answers
from tests.matrix.writes import WRITES, Write

ADMIN = "ada of everything"
WRONG = (
    *(None, True, 0, -1, 2**31, 2**63, 10**30, 1.5, "", " ", "\x00", "x" * 300, "\ud800", "é́💥"),
    *("1_0", "٣", "NaN", "-Infinity", "1e400", "9999-12-31T23:59:59Z", "0001-01-01", "2026-13-01"),
    *("%00", "../..", "'; --", "=1+1", "<b>", [], {}, [[]], [None], {"": None}, {"a": {"b": []}}),
)
SOME = (2**63, "\x00")
NO_FIELDS = ("", "{}", "nu", "[]", '""', "No")
BODIES = [
    one
    for one in WRITES
    if one.is_rest
    and one.content_type == "application/json"
    and str(one.body)[:2] not in NO_FIELDS
]


def leaves(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the way to every value of a body, from the outside in."""
    if path:
        yield path
    if isinstance(value, dict):
        for name, one in value.items():
            yield from leaves(one, (*path, name))
    elif isinstance(value, list):
        for number, one in enumerate(value[:1]):
            yield from leaves(one, (*path, number))


def wrong_at(body: Any, path: tuple[Any, ...], value: Any) -> str:
    found = copy.deepcopy(body)
    place = found
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = value
    return json.dumps(found)


def named(write: Write) -> Iterator[tuple[str]]:
    """Yield the fields that the schema names for its body."""
    known = answers.operation(write.method, write.path.partition("?")[0]) or {}
    content = known.get("requestBody", {}).get("content", {})
    shape = content.get("application/json", {}).get("schema", {})
    if name := shape.get("$ref"):
        shape = answers.schema()["components"]["schemas"][name.rpartition("/")[2]]
    yield from ((name,) for name in shape.get("properties", ()))


def refused(client: Client, write: Write, values: tuple[Any, ...], *, all_fields: bool) -> int:
    """Ask with each field wrong in each way; return how many were asked.

    What is answered is compared with the schema by the client itself.
    """
    body, asked = json.loads(write.body), 0
    more = named(write) if all_fields else ()
    for path in dict.fromkeys([*leaves(body), *more]):
        for value in values:
            with transaction.atomic():
                answer = client.generic(
                    write.method,
                    write.path,
                    wrong_at(body, path, value),
                    content_type=write.content_type,
                    headers=write.headers,
                )
                transaction.set_rollback(True)
            asked += 1
            assert answer.status_code < 500, (write.path, path, value, answer.content[:300])
    return asked


@pytest.mark.parametrize("write", BODIES, ids=lambda one: f"{one.method} {one.route}")
def test_a_field_that_is_wrong_fails_nothing(
    program: Callable[[str], Client], write: Write
) -> None:
    assert refused(program(ADMIN), write, SOME, all_fields=False)


@pytest.mark.long
@pytest.mark.parametrize("write", BODIES, ids=lambda one: f"{one.method} {one.route}")
def test_a_field_that_is_wrong_in_any_way_fails_nothing(
    program: Callable[[str], Client], write: Write
) -> None:
    assert refused(program(ADMIN), write, WRONG, all_fields=True)
