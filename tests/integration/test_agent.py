"""Real processes on machines of real agents, while everything else is killed beside them."""

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.integration.cluster import GPU, declare, queue
from tests.integration.stack import BEAT, WORKER, Stack

pytestmark = pytest.mark.services
PEOPLE = (Path(__file__).parent / "people.py").read_text()
PRICE = "/api/v1/prices/"
COMMAND = (
    'env > "$OUT/$GPUPLATFORM_ATTEMPT-$RANK.new";'
    ' mv "$OUT/$GPUPLATFORM_ATTEMPT-$RANK.new" "$OUT/$GPUPLATFORM_ATTEMPT-$RANK";'
    ' touch "../$GPUPLATFORM_NODE/$GPUPLATFORM_MEMBER.checkpoint";'
    ' while [ ! -e "$OUT/done" ]; do sleep 0.1; done'
)


class Yard:
    """A platform, and two machines of two GPUs each that are this one."""

    def __init__(self, stack: Stack) -> None:
        self.stack, self.out = stack, stack.home / "out"
        self.out.mkdir()
        stack.environment["CLUSTER_BACKEND"] = "external"
        stack.environment["AGENT_POLL_S"] = "0.2"
        told = stack.manage("shell", "-v", "0", text=PEOPLE)
        self.token = json.loads(told.splitlines()[-1])["ada"]
        self.token_file = stack.home / "token"
        issued = ("issue_token", "ada", "--name", "agents", "--scope", "cluster:agent")
        self.token_file.write_text(stack.manage(*issued))
        declare(stack, queue(4))
        stack.start_web()
        stack.start(*BEAT, "-s", str(stack.home / "beat"))
        self.worker = stack.start(*WORKER)
        self.agents = {name: self.start_agent(name) for name in ("node-1", "node-2")}

    def start_agent(self, name: str) -> subprocess.Popen:
        machine = ("--node", name, "--gpus", "2", "--label", "pool=a", "--memory-gib", "4")
        where = ("--url", self.stack.url, "--token-file", str(self.token_file))
        folder = ("--folder", str(self.stack.home / "agents"))
        command = ["manage.py", "agent", *where, *machine, *folder]
        return self.stack.start_command([sys.executable, *command])

    def kill(self, process: subprocess.Popen) -> None:
        process.kill()
        process.wait()

    def submit(self) -> str:
        container = {"name": "main", "command": ["/bin/sh", "-c", COMMAND], "env": []}
        container["env"] = [{"name": "OUT", "value": str(self.out)}]
        body = {
            "name": "train",
            "namespace": "ns",
            "queue": "lq",
            "on_failure": "restart",
            "pod_sets": [{"name": "worker", "count": 2, "requests": {GPU: 2}}],
            "template": {"spec": {"containers": [container]}},
        }
        answer = self.stack.call("POST", "/api/v1/workloads/", body, token=self.token)
        assert answer.status == 201, answer.body
        return str(answer.body["uid"])

    def see(self, uid: str) -> dict[str, Any]:
        return dict(self.stack.call("GET", f"/api/v1/workloads/{uid}/", token=self.token).body)

    def until(self, uid: str, status: str) -> dict[str, Any]:
        self.stack.until(lambda: self.see(uid).get("status") == status, f"it is {status}", 40)
        return self.see(uid)

    def told(self, attempt: int, rank: int) -> dict[str, str]:
        """What the process of a member was told, once it runs."""
        path = self.out / f"{attempt}-{rank}"
        self.stack.until(path.exists, f"rank {rank} of attempt {attempt} runs", 40)
        return dict(re.findall(r"^(\w+)=(.*)$", path.read_text(), re.MULTILINE))

    def memory(self, node: str) -> dict[str, Any]:
        told = json.loads((self.stack.home / "agents" / node / "agent.json").read_text())
        return dict(told)

    def pid(self, node: str) -> int:
        (member,) = self.memory(node)["members"]
        return int(member["pid"])


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"


def child_of(pid: int) -> int:
    found = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return int(found[0])


@pytest.fixture
def yard(stack: Stack) -> Yard:
    return Yard(stack)


def test_a_gang_of_real_processes_lives_through_killed_members_agents_and_workers(yard: Yard):
    stack = yard.stack
    answer = stack.call(
        "POST", PRICE, {"unit": "gpu_hour", "subject": "*", "amount": "3600.00"}, token=yard.token
    )
    assert answer.status == 201, answer.body
    uid = yard.submit()
    yard.until(uid, "running")
    first = [yard.told(1, rank) for rank in (0, 1)]
    assert [row["CUDA_VISIBLE_DEVICES"] for row in first] == ["0,1", "0,1"]
    assert {row["WORLD_SIZE"] for row in first} == {"2"}
    assert {row["GPUPLATFORM_GANG_NODES"] for row in first} == {"node-1,node-2"}
    assert not any(key.startswith(("DATABASE", "CELERY", "SECRET")) for key in first[0])

    # A member dies; so do, beside it, the other one's agent and the worker.
    stayed = yard.pid("node-1")
    yard.kill(yard.agents["node-1"])
    yard.kill(yard.worker)
    os.kill(child_of(yard.pid("node-2")), signal.SIGKILL)
    stack.until(
        lambda: stack.one("SELECT count(*) FROM scheduling_memberstate WHERE exit_code = 137"),
        "the death is told while nobody decides",
    )
    assert alive(stayed)
    before = yard.memory("node-1")
    yard.worker = stack.start(*WORKER)
    yard.agents["node-1"] = yard.start_agent("node-1")  # it finds its member, and stops it

    second = [yard.told(2, rank) for rank in (0, 1)]
    assert {row["GPUPLATFORM_ATTEMPT"] for row in second} == {"2"}
    assert not alive(stayed)
    yard.until(uid, "running")
    after = yard.memory("node-1")
    assert after["epoch"] == before["epoch"]
    assert after["sequence"] > before["sequence"]

    # An agent that is killed and comes back goes on with the same process.
    stayed = yard.pid("node-1")
    yard.kill(yard.agents["node-1"])
    yard.agents["node-1"] = yard.start_agent("node-1")
    (yard.out / "done").touch()
    ended = yard.until(uid, "finished")
    assert ended["outcome"] == "succeeded"
    kinds = [event["kind"] for event in ended["events"]]
    assert kinds.count("restarted") == 1
    assert stack.one("SELECT last_checkpoint_at IS NOT NULL FROM scheduling_workload")

    # Metered from the admission to the last member's end, and billed.
    stack.until(
        lambda: stack.one(
            "SELECT count(*) = 0 FROM scheduling_usageinterval WHERE ended_at IS NULL"
        ),
        "everything is given back",
    )
    states = stack.rows('SELECT attempt, "end", exit_code FROM scheduling_memberstate')
    assert sorted((row["attempt"], row["end"]) for row in states) == [
        (1, "failed"),
        (1, "released"),
        (2, "finished"),
        (2, "finished"),
    ]
    seconds = stack.one(
        "SELECT sum(amount * extract(epoch FROM ended_at - started_at))"
        " FROM scheduling_usageinterval WHERE resource = %s",
        GPU,
    )
    stack.manage("rebuild_bills")
    billed = stack.rows(
        "SELECT quantity, amount, unit_price FROM finops_billline"
        " WHERE cluster_queue = 'cq' AND unit = 'gpu_hours' AND origin = 'direct'"
    )
    hours = sum(row["quantity"] for row in billed)
    assert float(hours) == pytest.approx(float(seconds) / 3600, rel=1e-3)
    assert float(sum(row["amount"] for row in billed)) == pytest.approx(float(hours) * 3600, abs=1)
