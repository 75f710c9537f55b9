"""A database of its own for a bench: made empty, dropped at the end, real data never touched."""

import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from celery import current_app
from django.db import connection

from scheduling.bench.report import Figure


@contextmanager
def scratch_database() -> Iterator[dict[str, Figure]]:
    """Let every query of the block go to an empty database on the configured server.

    Wake-ups of the block reach nobody: their messages stay in this process.

    Yields:
        What the report must say of the database: its kind, and how durable its commits are.
    """
    before, broker = connection.settings_dict["NAME"], current_app.conf.broker_url
    with TemporaryDirectory(prefix="gpuplatform-bench-") as folder:
        name = f"bench_{secrets.token_hex(6)}"
        if connection.vendor == "sqlite":
            name = str(Path(folder) / name)
        connection.settings_dict["TEST"] = {**connection.settings_dict["TEST"], "NAME": name}
        current_app.conf.update(broker_url="memory://")
        connection.creation.create_test_db(verbosity=0, autoclobber=True, serialize=False)
        try:
            yield {"database": _described(), "broker": "none"}
        finally:
            connection.creation.destroy_test_db(str(before), verbosity=0)
            current_app.conf.update(broker_url=broker)


def _described() -> str:
    if connection.vendor != "postgresql":
        return connection.display_name
    with connection.cursor() as cursor:
        cursor.execute("SHOW server_version")
        version = cursor.fetchone()[0].split()[0]
        cursor.execute("SHOW fsync")
        fsync = cursor.fetchone()[0]
        cursor.execute("SHOW synchronous_commit")
        return f"PostgreSQL {version}, fsync {fsync}, synchronous_commit {cursor.fetchone()[0]}"
