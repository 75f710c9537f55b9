"""``manage.py up --demo`` as a newcomer meets it: embedded database and broker, one command."""

import contextlib
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests import services
from tests.integration.stack import ROOT

pytestmark = pytest.mark.services


class Terminal:
    """``manage.py up`` in a terminal of its own."""

    def __init__(self, home: Path, *arguments: str) -> None:
        self.port = services.free_port()
        self.lines: list[str] = []
        unset = {"DATABASE_URL", "CELERY_BROKER_URL", "DEBUG", "CI"}
        self.process = subprocess.Popen(
            [sys.executable, "manage.py", "up", "--port", str(self.port), *arguments],
            cwd=ROOT,
            env={
                **{name: value for name, value in os.environ.items() if name not in unset},
                "GPUPLATFORM_HOME": str(home),
            },
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
            preexec_fn=services.dies_with_parent(),  # noqa: PLW1509
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        with self.process.stdout as lines:
            for line in lines:
                self.lines.append(line.rstrip("\n"))

    def text(self) -> str:
        return "\n".join(self.lines)

    def wait_for(self, pattern: str, seconds: float) -> re.Match[str]:
        deadline = time.monotonic() + seconds
        while not (found := re.search(pattern, self.text(), re.MULTILINE)):
            ended = self.process.poll() is not None or time.monotonic() > deadline
            assert not ended, f"no {pattern!r} in:\n{self.text()}"
            time.sleep(0.05)
        return found

    def children(self) -> list[int]:
        """Process ids of everything that was started from here, dead or alive."""
        return [
            int(stat.parent.name)
            for stat in Path("/proc").glob("[0-9]*/stat")
            if (line := _read_or_nothing(stat))
            and int(line.rsplit(")", 1)[1].split()[1]) == self.process.pid
        ]

    def stop(self, sig: signal.Signals = signal.SIGINT) -> int:
        self.process.send_signal(sig)
        code = self.process.wait(25)
        self._reader.join(5)
        return code

    def kill(self) -> None:
        """End it whatever state it is in."""
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        self._reader.join(5)


def _read_or_nothing(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""


@pytest.fixture
def demo(tmp_path: Path) -> Iterator[Terminal]:
    terminal = Terminal(tmp_path, "--demo")
    yield terminal
    terminal.kill()


def curl(command: str, **changes: Any) -> tuple[int, Any]:
    """Run the printed command, with the body changed; return status and body."""
    words = shlex.split(command)
    place = words.index("-d") + 1
    words[place] = json.dumps({**json.loads(words[place]), **changes})
    done = subprocess.run(
        [*words, "-w", "\n%{http_code}"], capture_output=True, text=True, check=True
    )
    body, _, code = done.stdout.rpartition("\n")
    return int(code), json.loads(body)


def pods(count: int, gpus: int) -> list[dict[str, Any]]:
    return [{"name": "worker", "count": count, "requests": {"nvidia.com/gpu": gpus}}]


def see(command: str, address: str) -> Any:
    words = shlex.split(command)
    url = words[2].removesuffix("/api/v1/workloads/") + address
    header = words[words.index("-H") + 1]
    done = subprocess.run(["curl", "-sS", url, "-H", header], capture_output=True, check=True)
    return json.loads(done.stdout)


def listen(port: int, topics: str) -> list[str]:
    """Sign in as an open page does and collect what the server tells it, until the server ends."""
    told: list[str] = []
    browser = httpx.Client(base_url=f"http://localhost:{port}", timeout=30)
    browser.get("/login/")
    card = {"username": "ada", "password": "ada-demo"}
    token = {"csrfmiddlewaretoken": browser.cookies["csrftoken"]}
    assert browser.post("/login/", data=card | token).status_code == 302

    def read() -> None:
        with (
            contextlib.suppress(httpx.HTTPError),
            contextlib.closing(browser),
            browser.stream("GET", "/events/", params={"topics": topics}) as answer,
        ):
            for line in answer.iter_lines():
                told.append(line)  # noqa: PERF402  # each as it comes

    threading.Thread(target=read, daemon=True).start()
    return told


def test_the_demo_starts_answers_decides_and_stops_without_leaving_anything(
    demo: Terminal,
) -> None:
    demo.wait_for(r"Decisions, as they are taken", 300)
    assert f"http://localhost:{demo.port}/" in demo.text()
    assert len(re.findall(r"^  \S.* (ada|lea|ian|fin|aud)\b", demo.text(), re.MULTILINE)) >= 5
    command = demo.wait_for(r"^  (curl .*)$", 1)[1]

    told = listen(demo.port, "workloads nodes")  # a page that stays open to the end

    # A gang that fits is admitted with named nodes, and the terminal says so.
    begun = time.monotonic()
    status, posted = curl(command)
    assert (status, posted["status"]) == (201, "pending")
    address = f"/api/v1/workloads/{posted['uid']}/"
    while (seen := see(command, address))["status"] not in {"admitted", "running"}:
        assert time.monotonic() - begun < 20, seen
        time.sleep(0.05)
    demo.wait_for(r"admitted \S+/hello-gang \(2x1 GPUs\) on \S+", 20)

    while not re.search(r"^data: .*nodes", "\n".join(told), re.MULTILINE):  # the page knows too
        assert time.monotonic() - begun < 40, told
        time.sleep(0.05)

    # One that does not fit now waits, and says what is missing.
    status, posted = curl(command, name="too-soon", pod_sets=pods(8, 8))
    assert status == 201
    address = f"/api/v1/workloads/{posted['uid']}/"
    while (seen := see(command, address))["pending_reason"] in {"", "PendingEvaluation"}:
        assert time.monotonic() - begun < 60, seen
        time.sleep(0.05)
    assert seen["status"] == "pending"
    assert any(re.search(r"\d", json.dumps(blocker)) for blocker in seen["blockers"]), seen

    # One that can never run is refused with its code.
    status, refused = curl(command, name="too-large", pod_sets=pods(1000, 8))
    assert status == 422
    codes = {error["code"] for error in refused["errors"]}
    assert {"NEVER_FITS_QUEUE", "NEVER_FITS_CLUSTER"} <= codes

    children = demo.children()
    assert len(children) == 4
    assert demo.stop() == 0
    assert demo.lines[-1] == "Everything has stopped."
    assert not [pid for pid in children if Path(f"/proc/{pid}").exists()]


def test_a_taken_port_is_named_before_anything_starts(tmp_path: Path) -> None:
    with services.socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        done = subprocess.run(
            [sys.executable, "manage.py", "up", "--port", str(port)],
            cwd=ROOT,
            env={**os.environ, "GPUPLATFORM_HOME": str(tmp_path)},
            capture_output=True,
            text=True,
            check=False,
        )
    assert done.returncode == 1
    assert f"Port {port} is not free" in done.stderr
    assert not (tmp_path / "db.sqlite3").exists()
