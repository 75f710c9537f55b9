"""A database that is emptied again although its months are closed."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing

import pytest
from django.db import connection


@pytest.fixture
def as_it_was(db: None) -> Iterator[None]:
    """Bring an empty SQLite back: the guards of closed months let nobody empty it by DELETE."""
    if connection.vendor != "sqlite":
        yield
        return
    connection.ensure_connection()
    with closing(sqlite3.connect(":memory:")) as empty:
        connection.connection.backup(empty)
        yield
        connection.ensure_connection()
        empty.backup(connection.connection)
