"""The agent at work: look at the processes, report, ask what should run, make it so.

Every round does all of it from what is remembered and what is so, whatever came before: a round
that is cut off, a platform that is away or an agent that is killed cost time and nothing else.
"""

import logging
import signal
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from gpuplatform.agent.client import Away, Platform, Refused
from gpuplatform.agent.commands import NothingToRun, spelled, start_of
from gpuplatform.agent.memory import Kept, Memory
from gpuplatform.agent.processes import Processes, began

logger = logging.getLogger("gpuplatform.agent")
VERSION = "gpuplatform reference agent"
BATCH = 200
CHECKPOINT = ".checkpoint"  # a file that a member touches when its progress is safe
REMEMBERED_S = 24 * 3600.0  # how long the agent knows that a member is over


@dataclass(frozen=True, slots=True)
class Machine:
    """The node that this agent is: its name and what it has, as reports spell it."""

    name: str
    gpus: int
    cpus: int
    memory: int  # bytes
    labels: Mapping[str, str]

    def as_report(self) -> dict[str, Any]:
        """Return the node as it is declared."""
        capacity = {"cpu": self.cpus, "memory": self.memory, "pods": 110}
        if self.gpus:
            capacity["nvidia.com/gpu"] = self.gpus
        return {"name": self.name, "labels": dict(self.labels), "capacity": capacity}


