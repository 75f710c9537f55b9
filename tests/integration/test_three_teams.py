"""The articles' story through REST, on PostgreSQL, with a worker process and a real broker.

Datos is promised 2 GPUs, IA and Plataforma 1 each; the one node has 4. Datos borrows what the
others leave; Plataforma wants its own back.
"""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.integration.stack import BEAT, WORKER, Stack, as_text

pytestmark = pytest.mark.services
PEOPLE = (Path(__file__).parent / "people.py").read_text()
LENDERS = ("cq-ia", "cq-plataforma")
ENTRIES = [
    {
        "apiVersion": "kueue.x-k8s.io/v1beta2",
        "kind": "LocalQueue",
        "metadata": {"name": f"lq-{team}", "namespace": f"ns-{team}"},
        "spec": {"clusterQueue": f"cq-{team}"},
    }
    for team in ("ia", "plataforma")
]
URGENT = {
    "apiVersion": "kueue.x-k8s.io/v1beta2",
    "kind": "WorkloadPriorityClass",
    "metadata": {"name": "urgent"},
    "value": 1000,
}


class Platform:
    """What the story's people do, through REST alone."""

    def __init__(self, stack: Stack) -> None:
        self.stack = stack
        self.tokens = json.loads(stack.manage("shell", "-v", "0", text=PEOPLE).splitlines()[-1])
        stack.start_web()

    def start_workers(self) -> None:
        self.stack.start(*WORKER)
        self.stack.start(*BEAT, "-s", str(self.stack.home / "beat"))

    def declare(self, text: str) -> list[dict[str, Any]]:
        """Post manifests as Ada; return all warnings and errors of the answer."""
        answer = self.stack.call(
            *("POST", "/api/v1/manifests/", text),
            token=self.tokens["ada"],
            content_type="application/yaml",
        )
        assert answer.status in {200, 201}, (answer.status, answer.body)
        found = [found for result in answer.body["results"] for found in result["diagnostics"]]
        return [*found, *answer.body["findings"]]

    def submit(self, person: str, team: str, name: str, gpus: int, **more: Any) -> str:
        """Submit one pod; return the address of the workload."""
        body = {
            "name": name,
            "namespace": f"ns-{team}",
            "queue": f"lq-{team}",
            "pod_sets": [{"name": "main", "count": 1, "requests": {"nvidia.com/gpu": gpus}}],
            **more,
        }
        answer = self.stack.call("POST", "/api/v1/workloads/", body, token=self.tokens[person])
        assert answer.status == 201, (answer.status, answer.body)
        return str(answer.headers["Location"])

    def see(self, person: str, address: str) -> dict[str, Any]:
        path = "/" + address.split("/", 3)[3] if "://" in address else address
        answer = self.stack.call("GET", path, token=self.tokens[person])
        assert answer.status == 200, (answer.status, answer.body)
        return dict(answer.body)

    def until(self, person: str, address: str, status: str) -> dict[str, Any]:
        def arrived() -> dict[str, Any] | None:
            seen = self.see(person, address)
            return seen if seen["status"] == status else None

        found = self.stack.until(arrived, f"{address} is {status}")
        return dict(found)

    def timeline(self, person: str, address: str) -> list[tuple[str, str]]:
        """The lines of the workload's story, as its page tells it."""
        return [(line["kind"], line["reason"]) for line in self.see(person, address)["events"]]

    def usage(self, name: str) -> list[tuple[str, str, int, bool]]:
        """Holding, lender, GPUs and whether it has ended, for each usage interval in order."""
        rows = self.stack.rows(
            "SELECT u.holding, u.lender, u.amount, u.ended_at IS NOT NULL AS ended"
            " FROM scheduling_usageinterval u JOIN scheduling_workload w ON w.uid = u.workload_id"
            " WHERE w.name = %s ORDER BY u.started_at, u.holding, u.lender",
            name,
        )
        return [tuple(row.values()) for row in rows]


@pytest.fixture
def platform(stack: Stack) -> Platform:
    return Platform(stack)


@pytest.fixture
def three_teams(manifests: Path) -> str:
    return (manifests / "kueue-three-teams.yaml").read_text()


def overlay(text: str, change: Callable[[dict[str, Any]], None]) -> str:
    """Return the two lenders of the file, changed, with entries for their namespaces."""
    queues = [
        document
        for document in yaml.safe_load_all(text)
        if document["kind"] == "ClusterQueue" and document["metadata"]["name"] in LENDERS
    ]
    for queue in queues:
        change(queue["spec"])
    return as_text([*queues, *ENTRIES, URGENT])


