"""A server of its own answers as the schema says: through uvicorn, on PostgreSQL, with a worker.

What is asked is made up by schemathesis, as in ``tests/matrix/test_contract.py``; here what is
written stays, and what takes long is done by a worker meanwhile.
"""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import schemathesis

from tests.integration.stack import WORKER, Stack, stack_on
from tests.matrix.contract import (
    CALLERS,
    STORIES,
    Ask,
    all_of,
    judge,
    tell_stories,
    try_edges,
    try_out,
)

pytestmark = pytest.mark.services
WORLD = (Path(__file__).parent / "contract_world.py").read_text()
NUMBER = 61  # of the database of the broker
TIMEOUT_S = 60
# Nobody is told to wait; no source may be called, and of webhooks one where nobody answers.
ENVIRONMENT = {"API_PER_S": "0", "WEBHOOK_HOSTS": "localhost:9"}


class Live(NamedTuple):
    """A running product, what it says of itself, and a token of each caller."""

    stack: Stack
    schema: Any
    tokens: Mapping[str, str]

    @property
    def operations(self) -> list[Any]:
        return [result.ok() for result in self.schema.get_all_operations()]


@pytest.fixture(scope="module")
def live(
    postgresql_url: str, broker_url: str, migrated: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Live]:
    home = tmp_path_factory.mktemp("contract")
    with stack_on(postgresql_url, broker_url, home, NUMBER, migrated) as stack:
        stack.environment |= ENVIRONMENT
        tokens = json.loads(stack.manage("shell", "-v", "0", text=WORLD).splitlines()[-1])
        stack.start(*WORKER, "-Q", "cycle,cost,mail")
        stack.start_web()
        schema = schemathesis.openapi.from_url(f"{stack.url}/api/v1/openapi.json")
        yield Live(stack, schema, tokens)


@pytest.fixture
def ask(live: Live) -> Ask:
    def send(case: Any, who: str) -> Any:
        response = case.call(headers={"Authorization": live.tokens[who]}, timeout=TIMEOUT_S)
        judge(case, response)
        return response

    return send


def test_a_server_answers_some_requests_of_every_operation_as_the_schema_says(
    live: Live, ask: Ask
) -> None:
    all_of(live.operations, lambda one: try_out(one, ask, examples=1))


@pytest.mark.long
def test_a_server_answers_many_requests_of_every_operation_as_the_schema_says(
    live: Live, ask: Ask
) -> None:
    all_of(live.operations, lambda one: try_out(one, ask, examples=25))


@pytest.mark.long
def test_a_server_answers_every_edge_of_every_parameter_as_the_schema_says(
    live: Live, ask: Ask
) -> None:
    all_of(live.operations, lambda one: try_edges(live.schema, one, ask))


@pytest.mark.long
@pytest.mark.parametrize("teller", CALLERS)
def test_a_server_answers_whole_stories_as_the_schema_says(live: Live, teller: str) -> None:
    assert tell_stories(live.schema, live.tokens, teller, STORIES)
