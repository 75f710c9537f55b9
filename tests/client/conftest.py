"""The client, run in this process against the product without a network."""

import io
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import pytest
from django.core.handlers.wsgi import WSGIHandler
from django.core.signals import request_finished, request_started
from django.db import close_old_connections

from gpuplatform.client import options
from gpuplatform.client.main import main

ALL = ("read", "workloads:submit", "workloads:admin", "quota:write", "cost:read", "admin")
Run = Callable[..., "Done"]


class Done(NamedTuple):
    """How a command line ended."""

    code: int
    out: str
    err: str

    @property
    def rows(self) -> list[list[str]]:
        return [line.split("\t") for line in self.out.splitlines()]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A home without any configuration."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    for name in ("GPUCTL_URL", "GPUCTL_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    transport = httpx.WSGITransport(app=WSGIHandler())
    monkeypatch.setattr(options, "transport", lambda: transport)
    signals = (request_started, request_finished)
    for signal in signals:  # the test's own connection outlives a request
        signal.disconnect(close_old_connections)
    yield tmp_path
    for signal in signals:
        signal.connect(close_old_connections)


@pytest.fixture
def gpuctl(
    home: Path,
    token_of: Callable[..., str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Run:
    """Run a command line as somebody; ``text`` is what stands on standard input."""

    def run(who: Any, *arguments: str, text: str = "", scopes: tuple[str, ...] = ALL) -> Done:
        monkeypatch.setenv("GPUCTL_URL", "http://testserver")
        if who is not None:
            monkeypatch.setenv("GPUCTL_TOKEN", token_of(who, *scopes).removeprefix("Bearer "))
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
        capsys.readouterr()
        code = main(arguments)
        return Done(code, *capsys.readouterr())

    return run
