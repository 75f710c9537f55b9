"""``manage.py up``: the whole product in one terminal."""

import fcntl
import json
import logging
import os
import socket
import sys
import threading
import urllib.error
import urllib.request
from argparse import ArgumentParser
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TextIO
from urllib.parse import urlsplit

from django.apps import apps
from django.conf import settings
from django.core.management import call_command, get_commands
from django.core.management.base import BaseCommand, CommandError
from django.db import connections
from django.utils.translation import gettext as _

from gpuplatform.common.supervisor import Service, Supervisor

NAMES = ("web", "cycle", "cost", "beat")
CARD = "demo.json"  # left in the data folder by the command that loads the demo
ALIASES = {"worker": ("cycle", "cost")}


class Command(BaseCommand):
    """Migrate, load demo data if asked, then run web, workers and beat until Ctrl-C."""

    help = "Start everything in the foreground: web, workers and beat."
    requires_system_checks = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Declare the options."""
        parser.add_argument("--demo", action="store_true", help="load demo data if empty")
        parser.add_argument("--port", type=int, default=8000)
        parser.add_argument("--host", default="127.0.0.1", help="address to listen on")
        parser.add_argument("--db", metavar="URL", help="in place of DATABASE_URL")
        parser.add_argument("--broker", metavar="URL", help="in place of CELERY_BROKER_URL")
        parser.add_argument(
            "--only", action="append", choices=[*NAMES, *ALIASES], help="may be repeated"
        )

    def handle(self, *_args: Any, **options: Any) -> None:
        """Prepare the data folder and the database, then supervise."""
        restart_with(DATABASE_URL=options["db"], CELERY_BROKER_URL=options["broker"])
        host, port = options["host"], options["port"]
        names = chosen(options["only"])
        if "web" in names:
            refuse_taken_port(host, port)
        settings.HOME.chmod(0o700)
        with only_one(settings.HOME / "up.lock"):
            self.prepare(demo=options["demo"])
            connections.close_all()
            say = line_printer(sys.stdout)
            supervisor = Supervisor(
                [service for service in services(host, port) if service.name in names],
                environment=child_environment(),
                folder=str(settings.BASE_DIR),
                say=say,
            )
            code = supervisor.run(lambda: say(welcome(f"http://{shown(host)}:{port}")))
        say(_("Everything has stopped."))
        if code:
            sys.exit(code)

    def prepare(self, *, demo: bool) -> None:
        """Bring the tables up to date, and load demo data into an empty database."""
        self.stdout.write(_("Data folder: %s") % settings.HOME)
        call_command("migrate", interactive=False, verbosity=0)
        if not demo:
            if (settings.HOME / CARD).exists():
                self.stdout.write(_("This is the demo: everybody knows its passwords."))
            return
        if apps.get_model("queues", "Team").objects.exists():
            self.stdout.write(_("The database is not empty: it is kept as it is."))
        elif "demo" in get_commands():
            self.stdout.write(_("Loading demo data ..."))
            with quiet("scheduling"):  # sixty days of decisions are no news
                call_command("demo")
        else:
            raise CommandError(_("This installation has no demo data."))


def restart_with(**wanted: str | None) -> None:
    """Start this command anew under other environment variables; settings are read only once."""
    changed = {
        name: value for name, value in wanted.items() if value and os.environ.get(name) != value
    }
    if changed:
        os.execve(sys.executable, [sys.executable, *sys.argv], {**os.environ, **changed})  # noqa: S606


def chosen(only: list[str] | None) -> tuple[str, ...]:
    """Return the names of the services to run, in starting order."""
    if not only:
        return NAMES
    wanted = {name for word in only for name in ALIASES.get(word, (word,))}
    return tuple(name for name in NAMES if name in wanted)


def refuse_taken_port(host: str, port: int) -> None:
    """Raise CommandError when somebody listens on the port already."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            raise CommandError(
                _("Port %(port)s is not free (%(error)s); choose another one with --port.")
                % {"port": port, "error": error.strerror}
            ) from error


