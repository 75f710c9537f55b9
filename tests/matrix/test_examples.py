"""The examples of the REST schema are exchanges that took place, and still take place so.

``GOLDEN=write pytest tests/matrix/test_examples.py`` records them anew.
"""

import json
import os
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, urlsplit

import pytest
from django.db import transaction
from django.test import Client

from finops.models import SharedCost
from gpuplatform.doors.examples import FILE, recorded
from queues.models import ClusterQueue, Cohort, ResourceFlavor, Topology, TopologyLevel
from tests.answers import judge_of, schema
from tests.finops.rows import JUNE
from tests.matrix.doors import REST
from tests.matrix.writes import WRITES

METHODS = ("get", "post", "put", "patch", "delete")
AGENT = "agent"
MOST_ROWS = 1
SHOWN_ONCE = {"secret": "whsec_...", "key": "gpt_..."}
SPARE = "spare"
# What the world of the matrix needs for something else: these are shown with spare ones.
OTHERS = {
    "v1_cohorts_destroy": SPARE,
    "v1_cluster_queues_destroy": SPARE,
    "v1_flavors_destroy": SPARE,
    "v1_topologies_destroy": SPARE,
    "v1_topologies_retrieve": SPARE,
    "shared_cost_end": SPARE,
}
# What is refused in this world: it has no gateway, and its month is not over.
HOME = "/var/lib/gpuplatform"
REFUSED = {
    "litellm_limits_read": 404,
    "litellm_limits_push": 404,
    "periods_acknowledge": 422,
    "periods_step": 422,
    "periods_take_back": 404,
}


class Operation(NamedTuple):
    """An operation of the schema."""

    name: str
    method: str
    path: str
    shape: Mapping[str, Any]

    def __str__(self) -> str:
        return self.name


def operations() -> Iterator[Operation]:
    for path, item in schema()["paths"].items():
        for method in METHODS:
            if method in item:
                yield Operation(item[method]["operationId"], method, path, item[method])


OPERATIONS = list(operations())


class Asked(NamedTuple):
    """What is sent."""

    path: str
    body: Any = None
    content: str = "application/json"
    headers: Mapping[str, str] | None = None


def asked(operation: Operation) -> tuple[Asked, dict[str, str]]:
    """Return a request of this operation that the matrix knows, and its parts of the address."""
    pattern = re.compile(re.sub(r"\\\{(\w+)\\\}", r"(?P<\1>[^/]+)", re.escape(operation.path)))
    if operation.method == "get":
        known = [Asked(door.path) for door in REST]
    else:
        method = operation.method.upper()
        known = [
            Asked(one.path, one.body, one.content_type, one.headers)
            for one in WRITES
            if one.is_rest and one.method == method
        ]
    for one in known:
        if match := pattern.fullmatch(one.path.split("?")[0]):
            name, other = match.groupdict().get("name"), OTHERS.get(operation.name)
            if other is None:
                return one, match.groupdict()
            return one._replace(path=one.path.replace(f"/{name}/", f"/{other}/")), {"name": other}
    raise AssertionError(f"neither a door nor a write of the matrix is {operation}")


def shortened(value: Any) -> Any:
    """Return an answer without most rows of long lists, secrets, and paths of this machine."""
    if isinstance(value, list):
        return [shortened(one) for one in value[:MOST_ROWS]]
    if isinstance(value, dict):
        return {
            name: SHOWN_ONCE[name] if name in SHOWN_ONCE and one else shortened(one)
            for name, one in value.items()
        }
    return HOME if value == os.environ.get("GPUPLATFORM_HOME") else value


def exchange(operation: Operation, client: Client) -> dict[str, Any]:
    """Ask; return the request and the answer as an example, and undo what was done."""
    one, parts = asked(operation)
    with transaction.atomic():
        response = client.generic(
            operation.method.upper(),
            one.path,
            one.body if one.body not in (None, "null") else "",
            content_type=one.content,
            headers=one.headers,
        )
        transaction.set_rollback(True)
    query = dict(parse_qsl(urlsplit(one.path).query))
    found: dict[str, Any] = {"path": parts, "query": query, "status": response.status_code}
    if "requestBody" in operation.shape and one.body not in (None, "null"):
        is_json = one.content == "application/json"
        body = json.loads(one.body) if is_json else one.body
        found |= {"content": one.content, "request": body}
    if response.headers.get("Content-Type", "").partition(";")[0].endswith("json"):
        found["response"] = shortened(response.json())
    return found


@pytest.fixture
def ask(program: Callable[[str], Client]) -> Callable[[Operation], dict[str, Any]]:
    return lambda operation: exchange(operation, program("ada of everything"))


def test_every_operation_is_shown_as_it_answers(
    ask: Callable[[Operation], dict[str, Any]],
) -> None:
    Cohort.objects.create(name=SPARE)
    ClusterQueue.objects.create(name=SPARE, namespace_selector={})
    ResourceFlavor.objects.create(name=SPARE)
    rent = {"method": "even", "amount": 100, "currency": "EUR", "valid_from": JUNE}
    SharedCost.objects.create(name=SPARE, **rent)
    topology = Topology.objects.create(name=SPARE)
    TopologyLevel.objects.create(topology=topology, position=0, node_label="rack")
    found = {operation.name: ask(operation) for operation in OPERATIONS}
    if os.environ.get("GOLDEN") == "write":
        FILE.write_text(json.dumps(found, indent=1, sort_keys=True, ensure_ascii=False) + "\n")
    refused = {name: one["status"] for name, one in found.items() if one["status"] >= 400}
    assert refused == REFUSED
    assert {name: forms(one) for name, one in recorded().items()} == {
        name: forms(one) for name, one in found.items()
    }


def forms(example: Mapping[str, Any]) -> tuple[Any, ...]:
    """Return what an example must share with what happens now: all but values of the answer."""
    answer = example.get("response")
    names = sorted(answer) if isinstance(answer, dict) else type(answer).__name__
    return (example["status"], example["path"].keys(), example.get("request"), names)


@pytest.mark.parametrize("operation", OPERATIONS, ids=str)
def test_an_example_is_of_the_shape_that_the_schema_promises(operation: Operation) -> None:
    example = recorded()[operation.name]
    answer = operation.shape["responses"][str(example["status"])]
    if "response" in example:
        shape = next(one for kind, one in answer["content"].items() if kind.endswith("json"))
        assert_valid(example["response"], shape["schema"])
        assert shape["example"] == example["response"]
    if "request" in example:
        shape = operation.shape["requestBody"]["content"][example["content"]]
        assert_valid(example["request"], shape["schema"])
        assert shape["example"] == example["request"]


def assert_valid(value: Any, shape: Mapping[str, Any]) -> None:
    judge_of(shape).validate(value)