class Agent:
    """One agent. ``poll_s`` 0: as often as the platform wants."""

    def __init__(
        self, platform: Platform, machine: Machine, memory: Memory, *, poll_s: float = 0
    ) -> None:
        self.platform, self.machine, self.memory = platform, machine, memory
        self.processes = Processes(memory.folder)
        self._poll_s, self._told_poll_s = poll_s, 2.0
        self._greeted = False
        self._stop = threading.Event()

    def stop_members(self, patience_s: float = 30.0) -> None:
        """Stop all members and report them as lost: what becomes of them, the platform decides."""
        for kept in self.memory.members.values():
            self.processes.signal(kept.pid, kept.begun, signal.SIGTERM)
        until = time.monotonic() + patience_s
        while any(self._lives(kept) for kept in self.memory.members.values()):
            if time.monotonic() > until:
                break
            time.sleep(0.1)
        for kept in list(self.memory.members.values()):
            self.processes.signal(kept.pid, kept.begun, signal.SIGKILL)
            del self.memory.members[kept.member]
            self._give_up(kept.member, "lost", why="its agent was stopped")
        self.processes.close()
        self._report()

    def _lives(self, kept: Kept) -> bool:
        return self.processes.runs(kept.pid, kept.begun)

    def stop(self, *_signal: object) -> None:
        """End after this round; members go on."""
        self._stop.set()

    def run(self) -> None:
        """Work until asked to stop.

        Raises:
            Refused: the platform does not want this agent, or not this node.
        """
        while not self._stop.is_set():
            try:
                self.round()
            except Away as error:
                logger.warning("the platform is away: %s", error)
            self._stop.wait(self._poll_s or self._told_poll_s)

    def round(self) -> None:
        """Do everything that is to be done now."""
        self._look()
        if not self._greeted:
            self._greet()
        self._report()
        desired = self.platform.desired(self.memory.epoch or 0)
        self._converge(desired)
        self._look()
        if self.memory.outbox:
            self._report()

    # ---- talking -------------------------------------------------------------------------------
    def _greet(self) -> None:
        memory = self.memory
        answer = self._hello()
        memory.taken(answer["sequence"])
        memory.report("node", node=self.machine.as_report())
        memory.save()
        self._told_poll_s = float(answer["poll_s"])
        self._greeted = True
        logger.info("epoch %s, report %s: hello", memory.epoch, answer["sequence"])

    def _hello(self) -> dict[str, Any]:
        """Go on in the epoch; begin a new one where the platform does not know it any more.

        An epoch that is newer than ours is another agent's: then ours has to end.
        """
        epoch = self.memory.epoch
        if epoch is None:
            return self._begin()
        try:
            return self.platform.hello(epoch, VERSION)
        except Refused as error:
            if error.numbers.get("current", epoch) >= epoch:
                raise
        return self._begin()

    def _begin(self) -> dict[str, Any]:
        """Begin a new epoch, and tell anew what runs."""
        answer = self.platform.hello(None, VERSION)
        self.memory.begin(answer["epoch"])
        for kept in self.memory.members.values():
            self.memory.report("ready", member=kept.member)
        self.memory.save()
        return answer

    def _report(self) -> None:
        """Send what is unsent; nothing unsent is a heartbeat."""
        while True:
            batch = self.memory.outbox[:BATCH]
            try:
                answer = self.platform.report(self.memory.epoch or 0, batch)
            except Refused as error:
                if "SEQUENCE_GAP" not in error.codes:
                    raise
                self._begin()  # the platform has forgotten what it had taken
                continue
            self.memory.taken(answer["sequence"])
            if batch:
                self.memory.save()
            if not self.memory.outbox:
                return

    # ---- looking -------------------------------------------------------------------------------
    def _look(self) -> None:
        """Notice members that have ended, or saved their progress; kill who stays too long."""
        now, before = time.time(), self.memory.sequence
        for kept in list(self.memory.members.values()):
            if not kept.pid:
                self._find(kept)
            elif not self.processes.runs(kept.pid, kept.begun):
                self._note_end(kept)
            else:
                self._note_running(kept, now)
        self.memory.gone = {k: at for k, at in self.memory.gone.items() if at > now - REMEMBERED_S}
        if self.memory.sequence != before:
            self.memory.save()

    def _find(self, kept: Kept) -> None:
        """Find a member that was being started when the agent was killed."""
        pid = self.processes.find(kept.member)
        if pid:
            kept.pid, kept.begun = pid, began(pid)
            logger.info("%s is process %s", kept.member, pid)
            self._tell_ready(kept)
        elif self.processes.exit_code(kept.member) is not None:
            self._note_end(kept)
        else:
            del self.memory.members[kept.member]  # it was not started: what should run will be
            self.memory.save()

    def _note_running(self, kept: Kept, now: float) -> None:
        if kept.kill_at is not None and now >= kept.kill_at:
            logger.info("%s did not stop: killed", kept.member)
            self.processes.signal(kept.pid, kept.begun, signal.SIGKILL)
            return
        saved = self.memory.folder / f"{kept.member}{CHECKPOINT}"
        if saved.exists():
            at = datetime.fromtimestamp(saved.stat().st_mtime, UTC).isoformat()
            saved.unlink(missing_ok=True)
            self.memory.report("checkpoint", member=kept.member, at=at)

    def _note_end(self, kept: Kept) -> None:
        """Report a member that is over, with its exit code; a file tells it even days later."""
        self.processes.signal(
            kept.pid, kept.begun, signal.SIGKILL
        )  # what it has left behind in its group
        code = self.processes.exit_code(kept.member)
        facts: dict[str, Any] = {"member": kept.member, "at": datetime.now(UTC).isoformat()}
        if kept.stop_at is not None:
            self.memory.report(
                "released", **facts, **({} if code is None else {"exit_code": code})
            )
        elif code == 0:
            self.memory.report("finished", **facts)
        elif code is None:
            self.memory.report("lost", **facts, why="exit code unknown")
        else:
            self.memory.report("failed", **facts, exit_code=code)
        logger.info("%s is over: %s", kept.member, "unknown" if code is None else code)
        self.memory.members.pop(kept.member, None)
        self.memory.gone[kept.member] = time.time()
        self.memory.save()
        self.processes.forget(kept.member, kept.pid)

    # ---- making it so --------------------------------------------------------------------------
    def _converge(self, desired: Mapping[str, Any]) -> None:
        """Stop what should be gone, then start what should run and does not."""
        wanted = {row["member"]: row for row in desired["run"]}
        leaving = {row["member"]: float(row["grace_s"]) for row in desired["stop"]}
        for name in [*self.memory.members, *leaving]:
            if name not in wanted:
                self._stop_member(name, leaving.get(name, 0.0))
        for row in wanted.values():
            if row["node"] == self.machine.name and row["member"] not in self.memory.members:
                self._start(row)
        self.memory.save()

    def _stop_member(self, name: str, grace_s: float) -> None:
        kept = self.memory.members.get(name)
        if kept is None:
            self.memory.gone[name] = time.time()
            self.memory.report("released", member=name)
        elif kept.stop_at is None:
            kept.stop_at = time.time()
            kept.kill_at = kept.stop_at + grace_s
            self.memory.save()
            logger.info("%s is asked to stop, within %g s", name, grace_s)
            self.processes.signal(kept.pid, kept.begun, signal.SIGTERM)

    def _start(self, wanted: Mapping[str, Any]) -> None:
        """Start a member, once: one that was heard of and is not known here is lost."""
        name = wanted["member"]
        if name in self.memory.gone:
            return
        if wanted["heard"]:
            self._give_up(name, "lost", why="the agent does not know it")
            return
        gpus = self._free_gpus(wanted)
        if gpus is None:
            return  # somebody is still stopping
        kept = self.memory.members[name] = Kept(name, gpus=gpus)
        self.memory.save()  # known before it runs: whoever finds this looks for the process
        try:
            start = start_of(wanted, gpus, self.memory.folder)
            kept.pid, kept.begun = self.processes.start(start)
        except (NothingToRun, OSError) as error:
            del self.memory.members[name]
            self._give_up(name, "failed", exit_code=127, why=str(error)[:64])
            return
        logger.info("%s is process %s: %s", name, kept.pid, spelled(start.command))
        self._tell_ready(kept)

    def _tell_ready(self, kept: Kept) -> None:
        kept.told = "ready"
        at = datetime.now(UTC).isoformat()
        self.memory.report("ready", member=kept.member, at=at)
        self.memory.save()

    def _give_up(self, name: str, kind: str, **facts: Any) -> None:
        logger.warning("%s is %s: %s", name, kind, facts["why"])
        self.memory.gone[name] = time.time()
        self.memory.report(kind, member=name, **facts)
        self.memory.save()

    def _free_gpus(self, wanted: Mapping[str, Any]) -> list[int] | None:
        """Return the GPUs of a member: those that the platform chose, else the first free ones."""
        taken = {gpu for kept in self.memory.members.values() for gpu in kept.gpus}
        chosen = wanted.get("devices")
        if chosen is not None:
            return list(chosen)
        free = [gpu for gpu in range(self.machine.gpus) if gpu not in taken]
        return free[: wanted["gpus"]] if len(free) >= wanted["gpus"] else None