class only_one:  # noqa: N801  # reads as a word where it is used
    """Hold a data folder: two supervisors on one would fight over its files."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.lock: TextIO | None = None

    def __enter__(self) -> None:
        """Take the lock, or raise CommandError."""
        self.lock = self.path.open("w")
        try:
            fcntl.flock(self.lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise CommandError(
                _("Another `manage.py up` runs on %s already.") % self.path.parent
            ) from error

    def __exit__(self, *_exception: object) -> None:
        """Let go."""
        if self.lock:
            self.lock.close()


@contextmanager
def quiet(logger: str) -> Iterator[None]:
    """Let a logger say nothing below a warning for a while."""
    before = logging.getLogger(logger).level
    logging.getLogger(logger).setLevel(logging.WARNING)
    try:
        yield
    finally:
        logging.getLogger(logger).setLevel(before)


def child_environment() -> dict[str, str]:
    """Return the children's environment: ours, with the data folder spelled out."""
    return {
        **os.environ,
        "GPUPLATFORM_HOME": str(settings.HOME.resolve()),
        "PYTHONUNBUFFERED": "1",
    }


def services(host: str, port: int) -> list[Service]:
    """Return all services in starting order."""
    python = (sys.executable, "-m")
    # A demo in a container runs as root; a worker that reads only JSON may.
    calm = (sys.executable, "-W", "ignore:You're running the worker", "-m")
    celery = (*calm, "celery", "-A", "gpuplatform", "--quiet")
    worker = (*celery, "worker", "--loglevel", "INFO", "--without-gossip", "--without-mingle")
    return [
        Service(
            "web",
            (
                *(*python, "uvicorn", "gpuplatform.asgi:application", "--lifespan", "off"),
                *("--host", host, "--port", str(port)),
                *("--log-level", "warning", "--no-access-log", "--timeout-graceful-shutdown", "5"),
            ),
            answers(f"http://{shown(host)}:{port}/readyz"),
        ),
        # One process holds the engine's kept state: never more than one at a time.
        Service("cycle", (*worker, "-n", "cycle@%h", "-Q", "cycle", "-P", "solo", "-c", "1")),
        Service("cost", (*worker, "-n", "cost@%h", "-Q", "cost,mail", "-P", "threads", "-c", "2")),
        Service(
            "beat", (*celery, "beat", "--pidfile=", "-s", str(settings.HOME / "beat-schedule"))
        ),
    ]


def shown(host: str) -> str:
    """Return the address to put into a URL."""
    return "localhost" if host in {"127.0.0.1", "0.0.0.0", "::"} else host  # noqa: S104


def answers(url: str) -> Callable[[], bool]:
    """Return a question: does ``url`` answer 200?"""

    def ask() -> bool:
        try:
            with urllib.request.urlopen(url, timeout=2) as response:  # noqa: S310  # our own URL
                return bool(response.status == 200)  # noqa: PLR2004
        except (OSError, urllib.error.URLError):
            return False

    return ask


def line_printer(stream: TextIO) -> Callable[[str], None]:
    """Return a printer of whole lines that several threads may use."""
    lock = threading.Lock()

    def say(text: str) -> None:
        with lock:
            stream.write(f"{text}\n")
            stream.flush()

    return say


def welcome(url: str) -> str:
    """Return what to open and who may sign in; the demo's people where it left their card."""
    lines = ["", _("gpuplatform is ready: %s/") % url, ""]
    card = settings.HOME / CARD
    if card.exists():
        lines += demo_lines(url, json.loads(card.read_text()))
    if urlsplit(settings.CELERY_BROKER_URL).scheme == "filesystem":
        lines.append(_("Database and broker: the embedded pair in %s") % settings.HOME)
    lines += [_("Ctrl-C stops everything. Decisions, as they are taken:"), ""]
    return "\n".join(lines)


def demo_lines(url: str, card: dict[str, Any]) -> list[str]:
    """Return the demo's logins, its token and a command that submits a workload.

    ``card``: ``{"logins": [{"persona", "username", "password"}], "token", "namespace", "queue"}``.
    """
    lines = [_("Sign in as")]
    lines += [
        f"  {login['persona']:<24} {login['username']:<10} {login['password']}"
        for login in card["logins"]
    ]
    return [
        *lines,
        "",
        _("Token for programs: %s") % card["token"],
        _("Submit a workload:"),
        (
            f"  curl -sS {url}/api/v1/workloads/ -H 'Authorization: Bearer {card['token']}'"
            f" -H 'Content-Type: application/json' -d '{json.dumps(first_workload(card))}'"
        ),
        "",
    ]


def first_workload(card: dict[str, Any]) -> dict[str, Any]:
    """Return a small gang that fits the demo as it starts, in the words of the REST API."""
    return {
        "name": "hello-gang",
        "namespace": card["namespace"],
        "queue": card["queue"],
        "pod_sets": [{"name": "worker", "count": 2, "requests": {"nvidia.com/gpu": "1"}}],
        "expected_duration_s": 600,
    }
