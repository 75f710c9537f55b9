"""Making a backup, and judging what may be restored into what."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from django.db import connection
from django.db.migrations.loader import MigrationLoader
from django.utils import timezone

from gpuplatform import __version__
from gpuplatform.common.backups.archive import (
    BackupError,
    Manifest,
    Migrations,
    digest_of,
    pack,
    read_manifest,
    unpack,
)
from gpuplatform.common.backups.engines import engine

# Rows that every migrated database has: they are nobody's work.
MADE_BY_MIGRATIONS = {"django_migrations", "django_content_type", "auth_permission"}


def backup(path: Path) -> Manifest:
    """Write the whole database to ``path``, while everything runs.

    Raises:
        BackupError: it could not be done; there is no file then.
    """
    if path.exists():
        raise BackupError(f"{path} is there already; a backup replaces no file.")
    with _folder_beside(path) as folder:
        payload = folder / "database"
        facts = engine().dump(payload)
        if not facts.migrations:
            raise BackupError("This database has no tables yet: there is nothing to back up.")
        manifest = Manifest(
            version=__version__,
            made_at=timezone.now().isoformat(timespec="seconds"),
            database=connection.vendor,
            sha256=digest_of(payload),
            bytes=payload.stat().st_size,
            migrations=facts.migrations,
            audit_head=facts.audit_head,
        )
        pack(payload, manifest, path)
    return manifest


def restore(path: Path, *, replace: bool = False) -> Manifest:
    """Make the database what a backup holds, in one piece.

    Args:
        path: the backup.
        replace: whether what is in the database may go.

    Raises:
        BackupError: it could not be done, and the database is as it was.
    """
    manifest = read_manifest(path)
    _demand_fitting(manifest)
    if not replace and (table := _filled_table()):
        raise BackupError(
            f"The database is not empty ({table} has rows); --replace throws away what is in it."
        )
    with _folder_beside(path) as folder:
        payload = folder / "database"
        unpack(path, manifest, payload)
        engine().load(payload)
    return manifest


def missing_migrations(manifest: Manifest) -> list[str]:
    """Return the migrations that a restored backup of an older version still needs."""
    return _without(_known(), manifest.migrations)


def _demand_fitting(manifest: Manifest) -> None:
    if manifest.database != connection.vendor:
        raise BackupError(
            f"The backup is of {manifest.database}, the database is {connection.vendor}:"
            " they cannot take each other's."
        )
    if unknown := _without(manifest.migrations, _known()):
        raise BackupError(
            f"The backup was made by a newer version ({manifest.version}, this is {__version__});"
            f" unknown here: {', '.join(unknown[:5])}."
        )


def _known() -> Migrations:
    """Return the migrations of this version, as they lie on the disk."""
    found: dict[str, list[str]] = {}
    for app, name in sorted(MigrationLoader(None).disk_migrations):
        found.setdefault(app, []).append(name)
    return found


def _without(some: Migrations, others: Migrations) -> list[str]:
    return [
        f"{app}.{name}"
        for app, names in some.items()
        for name in names
        if name not in others.get(app, [])
    ]


def _filled_table() -> str:
    """Return a table in which somebody's work is, "" if there is none."""
    with connection.cursor() as cursor:
        tables = connection.introspection.table_names(cursor)
        for table in sorted(set(tables) - MADE_BY_MIGRATIONS):
            cursor.execute(f"SELECT 1 FROM {connection.ops.quote_name(table)} LIMIT 1")  # noqa: S608
            if cursor.fetchone():
                return table
    return ""


@contextmanager
def _folder_beside(path: Path) -> Iterator[Path]:
    """Yield a folder that only we may enter, on the file system of ``path``; it goes again."""
    try:
        with tempfile.TemporaryDirectory(prefix=".backup-", dir=path.resolve().parent) as name:
            yield Path(name)
    except OSError as error:
        raise BackupError(f"{path.resolve().parent}: {error.strerror or error}.") from error
