"""gpuctl as a program of its own, against a server that listens: real pipes, a real terminal."""

import json
import os
import pty
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest

from tests.house.test_rooms import ROOT
from tests.scheduling.loop.world import nodes, queue, work

GPUCTL = (sys.executable, "-m", "gpuplatform.client")


def environment(url: str, token: str) -> dict[str, str]:
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("DJANGO_", "GPUCTL_"))}
    own = {"GPUCTL_URL": url, "GPUCTL_TOKEN": token, "COLUMNS": "160", "XDG_CONFIG_HOME": "none"}
    return kept | own


def run(*arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*GPUCTL, *arguments], cwd=ROOT, env=variables, capture_output=True, text=True, check=False
    )


def on_a_terminal(*arguments: str, **variables: str) -> str:
    """Return what a person would see."""
    ours, theirs = pty.openpty()
    with subprocess.Popen([*GPUCTL, *arguments], cwd=ROOT, env=variables, stdout=theirs) as child:
        os.close(theirs)
        seen = b""
        try:
            while piece := os.read(ours, 4096):
                seen += piece
        except OSError:  # how a terminal says that nobody writes any more
            pass
        os.close(ours)
    assert child.returncode == 0
    return seen.decode()


def test_the_program_speaks_to_a_server(
    transactional_db: None, cast: Any, live_server: Any, token_of: Callable[..., str]
) -> None:
    nodes(1)
    queue("datos", 4)
    work("datos", "train")
    theirs = environment(live_server.url, token_of(cast.lea).removeprefix("Bearer "))
    piped = run("list", "workloads", **theirs)
    assert (piped.returncode, piped.stderr) == (0, "")
    assert piped.stdout.startswith("train\tdatos\tlq\tpending\t1 GPU\t")
    seen = on_a_terminal("list", "workloads", **theirs)
    assert "NAME" in seen
    assert "\x1b[1m" in seen
    assert "\x1b[" not in on_a_terminal("list", "workloads", **theirs, NO_COLOR="1")
    (row,) = json.loads(run("list", "workloads", "-o", "json", **theirs).stdout)
    assert row["name"] == "train"
    missing = run("explain", "nobody", **theirs)
    assert (missing.returncode, missing.stdout) == (3, "")
    assert missing.stderr == "There is no workload nobody.\n"


def test_help_names_every_command_and_needs_no_server() -> None:
    theirs = environment("http://127.0.0.1:9", "") | {"TERM": "dumb"}
    shown = run("--help", **theirs).stdout
    for command in ("submit", "list", "explain", "avail", "tree", "apply", "cancel", "bill"):
        assert f"\n  {command} " in shown
    assert "Example: gpuctl explain ns-vision/train-7" in run("explain", "--help", **theirs).stdout
    script = run(**theirs, _GPUCTL_COMPLETE="source_bash").stdout  # whatever shell runs this test
    assert "_gpuctl_completion" in script


def test_a_server_that_is_not_there_is_an_error_with_a_sentence() -> None:
    done = run("whoami", **environment("http://127.0.0.1:9", "gpt_x"))
    assert (done.returncode, done.stdout) == (1, "")
    assert "http://127.0.0.1:9 cannot be reached" in done.stderr


@pytest.mark.parametrize("module", ["django", "rest_framework", "celery"])
def test_the_client_loads_no_framework(module: str) -> None:
    code = f"import sys, gpuplatform.client.main; print({module!r} in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout == "False\n"
