"""Values of the environment, by which an installation is set; for ``settings`` alone."""

import os
from typing import Any


def env(name: str, default: str = "") -> str:
    """Return an environment variable; empty counts as absent."""
    return os.environ.get(name) or default


def env_bool(name: str, default: bool = False) -> bool:
    """Return whether an environment variable says yes."""
    return env(name, str(default)).lower() in {"1", "true", "yes", "on"}


def tune(database: Any, pool: str) -> None:
    """Set how the embedded database, or PostgreSQL, is spoken to.

    ``pool``: how many connections a process keeps, "" as usual.
    """
    if database["ENGINE"] == "django.db.backends.sqlite3":
        # Measured: without IMMEDIATE a reader that becomes a writer fails at once under load.
        database["OPTIONS"] = {
            "transaction_mode": "IMMEDIATE",
            "timeout": 20,
            "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;"
            " PRAGMA foreign_keys=ON;",
        }
        return
    database["CONN_MAX_AGE"] = 0
    database["CONN_HEALTH_CHECKS"] = True
    # A web process answers each request in a thread of its own: without a pool each of them signs
    # in to the database anew. ``gpuplatform.asgi`` says that it is one.
    usual = "20" if env("GPUPLATFORM_ROLE") == "web" else "0"
    if most := int(pool or usual):
        size = {"min_size": 1, "max_size": most, "timeout": 10}
        # What every request asks is planned once by a connection that is kept (questions.py).
        database.setdefault("OPTIONS", {}).update(pool=size, prepare_threshold=5)