def may_reclaim(spec: dict[str, Any]) -> None:
    spec["preemption"] = {"reclaimWithinCohort": "LowerPriority"}


def test_plataforma_takes_back_what_datos_borrowed(
    platform: Platform, three_teams: str, manifests: Path
) -> None:
    platform.start_workers()
    platform.declare((manifests / "cluster-1-node.yaml").read_text())
    platform.declare(three_teams)
    found = platform.declare(overlay(three_teams, may_reclaim))
    assert "LENDER_CANNOT_RECLAIM" not in {warning["code"] for warning in found}

    # Datos runs on its own two GPUs, then borrows two more.
    own = platform.submit("lea", "datos", "llama-70b", 2)
    platform.until("lea", own, "running")
    borrower = platform.submit("lea", "datos", "batch-eval", 2)
    placed = platform.until("lea", borrower, "running")
    assert "h100-node-01" in json.dumps(placed)
    assert platform.usage("batch-eval") == [
        ("borrowed", "cq-ia", 1, False),
        ("borrowed", "cq-plataforma", 1, False),
    ]

    # Plataforma wants its own GPU: the borrower goes back into the queue.
    urgent = platform.submit("pia", "plataforma", "guardrails", 1, priority_class="urgent")
    platform.until("pia", urgent, "running")
    waiting = platform.until("lea", borrower, "pending")
    assert platform.see("lea", own)["status"] == "running"
    platform.stack.until(
        lambda: platform.see("lea", borrower)["pending_reason"], "the borrower knows why it waits"
    )
    assert waiting["status"] == "pending"
    assert platform.timeline("lea", borrower) == [
        ("submitted", ""),
        ("admitted", ""),
        ("loan_opened", ""),
        ("started", ""),
        ("evicted", "Preempted"),
        ("requeued", "Preempted"),
        ("loan_closed", ""),
    ]
    assert ("preempting", "InCohortReclamation") in platform.timeline("pia", urgent)
    assert [ended for *_, ended in platform.usage("batch-eval")] == [True, True]
    assert platform.usage("guardrails") == [("nominal", "", 1, False)]

    # Plataforma is done: Datos's job is admitted again, and borrows again.
    done = platform.stack.call(
        "DELETE", urgent.removeprefix(platform.stack.url), token=platform.tokens["pia"]
    )
    assert done.status in {200, 202, 204}, done.body
    platform.until("lea", borrower, "running")
    assert [ended for *_, ended in platform.usage("batch-eval")] == [True, True, False, False]
    assert platform.timeline("lea", borrower)[7:] == [
        ("admitted", ""),
        ("loan_opened", ""),
        ("started", ""),
    ]
    assert ledger(platform) == {
        ("cq-ia", True): 1,
        ("cq-plataforma", True): 1,
        ("cq-ia", False): 1,
        ("cq-plataforma", False): 1,
    }


def ledger(platform: Platform) -> dict[tuple[str, bool], int]:
    """GPUs lent to Datos, by lender and whether the loan is over."""
    rows = platform.stack.rows(
        "SELECT lender, ended_at IS NOT NULL AS over, sum(amount) AS gpus"
        " FROM scheduling_usageinterval"
        " WHERE holding = 'borrowed' AND cluster_queue = 'cq-datos' GROUP BY 1, 2"
    )
    return {(row["lender"], row["over"]): int(row["gpus"]) for row in rows}


def test_with_the_file_unchanged_plataforma_waits_and_ada_was_warned(
    platform: Platform, three_teams: str, manifests: Path
) -> None:
    platform.start_workers()
    platform.declare((manifests / "cluster-1-node.yaml").read_text())
    found = platform.declare(three_teams)
    found += platform.declare(overlay(three_teams, lambda _spec: None))
    codes = {warning["code"] for warning in found}
    assert {"LENDER_CANNOT_RECLAIM", "FIELD_RENAMED"} <= codes

    borrower = platform.submit("lea", "datos", "batch-eval", 4)
    platform.until("lea", borrower, "running")
    urgent = platform.submit("pia", "plataforma", "guardrails", 1, priority_class="urgent")
    waiting = platform.stack.until(
        lambda: (seen := platform.see("pia", urgent))["pending_reason"] and seen,
        "Plataforma's job says why it waits",
    )
    assert waiting["status"] == "pending"
    assert platform.see("lea", borrower)["status"] == "running"
    assert platform.timeline("lea", borrower)[-1] == ("started", "")
