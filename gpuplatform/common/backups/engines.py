"""How each kind of database writes itself to a file, and takes itself from one, in one piece.

SQLite does so by its online backup: a restore is one transaction of the file in place, seen by
other processes whole or not at all. PostgreSQL does so by its own programs, in one snapshot and
one transaction.
"""

import os
import shutil
import sqlite3
import subprocess
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from django.db import connection, transaction
from django.db.backends.postgresql.client import DatabaseClient

from gpuplatform.common.backups.archive import BackupError, Migrations

BUSY_S = 30.0  # how long a restore waits for others to let go
APPLIED = "SELECT app, name FROM django_migrations ORDER BY app, name"
SEAL = "SELECT digest FROM common_auditseal ORDER BY number DESC LIMIT 1"


@dataclass(frozen=True, slots=True)
class Facts:
    """What is true of the rows that were written, as one look saw them."""

    migrations: Migrations
    audit_head: str


class Engine(Protocol):
    """A kind of database."""

    def dump(self, to: Path) -> Facts:
        """Write the whole database to a file that is not there yet."""

    def load(self, source: Path) -> None:
        """Make the database what the file says, or leave it as it is.

        Raises:
            BackupError: it could not be done, and nothing was changed.
        """


def engine() -> Engine:
    """Return how the platform's database is written and read."""
    return PostgreSQL() if connection.vendor == "postgresql" else SQLite()


def _facts(ask: Callable[[str], list[Any]]) -> Facts:
    migrations: dict[str, list[str]] = {}
    for app, name in ask(APPLIED):
        migrations.setdefault(app, []).append(name)
    seal = ask(SEAL) if "common" in migrations else []
    return Facts(migrations, seal[0][0] if seal else "")


class SQLite:
    """By the online backup; others may read and write meanwhile."""

    def dump(self, to: Path) -> Facts:
        """Copy all pages in one look, and read the facts from the copy."""
        connection.ensure_connection()
        with closing(sqlite3.connect(to)) as copy:
            connection.connection.backup(copy)
            copy.execute("PRAGMA journal_mode = DELETE")  # one file, not three
            return _facts(lambda sql: copy.execute(sql).fetchall())

    def load(self, source: Path) -> None:
        """Write all pages in one transaction."""
        with closing(sqlite3.connect(f"file:{source}?mode=ro", uri=True)) as copy:
            try:
                (word,) = copy.execute("PRAGMA integrity_check(1)").fetchone()
            except sqlite3.DatabaseError as error:
                raise BackupError(f"The backup holds no sound database: {error}.") from error
            if word != "ok":
                raise BackupError(f"The backup holds no sound database: {word}.")
            connection.ensure_connection()
            until = time.monotonic() + BUSY_S

            def be_patient(_status: int, _left: int, _pages: int) -> None:
                if time.monotonic() > until:
                    raise BackupError("The database is in use: stop web, workers and beat first.")

            copy.backup(connection.connection, progress=be_patient, sleep=0.1)
        connection.close()  # what was prepared before knows other tables


class PostgreSQL:
    """By pg_dump, pg_restore and psql, which must be as new as the server."""

    def dump(self, to: Path) -> Facts:
        """Let pg_dump see what we see: one snapshot for the facts and the rows."""
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
            cursor.execute("SELECT pg_export_snapshot()")
            (snapshot,) = cursor.fetchone()

            def ask(sql: str) -> list[Any]:
                cursor.execute(sql)
                return list(cursor.fetchall())

            facts = _facts(ask)
            ours = ("--format=custom", "--no-owner", "--no-privileges")
            _run("pg_dump", *ours, f"--snapshot={snapshot}", f"--file={to}")
        return facts

    def load(self, source: Path) -> None:
        """Drop what is there and run the script of the backup, in one transaction."""
        script = source.with_suffix(".sql")
        ours = ("--clean", "--if-exists", "--no-owner", "--no-privileges", "--exit-on-error")
        _run("pg_restore", *ours, f"--file={script}", str(source), connects=False)
        with connection.cursor() as cursor:
            tables = connection.introspection.table_names(cursor)
        first = [f"SET lock_timeout = '{BUSY_S:.0f}s'", *_dropping(tables)]
        connection.close()
        quiet = ("-X", "--quiet", "--output=/dev/null", "--set=ON_ERROR_STOP=1")
        commands = (f"--command={command}" for command in first)
        _run("psql", *quiet, "--single-transaction", *commands, f"--file={script}")


def _dropping(tables: list[str]) -> list[str]:
    """Return what drops tables of whatever version, with all that hangs on them."""
    names = ", ".join(connection.ops.quote_name(table) for table in tables)
    return [f"DROP TABLE IF EXISTS {names} CASCADE"] if names else []


def _run(program: str, *arguments: str, connects: bool = True) -> None:
    """Run a program of PostgreSQL, upon our database if it ``connects``."""
    path = shutil.which(program)
    if path is None:
        raise BackupError(
            f"{program} is not installed here; it comes with the client programs of PostgreSQL"
            " (Debian, Ubuntu: apt install postgresql-client)."
        )
    where, environment = DatabaseClient.settings_to_cmd_args_env(connection.settings_dict, [])
    command = [path, *arguments, *(where[1:] if connects else [])]
    done = subprocess.run(  # noqa: S603  # found on the path, without a shell
        command,
        env=os.environ | (environment or {}),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise BackupError(f"{program} failed: {done.stderr.strip()[-2_000:]}")
