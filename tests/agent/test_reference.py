"""The reference agent by itself: a folder, real processes, and a platform that can be told."""

import json
import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from gpuplatform.agent.client import Refused
from gpuplatform.agent.commands import NothingToRun, start_of
from gpuplatform.agent.loop import Agent, Machine
from gpuplatform.agent.memory import Kept, Taken, open_memory
from gpuplatform.agent.processes import Processes, Start, began

# The tests start and kill processes of this machine: one worker at a time.
pytestmark = pytest.mark.xdist_group("agent")

NAME = "12.1.worker.0.1@node-1"


class Told:
    """A platform that remembers what it was told and wants what a test wants."""

    def __init__(self) -> None:
        self.epoch, self.sequence = 0, 0
        self.reports: list[dict[str, Any]] = []
        self.run: list[dict[str, Any]] = []
        self.stop: list[dict[str, Any]] = []

    def hello(self, epoch: int | None, version: str) -> dict[str, Any]:
        if epoch is None:
            self.epoch, self.sequence = self.epoch + 1, 0
        elif epoch != self.epoch:
            raise Refused(409, ["STALE_EPOCH"], "no", {"epoch": epoch, "current": self.epoch})
        return {"epoch": self.epoch, "sequence": self.sequence, "poll_s": 0.01}

    def report(self, epoch: int, reports: list[dict[str, Any]]) -> dict[str, Any]:
        for row in reports:
            if row["sequence"] > self.sequence + 1:
                raise Refused(409, ["SEQUENCE_GAP"], "no", {"expected": self.sequence + 1})
            if row["sequence"] > self.sequence:
                self.sequence = row["sequence"]
                self.reports.append(row)
        return {"sequence": self.sequence}

    def desired(self, epoch: int) -> dict[str, Any]:
        return {"run": self.run, "stop": self.stop}

    def kinds(self, member: str = NAME) -> list[str]:
        return [row["kind"] for row in self.reports if row.get("member") == member]


def wanted(command: str, **more: Any) -> dict[str, Any]:
    return {
        "member": NAME,
        "workload": {"uid": "u", "namespace": "ns", "name": "train"},
        "admission": 12,
        "attempt": 1,
        "pod_set": "worker",
        "node": "node-1",
        "slot": 0,
        "rank": 1,
        "gang": {"size": 2, "leader": "node-0", "nodes": ["node-0", "node-1"]},
        "heard": "",
        "gpus": 1,
        "devices": None,
        "command": command,
        "container": None,
        **more,
    }


@pytest.fixture
def told() -> Told:
    return Told()


@pytest.fixture
def start(tmp_path: Path, told: Told) -> Iterator[Callable[[], Agent]]:
    """Start the agent, or start it again as after a kill: what it held in memory is gone."""
    held: list[tuple[Agent, Any]] = []

    def begin() -> Agent:
        if held:
            held[-1][1].close()
        memory, lock = open_memory(tmp_path / "agent")
        machine = Machine("node-1", 2, 4, 2**30, {})
        held.append((Agent(told, machine, memory), lock))  # type: ignore[arg-type]
        return held[-1][0]

    yield begin
    for kept in held[-1][0].memory.members.values():
        held[-1][0].processes.signal(kept.pid, kept.begun, signal.SIGKILL)
    for agent, lock in held:
        agent.processes.close()
        lock.close()


def rounds(agent: Agent, true: Callable[[], Any]) -> None:
    until = time.monotonic() + 10
    while not true():
        assert time.monotonic() < until, agent.memory
        agent.round()
        time.sleep(0.01)


@pytest.mark.parametrize(
    ("command", "kind", "code"), [("exit 0", "finished", None), ("exit 7", "failed", 7)]
)
def test_a_member_runs_once_and_its_exit_code_is_told(
    start: Callable[[], Agent], told: Told, command: str, kind: str, code: int | None
):
    agent = start()
    told.run = [wanted(command)]
    rounds(agent, lambda: kind in told.kinds())
    agent.round()
    assert told.kinds() == ["ready", kind]
    assert told.reports[-1].get("exit_code") == code


def test_an_agent_that_was_killed_finds_its_member_and_the_end_it_missed(
    start: Callable[[], Agent], told: Told, tmp_path: Path
):
    agent = start()
    told.run = [wanted(f"while [ ! -e {tmp_path}/go ]; do sleep 0.02; done; exit 3")]
    rounds(agent, lambda: told.kinds() == ["ready"])
    pid = agent.memory.members[NAME].pid
    agent = start()
    agent.round()
    assert (agent.memory.members[NAME].pid, told.epoch) == (pid, 1)
    (tmp_path / "go").touch()
    os.waitpid(pid, 0)  # it ends while no agent is there
    rounds(start(), lambda: told.kinds() == ["ready", "failed"])
    (failed,) = (row for row in told.reports if row["kind"] == "failed")
    assert failed["exit_code"] == 3


def test_a_member_whose_agent_died_between_starting_and_noting_it_is_found(
    start: Callable[[], Agent], told: Told
):
    agent = start()
    told.run = [wanted("sleep 60")]
    rounds(agent, lambda: told.kinds() == ["ready"])
    kept = agent.memory.members[NAME]
    pid, kept.pid, kept.begun = kept.pid, 0, ""
    agent.memory.save()
    agent = start()
    agent.round()
    assert agent.memory.members[NAME].pid == pid
    agent.processes.signal(pid, began(pid), signal.SIGKILL)


