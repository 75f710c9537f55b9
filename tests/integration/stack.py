"""The product as processes: its own database, its own broker, its own data folder."""

import json
import os
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psycopg
from psycopg.rows import dict_row

from tests import services

ROOT = Path(__file__).resolve().parents[2]
WORKER = (
    *("celery", "-A", "gpuplatform", "worker", "-Q", "cycle", "-P", "solo", "-c", "1"),
    *("--without-gossip", "--without-mingle", "--loglevel", "INFO"),
)
BEAT = ("celery", "-A", "gpuplatform", "beat", "--pidfile=")


@dataclass
class Answer:
    """What the server said."""

    status: int
    body: Any
    headers: Mapping[str, str] = field(default_factory=dict)


class Stack:
    """Processes of the product on one database and one broker."""

    def __init__(self, database_url: str, broker_url: str, home: Path, stack: ExitStack) -> None:
        self.home = home
        self.database_url = database_url
        self.port = services.free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self._stack = stack
        self._started = 0
        self.environment = {
            **{k: v for k, v in os.environ.items() if k not in {"DEBUG", "CI"}},
            "DATABASE_URL": database_url,
            "CELERY_BROKER_URL": broker_url,
            "GPUPLATFORM_HOME": str(home),
            "PYTHONUNBUFFERED": "1",
        }

    def start(self, *module: str, **environment: str) -> subprocess.Popen:
        """Start ``python -m MODULE ...``; it is stopped at the end of the test."""
        return self.start_command([sys.executable, "-m", *module], **environment)

    def start_command(self, command: Sequence[str], **environment: str) -> subprocess.Popen:
        self._started += 1
        with self.log(self._started).open("ab") as output:
            process = subprocess.Popen(
                command,
                cwd=ROOT,
                env={**self.environment, **environment},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                preexec_fn=services.dies_with_parent(signal.SIGKILL),  # noqa: PLW1509
            )
        self._stack.enter_context(services.stopping(process, signal.SIGTERM))
        return process

    def log(self, number: int) -> Path:
        return self.home / f"process-{number}.log"

    def logs(self) -> str:
        """What all processes said, for the message of a failed test."""
        return "\n".join(
            f"---- process {number}\n{self.log(number).read_text()[-4000:]}"
            for number in range(1, self._started + 1)
        )

    def start_web(self) -> subprocess.Popen:
        """Start a web server and wait until it is ready."""
        process = self.start(
            *("uvicorn", "gpuplatform.asgi:application", "--lifespan=off", "--log-level=warning"),
            f"--port={self.port}",
        )
        self.until(lambda: self.call("GET", "/readyz").status == 200, "the web server is ready")
        return process

    def manage(self, *arguments: str, text: str = "") -> str:
        """Run a management command; return what it printed."""
        done = subprocess.run(
            [sys.executable, "manage.py", *arguments],
            cwd=ROOT,
            env=self.environment,
            input=text,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def call(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        token: str = "",
        content_type: str = "application/json",
    ) -> Answer:
        """Ask the web server; status 0 when nobody answers."""
        payload = None
        if body is not None:
            payload = (body if isinstance(body, str) else json.dumps(body)).encode()
        request = urllib.request.Request(self.url + path, payload, method=method)
        request.add_header("Content-Type", content_type)
        if token:
            request.add_header("Authorization", f"Bearer {token}")
        try:
            with urllib.request.urlopen(request, timeout=20) as response:
                return _answer(response.status, response.read(), response.headers)
        except urllib.error.HTTPError as error:
            with error:
                return _answer(error.code, error.read(), error.headers)
        except OSError:
            return Answer(0, None)

    def rows(self, query: str, *values: Any) -> list[dict[str, Any]]:
        """Read the database behind the product's back."""
        with psycopg.connect(self.database_url, row_factory=dict_row) as connection:
            return connection.execute(query, values).fetchall()

    def one(self, query: str, *values: Any) -> Any:
        """Read one number behind the product's back."""
        return next(iter(self.rows(query, *values)[0].values()))

    def until(self, true: Callable[[], Any], what: str, seconds: float = 30) -> Any:
        """Wait for something to become true and return it."""
        deadline = time.monotonic() + seconds
        while not (found := true()):
            assert time.monotonic() < deadline, f"it never came that {what}\n{self.logs()}"
            time.sleep(0.05)
        return found


def as_text(documents: Sequence[dict[str, Any]]) -> str:
    """Return documents as a YAML stream without anchors: JSON is YAML, too."""
    return "\n---\n".join(json.dumps(document) for document in documents)


def _answer(status: int, payload: bytes, headers: Any) -> Answer:
    kind = headers.get("Content-Type", "")
    return Answer(status, json.loads(payload) if "json" in kind else payload.decode(), headers)


@contextmanager
def stack_on(
    postgresql_url: str, broker_url: str, home: Path, number: int, template: str = "template1"
) -> Iterator[Stack]:
    """Yield a stack on a database of its own, a copy of ``template``, and a broker of its own."""
    with ExitStack() as stack:
        database_url = stack.enter_context(services.database(postgresql_url, template))
        yield Stack(database_url, f"{broker_url.rsplit('/', 1)[0]}/{number}", home, stack)
