"""A closed month with its audit trail, backed up and restored: the same rows, or nothing done."""

import hashlib
import json
import sqlite3
import zipfile
from collections.abc import Callable
from decimal import Decimal
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError
from django.db import DatabaseError, connection, transaction
from django.db.models import Sum

from finops.models import BillLine
from gpuplatform import __version__
from gpuplatform.common import audit, sealing
from gpuplatform.common.backups import engines
from gpuplatform.common.models import AuditEntry
from queues.models import Team, User

from .world import charged_june, close

# Restored tables are made anew: no transaction of a test may stand around that.
pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("as_it_was")]
Run = Callable[..., str]


@pytest.fixture
def run(tmp_path: Path, settings: Any) -> Run:
    """Run a command on ``file`` in a folder of its own; return what it prints."""
    settings.HOME = tmp_path

    def command(name: str, file: str = "b.backup", **options: Any) -> str:
        out = StringIO()
        call_command(name, tmp_path / file, stdout=out, **options)
        return out.getvalue()

    return command


def all_rows() -> dict[str, list[Any]]:
    """Return every row of every table, in no order that matters."""
    found = {}
    with connection.cursor() as cursor:
        for table in sorted(connection.introspection.table_names(cursor)):
            cursor.execute(f'SELECT * FROM "{table}"')
            found[table] = sorted(map(repr, cursor.fetchall()))
    return found


def money() -> Decimal:
    return BillLine.objects.aggregate(total=Sum("amount"))["total"]


def refusal(run: Run, *words: str, name: str = "restore", **options: Any) -> None:
    """Demand that a command refuses in these words."""
    before = all_rows()
    with pytest.raises(CommandError) as refused:
        run(name, **options)
    assert [word for word in words if word not in str(refused.value)] == []
    assert all_rows() == before


def forge(path: Path, payload: bytes | None = None, **told: Any) -> None:
    """Write a backup again, with another payload or another manifest."""
    with zipfile.ZipFile(path) as archive:
        manifest = json.loads(archive.read("manifest.json")) | told
        payload = archive.read("database") if payload is None else payload
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("manifest.json", json.dumps(manifest))
        archive.writestr("database", payload)


def test_what_was_backed_up_comes_back_row_for_row(
    run: Run, tmp_path: Path, fin: Any, ada: Any
) -> None:
    charged_june()
    close(fin, ada)
    sealing.seal()
    before, total, head = all_rows(), money(), sealing.verify().head
    said = run("backup")
    assert f"audit head {head}" in said
    path = tmp_path / "b.backup"
    assert path.stat().st_mode & 0o077 == 0
    assert [entry.name for entry in tmp_path.iterdir()] == ["b.backup"]

    Team.objects.filter(name="ia").update(cost_center="9999")
    AuditEntry.objects.order_by("pk").first().delete()
    User.objects.create_user("mallory")
    with connection.cursor() as cursor:  # of a later version, say
        cursor.execute("CREATE TABLE later (id bigint REFERENCES queues_team (id))")

    refusal(run, "is not empty", "--replace")
    said = run("restore", replace=True)
    assert f"restored: {__version__}" in said
    assert all_rows() == before
    assert money() == total
    with pytest.raises(DatabaseError, match="closed"), transaction.atomic():
        BillLine.objects.update(amount=1)  # the guards of a closed month are there again
    assert sealing.verify(head).fault == ""
    Team.objects.create(name="after")  # its number is free
    audit.record(None, "team.created", ("Team", "after"))
    assert sealing.seal() == 1


def test_a_backup_replaces_no_file(run: Run, tmp_path: Path, ada: Any) -> None:
    (tmp_path / "b.backup").write_text("mine")
    refusal(run, "is there already", name="backup")
    assert (tmp_path / "b.backup").read_text() == "mine"


def test_a_folder_that_is_not_there_is_named(run: Run, ada: Any) -> None:
    refusal(run, "no/such", "No such file", name="backup", file="no/such/b")


