"""An agent as a few calls of REST, beside the real loop."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import time_machine
from django.test import Client

from scheduling.cycle import run_cycle
from scheduling.engine.machines import GPU
from scheduling.reconciler import reconcile
from tests.scheduling.loop.world import FLAVOR, NOON, queue

HAS = {GPU: 4, "cpu": "64", "memory": "512Gi", "pods": 110}


class Driver:
    """An agent that does exactly what a test tells it."""

    def __init__(self, client: Client, token: str, name: str = "rack-1") -> None:
        self.client, self.token, self.name = client, token, name
        self.epoch = self.sequence = 0

    def call(self, method: str, path: str, body: Any = None, **headers: str) -> Any:
        ask = getattr(self.client, method.lower())
        data = {} if body is None else {"data": body, "content_type": "application/json"}
        sent = {"Authorization": self.token, **headers}
        return ask(f"/api/v1/agent/{self.name}/{path}", **data, headers=sent)

    def hello(self, **body: Any) -> dict[str, Any]:
        answer = self.call("POST", "hello/", body)
        assert answer.status_code == 200, answer.content
        told: dict[str, Any] = answer.json()
        self.epoch, self.sequence = told["epoch"], told["sequence"]
        return told

    def numbered(self, *reports: dict[str, Any]) -> dict[str, Any]:
        rows = [{"sequence": self.sequence + n, **row} for n, row in enumerate(reports, 1)]
        return {"epoch": self.epoch, "reports": rows}

    def send(self, *reports: dict[str, Any]) -> Any:
        return self.call("POST", "reports/", self.numbered(*reports))

    def tell(self, *reports: dict[str, Any]) -> dict[str, Any]:
        answer = self.send(*reports)
        assert answer.status_code == 200, answer.content
        told: dict[str, Any] = answer.json()
        self.sequence = told["sequence"]
        return told

    def own(self, *names: str, **more: Any) -> None:
        self.tell(*(node(name, **more) for name in names))

    def of(self, kind: str, *members: str, **more: Any) -> dict[str, Any]:
        return self.tell(*({"kind": kind, "member": name, **more} for name in members))

    def desired(self) -> dict[str, Any]:
        answer = self.call("GET", f"desired/?epoch={self.epoch}")
        assert answer.status_code == 200, answer.content
        told: dict[str, Any] = answer.json()
        return told

    def runs(self) -> list[str]:
        return [row["member"] for row in self.desired()["run"]]

    def stops(self) -> list[str]:
        return [row["member"] for row in self.desired()["stop"]]


def node(name: str, **more: Any) -> dict[str, Any]:
    body = {"name": name, "labels": {"accelerator": FLAVOR}, "capacity": HAS, **more}
    return {"kind": "node", "node": body}


def turn() -> None:
    """Let the platform look and decide until nothing moves."""
    for _ in range(6):
        looked, decided = reconcile(), run_cycle()
        if not (looked.moved or decided.moved):
            return


@pytest.fixture
def clock() -> Iterator[time_machine.Traveller]:
    """Noon of 1 June 2026, standing still."""
    with time_machine.travel(NOON, tick=False) as traveller:
        yield traveller


@pytest.fixture
def platform(db: None, clock: time_machine.Traveller, settings: Any) -> Any:
    """A queue of eight GPUs of a flavor; its machines are those of agents."""
    from queues.models import ResourceFlavor  # noqa: PLC0415

    settings.CLUSTER_BACKEND = "external"
    labels = {"accelerator": FLAVOR}
    ResourceFlavor.objects.get_or_create(name=FLAVOR, defaults={"node_labels": labels})
    queue("ia", 8)
    return settings


@pytest.fixture
def driver(platform: Any, ada: Any, token_of: Callable[..., str]) -> Driver:
    """An agent that has said hello and owns two nodes of four GPUs."""
    made = Driver(Client(), token_of(ada, "cluster:agent"))
    made.hello()
    made.own("node-1", "node-2")
    return made
