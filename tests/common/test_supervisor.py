"""Several processes as one: real ones, so that signals are real too."""

import io
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from gpuplatform.common.management.commands import up
from gpuplatform.common.supervisor import Service, Supervisor

ROOT = Path(__file__).resolve().parents[2]
# Says its name, then waits for TERM and says goodbye.
POLITE = """
import signal, sys
signal.signal(signal.SIGTERM, lambda *_: (print("bye", flush=True), sys.exit(0)))
print("hello", flush=True)
signal.pause()
"""


def service(name: str, code: str, ready: Callable[[], bool] | None = None) -> Service:
    return Service(name, (sys.executable, "-c", code), ready)


def supervise(services: list[Service], *, then: Callable[[], object]) -> tuple[int, list[str]]:
    said: list[str] = []
    supervisor = Supervisor(
        services, environment=os.environ, folder=str(ROOT), say=said.append, backoff_s=0.01
    )
    return supervisor.run(then), said


def interrupt() -> None:
    os.kill(os.getpid(), signal.SIGINT)


def test_services_start_in_order_and_stop_in_reverse_with_their_names_before_each_line() -> None:
    code, said = supervise([service("one", POLITE), service("two", POLITE)], then=interrupt)
    assert code == 0
    assert said == ["one | hello", "two | hello", "two | bye", "one | bye"]


def test_the_next_service_waits_until_the_one_before_is_ready() -> None:
    begun = time.monotonic()
    asked: list[float] = []

    def ready() -> bool:
        asked.append(time.monotonic() - begun)
        return len(asked) == 3

    code, said = supervise(
        [service("web", POLITE, ready), service("worker", POLITE)], then=interrupt
    )
    assert (code, len(asked)) == (0, 3)
    assert said.index("web    | hello") < said.index("worker | hello")


TWICE_MORTAL = """
import pathlib, signal, sys, time
marks = pathlib.Path(sys.argv[1])
with marks.open("a") as file:
    file.write("x")
if len(marks.read_text()) == 3:
    signal.pause()
time.sleep(0.3)
sys.exit(3)
"""


def test_a_service_that_ends_is_started_again(tmp_path: Path) -> None:
    marks = tmp_path / "starts"

    def interrupt_after_the_third_start() -> None:
        until(lambda: len(marks.read_text()) == 3)
        interrupt()

    waiting = threading.Thread(target=interrupt_after_the_third_start)
    argv = (sys.executable, "-c", TWICE_MORTAL, str(marks))
    code, said = supervise([Service("worker", argv, lambda: True)], then=waiting.start)
    waiting.join()
    assert (code, marks.read_text()) == (0, "xxx")
    assert said == [
        "worker stopped with code 3; again in 0.01 s",
        "worker stopped with code 3; again in 0.02 s",
    ]


def test_a_service_that_cannot_live_is_given_up_with_its_last_lines() -> None:
    dying = "import time; print('no database', flush=True); time.sleep(0.3)"
    begun = time.monotonic()
    code, said = supervise(
        [service("web", POLITE), service("worker", dying, lambda: True)], then=lambda: None
    )
    assert code == 1
    assert (
        "worker stopped 5 times in 60 s. Its last lines:\n    no database" in said[-2] + said[-1]
    )
    assert time.monotonic() - begun < 20


def test_a_service_that_ends_while_starting_ends_all() -> None:
    code, said = supervise(
        [service("web", POLITE), service("worker", "raise SystemExit('bad URL')")],
        then=interrupt,
    )
    assert code == 1
    assert any("worker stopped while starting. Its last lines:\n    bad URL" in s for s in said)


ORPHANS = """
import os, sys
from gpuplatform.common.supervisor import Service, Supervisor
pause = (sys.executable, "-c", "import os, signal; print(os.getpid(), flush=True); signal.pause()")
Supervisor(
    [Service("a", pause), Service("b", pause)],
    environment=os.environ, folder=".", say=lambda line: print(line, flush=True),
).run(lambda: None)
"""


def test_no_child_outlives_a_supervisor_that_was_killed() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", ORPHANS], stdout=subprocess.PIPE, text=True, cwd=ROOT
    ) as supervisor:
        assert supervisor.stdout is not None
        pids = [int(supervisor.stdout.readline().split("|")[1]) for _ in range(2)]
        supervisor.kill()
    until(lambda: not any(alive(pid) for pid in pids))


def alive(pid: int) -> bool:
    """Whether a process runs; one that waits to be buried does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


def until(true: Callable[[], bool], seconds: float = 10) -> None:
    deadline = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.02)


@pytest.mark.parametrize("is_demo", [True, False])
def test_up_without_demo_tells_that_a_data_folder_holds_the_demo(
    tmp_path, settings, monkeypatch, is_demo
):
    settings.HOME = tmp_path
    if is_demo:
        (tmp_path / "demo.json").write_text("{}")
    monkeypatch.setattr(up, "call_command", lambda *_args, **_options: None)
    said = io.StringIO()
    up.Command(stdout=said).prepare(demo=False)
    lines = said.getvalue().splitlines()[1:]  # the first names the data folder
    assert lines == ["This is the demo: everybody knows its passwords."] * is_demo
