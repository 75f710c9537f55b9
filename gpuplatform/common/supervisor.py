"""Run several processes as one: ordered start, readiness, restart, ordered stop, no orphans.

Used by ``manage.py up``; knows nothing of what it runs.
"""

import ctypes
import os
import signal
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import FrameType

GRACE_S = 15.0  # from the first TERM to KILL, for all services together
HEAD_START_S = 1.0  # of each service before the one that it stands on is told, too
READY_S = 60.0  # until a starting service must answer
SETTLED_S = 1.0  # a service without a question to ask is ready when it has lived this long
RESTARTS, RESTART_WINDOW_S = 5, 60.0  # more exits than this in the window: give up
TAIL_LINES = 20
_PR_SET_PDEATHSIG = 1
_prctl = ctypes.CDLL(None, use_errno=True).prctl if sys.platform == "linux" else None


def dies_with_parent(sig: signal.Signals = signal.SIGTERM) -> Callable[[], None]:
    """Return a ``preexec_fn``: the kernel sends ``sig`` to the child when its parent is gone.

    Linux only; elsewhere it does nothing. The parent is the thread that starts the child, so
    start children from a thread that lives as long as the process.
    """
    parent = os.getpid()

    def ask_kernel() -> None:
        if _prctl is not None:
            _prctl(_PR_SET_PDEATHSIG, int(sig))
            if os.getppid() != parent:  # it died between fork and this line
                os._exit(1)

    return ask_kernel


@dataclass(frozen=True, slots=True)
class Service:
    """One process to keep alive. ``ready`` answers whether it can be used; None: it just runs."""

    name: str
    argv: Sequence[str]
    ready: Callable[[], bool] | None = None


@dataclass
class Child:
    """A service's process and the memory of its exits."""

    service: Service
    process: subprocess.Popen[str]
    tail: deque[str]
    exits: deque[float] = field(default_factory=deque)
    restart_at: float | None = None


class GivenUp(Exception):
    """A service cannot be kept running; the message ends with its last lines."""


class Supervisor:
    """Starts services in order and keeps them running until asked to stop."""

    def __init__(
        self,
        services: Sequence[Service],
        *,
        environment: Mapping[str, str],
        folder: str,
        say: Callable[[str], None],
        backoff_s: float = 0.5,
    ) -> None:
        self.services = services
        self.environment = dict(environment)
        self.folder = folder
        self.say = say
        self.backoff_s = backoff_s
        self.children: list[Child] = []
        self._relays: list[threading.Thread] = []
        self._stop = threading.Event()
        self._hurry = False
        self._width = max(len(service.name) for service in services)

    def run(self, on_ready: Callable[[], None]) -> int:
        """Run until a signal or a failure; return the exit code (0 after a signal)."""
        before = {sig: signal.signal(sig, self._on_signal) for sig in self._signals()}
        try:
            self._start_all()
            if not self._stop.is_set():
                on_ready()
            while not self._stop.wait(0.2):
                self._keep_alive()
        except GivenUp as failure:
            self.say(str(failure))
            return 1
        finally:
            self._stop_all()
            for sig, handler in before.items():
                signal.signal(sig, handler)
        return 0

    @staticmethod
    def _signals() -> tuple[signal.Signals, ...]:
        return (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

    def _on_signal(self, _number: int, _frame: FrameType | None) -> None:
        self._hurry = self._stop.is_set()  # asked a second time: no more patience
        self._stop.set()

    # ---- start --------------------------------------------------------------------------------
    def _start_all(self) -> None:
        for service in self.services:
            if self._stop.is_set():
                return
            tail: deque[str] = deque(maxlen=TAIL_LINES)
            child = Child(service, self._spawn(service, tail), tail)
            self.children.append(child)
            self._await_ready(child)

    def _spawn(self, service: Service, tail: deque[str]) -> subprocess.Popen[str]:
        process = subprocess.Popen(  # noqa: S603  # our own argument lists
            service.argv,
            cwd=self.folder,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            start_new_session=True,  # Ctrl-C reaches us only, and we stop them in order
            preexec_fn=dies_with_parent(),  # noqa: PLW1509  # it only calls prctl
        )
        relay = threading.Thread(target=self._relay, args=(service, process, tail), daemon=True)
        relay.start()
        self._relays.append(relay)
        return process

    def _relay(self, service: Service, process: subprocess.Popen[str], tail: deque[str]) -> None:
        assert process.stdout is not None
        with process.stdout as lines:
            for line in lines:
                if text := line.rstrip():
                    tail.append(text)
                    self.say(f"{service.name:<{self._width}} | {text}")

    def _await_ready(self, child: Child) -> None:
        begun = time.monotonic()
        while not self._stop.wait(0.1):
            waited = time.monotonic() - begun
            if child.process.poll() is not None:
                raise GivenUp(self._obituary(child, "stopped while starting"))
            if child.service.ready is None:
                if waited >= SETTLED_S:
                    return
            elif child.service.ready():
                return
            if waited >= READY_S:
                raise GivenUp(self._obituary(child, f"was not ready within {READY_S:.0f} s"))

    # ---- keep ---------------------------------------------------------------------------------
    def _keep_alive(self) -> None:
        now = time.monotonic()
        for child in self.children:
            if child.restart_at is not None:
                if now >= child.restart_at:
                    child.restart_at = None
                    child.process = self._spawn(child.service, child.tail)
            elif (code := child.process.poll()) is not None:
                self._plan_restart(child, code, now)

    def _plan_restart(self, child: Child, code: int, now: float) -> None:
        child.exits.append(now)
        while child.exits[0] < now - RESTART_WINDOW_S:
            child.exits.popleft()
        if len(child.exits) >= RESTARTS:
            times = f"stopped {RESTARTS} times in {RESTART_WINDOW_S:.0f} s"
            raise GivenUp(self._obituary(child, times))
        wait_s = self.backoff_s * 2 ** (len(child.exits) - 1)
        child.restart_at = now + wait_s
        self.say(f"{child.service.name} stopped with code {code}; again in {wait_s:g} s")

    def _obituary(self, child: Child, what: str) -> str:
        time.sleep(0.2)  # its last lines are on their way through the pipe
        lines = "\n".join(f"    {line}" for line in child.tail)
        return f"{child.service.name} {what}. Its last lines:\n{lines}"

    # ---- stop ---------------------------------------------------------------------------------
    def _stop_all(self) -> None:
        deadline = time.monotonic() + GRACE_S
        for child in reversed(self.children):
            if child.process.poll() is None:
                child.process.terminate()
                self._await_end(child, min(deadline, time.monotonic() + HEAD_START_S))
        for child in reversed(self.children):
            self._await_end(child, deadline)
            if child.process.poll() is None:
                child.process.kill()
            child.process.wait()
        for relay in self._relays:
            relay.join(1.0)  # what was said last

    def _await_end(self, child: Child, deadline: float) -> None:
        while child.process.poll() is None and time.monotonic() < deadline and not self._hurry:
            time.sleep(0.05)