@pytest.mark.parametrize(
    ("harm", "words"),
    [
        (lambda path: path.write_bytes(b"PK nonsense"), ("is no backup, or it is damaged",)),
        (lambda path: path.write_bytes(path.read_bytes()[:-400]), ("damaged",)),
        (lambda path: path.unlink(), ("No such file",)),
        (lambda path: forge(path, product="other"), ("no backup of gpuplatform",)),
        (lambda path: forge(path, format=2), ("has format 2", "reads 1")),
        (lambda path: forge(path, surprise=1), ("is no backup, or it is damaged",)),
        (lambda path: forge(path, sha256="0" * 64), ("not the one of its manifest",)),
        (lambda path: forge(path, b"short"), ("not the one of its manifest",)),
        (lambda path: forge(path, database="oracle"), ("backup is of oracle",)),
        (
            lambda path: forge(path, version="9.0", migrations={"queues": ["0999_later"]}),
            ("newer version (9.0", "queues.0999_later"),
        ),
    ],
)
def test_what_cannot_be_restored_is_refused_and_changes_nothing(
    run: Run, tmp_path: Path, ada: Any, harm: Any, words: tuple[str, ...]
) -> None:
    run("backup")
    harm(tmp_path / "b.backup")
    refusal(run, *words, replace=True)


def test_a_payload_that_breaks_off_in_the_middle_changes_nothing(
    run: Run, tmp_path: Path, ada: Any
) -> None:
    """The manifest says what is there; what is there is no whole database."""
    run("backup")
    path = tmp_path / "b.backup"
    with zipfile.ZipFile(path) as archive:
        payload = archive.read("database")
    harmed = payload[: len(payload) * 3 // 4]
    forge(path, harmed, sha256=hashlib.sha256(harmed).hexdigest(), bytes=len(harmed))
    refusal(run, "", replace=True)


def test_an_older_backup_says_that_migrations_are_missing(
    run: Run, tmp_path: Path, ada: Any
) -> None:
    run("backup")
    with zipfile.ZipFile(tmp_path / "b.backup") as archive:
        applied = json.loads(archive.read("manifest.json"))["migrations"]
    forge(tmp_path / "b.backup", migrations=applied | {"sessions": []})
    assert "1 migrations are missing: run manage.py migrate" in run("restore", replace=True)


@pytest.mark.skipif("connection.vendor != 'sqlite'", reason="only on SQLite")
def test_a_database_in_use_is_left_alone_after_a_while(
    run: Run, tmp_path: Path, ada: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a real file, as others have it open: those who read see all of it or nothing."""
    run("backup")
    with zipfile.ZipFile(tmp_path / "b.backup") as archive:
        (tmp_path / "source").write_bytes(archive.read("database"))
    target = sqlite3.connect(tmp_path / "db.sqlite3", timeout=0)
    target.execute("PRAGMA journal_mode = WAL")
    target.execute("CREATE TABLE old (x)")
    other = sqlite3.connect(tmp_path / "db.sqlite3")
    monkeypatch.setattr(engines, "BUSY_S", 0.3)
    monkeypatch.setattr(engines, "connection", Wrapped(target))
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(engines.BackupError, match="in use"):
        engines.SQLite().load(tmp_path / "source")
    other.rollback()
    assert tables(other) == {"old"}
    engines.SQLite().load(tmp_path / "source")
    assert "queues_team" in tables(other)
    other.close()


class Wrapped:
    """As much of Django's connection as a restore uses."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self.connection = connection

    def ensure_connection(self) -> None:
        pass

    def close(self) -> None:
        self.connection.close()


def tables(connection: sqlite3.Connection) -> set[str]:
    return {name for (name,) in connection.execute("SELECT name FROM sqlite_master")}


@pytest.mark.skipif("connection.vendor != 'postgresql'", reason="only on PostgreSQL")
def test_a_machine_without_the_programs_of_postgresql_says_so(
    run: Run, ada: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "")
    refusal(run, "pg_dump is not installed here", "postgresql-client", name="backup")
