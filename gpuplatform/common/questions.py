"""Questions that are worded once for a process, and asked again and again of other keys.

Answers are plain tuples. What every request asks may have its plan kept by the database as well,
which takes longer to plan such a question than to answer it. Source: ``performance.md`` 6.
"""

from collections.abc import Callable, Collection, Iterator, Sequence
from itertools import islice
from typing import Any, cast

import psycopg
from django.core.exceptions import EmptyResultSet
from django.db import DEFAULT_DB_ALIAS, connection, connections, models
from django.db.backends.utils import CursorWrapper
from django.db.models.lookups import In
from psycopg.types.datetime import TimestamptzLoader

FETCHED = 2_000  # rows that are made of an answer at a time
ASKED = 200  # keys of a question elsewhere: SQLite bounds the parameters of one


def fetch(rows: models.QuerySet[Any, Any]) -> Iterator[tuple[Any, ...]]:
    """Ask at once for the rows of a ``values_list``, and return them as plain tuples.

    JSON columns are to be asked for as text. On PostgreSQL the driver's own conversion of
    instants is used, a fifth of the cost of the framework's; the values are equal.
    """
    if connection.vendor != "postgresql":
        return iter(list(rows))
    try:
        sql, parameters = _worded(rows)
    except EmptyResultSet:
        return iter(())
    return _answers(sql, parameters)


class Question:
    """A query that is worded once for a process, and asked again and again of other keys.

    Wording a query by the ORM takes longer than PostgreSQL needs for its answer where that is
    a few rows.
    """

    def __init__(
        self, word: Callable[[Any], models.QuerySet[Any, Any]], *, planned: bool = False
    ) -> None:
        """Take what words it as a ``values_list``, given the keys to look ``__among``.

        ``planned``: the database may keep its plan (:func:`planned_cursor`).
        """
        self._word, self._planned = word, planned
        self._worded: tuple[str, Sequence[Any]] | None = None

    def ask(self, keys: Collection[Any] = ()) -> Iterator[tuple[Any, ...]]:
        """Return the rows of an answer, as :func:`fetch` does."""
        if connection.vendor != "postgresql":
            return iter([row for part in _parts(keys) for row in self._word(part)])
        if self._worded is None:
            self._worded = _worded(self._word(KEYS))
        sql, parameters = self._worded
        given = [list(keys) if one is KEYS else one for one in parameters]
        return _answers(sql, given, planned=self._planned)


def planned_cursor() -> CursorWrapper:
    """Return a cursor for words that come again and again, whose plan the database may keep.

    On PostgreSQL their values travel beside the words. A connection that is kept
    (``prepare_threshold``) lets the words be planned once; any other plans them each time.
    """
    ours: Any = connections[DEFAULT_DB_ALIAS]
    if ours.vendor != "postgresql":
        return cast("CursorWrapper", ours.cursor())
    ours.ensure_connection()
    with ours.wrap_database_errors:
        plain = psycopg.Cursor(ours.connection)
        return cast("CursorWrapper", ours._prepare_cursor(plain))  # noqa: SLF001  # as cursor() does


KEYS: Any = object()  # stands for the keys of a question while that is worded


@models.Field.register_lookup
class Among(In):
    """``__among``: ``__in`` whose values are one array on PostgreSQL. Of keys, not relations."""

    lookup_name = "among"

    def get_prep_lookup(self) -> Any:
        """Return the values as the database takes them; those still to come as they are."""
        return self.rhs if self.rhs is KEYS else super().get_prep_lookup()

    def as_postgresql(self, compiler: Any, connection: Any) -> tuple[str, list[Any]]:
        """Return the condition and its one parameter."""
        column, parameters = self.process_lhs(compiler, connection)
        keys = self.rhs if self.rhs is KEYS else list(self.rhs)
        return f"{column} = ANY(%s)", [*parameters, keys]


def _worded(rows: models.QuerySet[Any, Any]) -> tuple[str, Sequence[Any]]:
    compiler = rows.query.get_compiler(connection=connection)
    sql, parameters = compiler.as_sql()
    asked = (one for one, _, _ in compiler.select)
    assert not any(isinstance(one.output_field, models.JSONField) for one in asked), "ask for text"
    return sql, parameters


def _answers(
    sql: str, parameters: Sequence[Any], *, planned: bool = False
) -> Iterator[tuple[Any, ...]]:
    cursor: Any = planned_cursor() if planned else connection.cursor()
    cursor.cursor.adapters.register_loader("timestamptz", TimestamptzLoader)
    cursor.execute(sql, parameters)
    return _all_of(cursor)


def _all_of(cursor: Any) -> Iterator[tuple[Any, ...]]:
    with cursor:
        while rows := cursor.fetchmany(FETCHED):  # many at a time: one by one costs as much again
            yield from rows


def _parts(keys: Collection[Any]) -> Iterator[list[Any]]:
    """Yield the keys of each question elsewhere; nothing of nothing, once."""
    left = iter(keys)
    yield list(islice(left, ASKED))
    while part := list(islice(left, ASKED)):
        yield part