def test_a_member_of_another_agent_of_this_machine_is_not_taken_for_ones_own(
    start: Callable[[], Agent], told: Told, tmp_path: Path
):
    (tmp_path / "other").mkdir()
    other = Processes(tmp_path / "other")
    pid, begun = other.start(Start(NAME, ["sleep", "60"], {}, tmp_path))
    agent = start()
    assert (other.find(NAME), agent.processes.find(NAME)) == (pid, 0)
    agent.memory.members[NAME] = Kept(NAME, 0, "")
    agent.round()
    assert NAME not in agent.memory.members
    other.signal(pid, begun, signal.SIGKILL)
    other.close()


def test_a_number_that_another_process_has_by_now_is_not_taken_for_the_member(
    start: Callable[[], Agent], told: Told
):
    agent = start()
    agent.round()
    agent.memory.members[NAME] = Kept(NAME, os.getpid(), "1")
    told.run = [wanted("exit 0", heard="ready")]
    agent.round()
    assert told.kinds() == ["lost"]  # and we still live


def test_who_does_not_stop_is_killed_after_its_grace(start: Callable[[], Agent], told: Told):
    agent = start()
    told.run = [wanted("trap '' TERM; while :; do sleep 0.05; done")]
    rounds(agent, lambda: told.kinds() == ["ready"])
    time.sleep(0.1)
    told.run, told.stop = [], [{"member": NAME, "grace_s": 0.3}]
    before = time.monotonic()
    rounds(agent, lambda: "released" in told.kinds())
    assert time.monotonic() - before >= 0.3
    agent.round()
    assert told.kinds().count("released") >= 1
    assert not agent.memory.members


def test_what_is_asked_to_stop_and_never_ran_is_released_and_never_starts(
    start: Callable[[], Agent], told: Told
):
    agent = start()
    told.stop = [{"member": NAME, "grace_s": 30}]
    agent.round()
    told.run, told.stop = [wanted("exit 0")], []  # an answer that comes late
    agent.round()
    assert told.kinds() == ["released"]


def test_a_member_that_was_heard_of_and_is_not_known_is_lost(
    start: Callable[[], Agent], told: Told
):
    agent = start()
    told.run = [wanted("sleep 60", heard="ready")]
    agent.round()
    agent.round()
    assert told.kinds() == ["lost"]


def test_work_that_says_nothing_to_run_fails_with_the_reason(
    start: Callable[[], Agent], told: Told
):
    agent = start()
    told.run = [wanted("")]
    agent.round()
    assert told.kinds() == ["failed"]
    assert "gpuplatform.io/command" in told.reports[-1]["why"]


def test_two_members_never_share_a_gpu(start: Callable[[], Agent], told: Told):
    agent = start()
    others = [wanted("sleep 60", member=f"12.1.worker.{n}.1@node-1") for n in range(3)]
    told.run = others
    agent.round()
    assert [kept.gpus for kept in agent.memory.members.values()] == [[0], [1]]


def test_a_platform_that_has_forgotten_the_reports_is_told_anew(
    start: Callable[[], Agent], told: Told
):
    agent = start()
    told.run = [wanted("sleep 60")]
    rounds(agent, lambda: told.kinds() == ["ready"])
    told.sequence = 0  # its database was restored from a copy
    told.reports.clear()
    agent.memory.report("node", node={})
    agent.round()
    assert (told.epoch, told.kinds()) == (2, ["ready"])


def test_an_agent_that_was_replaced_ends(start: Callable[[], Agent], told: Told):
    agent = start()
    agent.round()
    told.epoch = 2  # another one with its name
    with pytest.raises(Refused):
        start().round()


def test_one_folder_is_for_one_agent(start: Callable[[], Agent], tmp_path: Path):
    start()
    with pytest.raises(Taken):
        open_memory(tmp_path / "agent")


def test_stopping_the_members_is_told_as_their_loss(start: Callable[[], Agent], told: Told):
    agent = start()
    told.run = [wanted("sleep 60")]
    rounds(agent, lambda: told.kinds() == ["ready"])
    agent.stop_members(5)
    assert told.kinds() == ["ready", "lost"]


def test_the_environment_says_who_the_member_is_and_holds_no_secret(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("SECRET_KEY", "hush")
    container = {"command": ["train", "$(RANK)"], "args": ["x"], "env": {"A": "1", "RANK": "9"}}
    row = wanted("", container=container)
    start = start_of(row, [0, 3], tmp_path)
    assert list(start.command) == ["train", "1", "x"]
    assert "hush" not in json.dumps(dict(start.environment))
    told = {key: start.environment[key] for key in ("A", "RANK", "WORLD_SIZE", "MASTER_ADDR")}
    assert told == {"A": "1", "RANK": "1", "WORLD_SIZE": "2", "MASTER_ADDR": "node-0"}
    assert start.environment["CUDA_VISIBLE_DEVICES"] == "0,3"
    with pytest.raises(NothingToRun):
        start_of(wanted("", container={"args": ["x"]}), [], tmp_path)
