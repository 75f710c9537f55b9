"""Many rows in few statements: COPY and unnest on PostgreSQL, prepared statements elsewhere.

The one module that writes in PostgreSQL's own language; :mod:`scheduling.cells` has its spelling.
Every function writes inside the caller's transaction; values are as a model's attributes hold
them, JSON as plain Python.
Source: ``performance.md`` 6.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import cache
from itertools import islice
from typing import Any

from django.db import connection, models

from gpuplatform.common.questions import planned_cursor
from scheduling.cells import adapted, adapted_cells, as_json, copied_cells, element_cells

BATCH = 200  # rows per statement elsewhere: SQLite bounds the parameters of one
Model = type[models.Model]
Row = Sequence[Any]


def new_ids(model: Model, count: int) -> list[int]:
    """Return keys that no row of the model has or will get by itself, in growing order."""
    if not count:
        return []
    table = model._meta.db_table  # noqa: SLF001
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            sequence = f"pg_get_serial_sequence('\"{table}\"', 'id')"
            cursor.execute(f"SELECT nextval({sequence}) FROM generate_series(1, %s)", [count])  # noqa: S608
            return sorted(key for (key,) in cursor.fetchall())
        # SQLite counts the keys that it has given in a table of its own, which is moved on.
        cursor.execute("SELECT seq FROM sqlite_sequence WHERE name = %s", [table])
        if (found := cursor.fetchone()) is None:
            cursor.execute("INSERT INTO sqlite_sequence (name, seq) VALUES (%s, 0)", [table])
        last = found[0] if found else 0
        cursor.execute(
            "UPDATE sqlite_sequence SET seq = %s WHERE name = %s", [last + count, table]
        )
        return list(range(last + 1, last + 1 + count))


@models.JSONField.register_lookup
class TellsOf(models.Lookup):
    """``__tells_of``: a list of blockers in which one has this code.

    PostgreSQL compares the binary form; writing 100,000 of them as text takes half a second.
    """

    lookup_name = "tells_of"
    prepare_rhs = False

    def as_sql(self, compiler: Any, connection: Any) -> tuple[str, Any]:
        """Return the condition on the text that the column is."""
        column, parameters = self.process_lhs(compiler, connection)
        return f"{column} LIKE %s", [*parameters, f'%"{self.rhs}"%']

    def as_postgresql(self, compiler: Any, connection: Any) -> tuple[str, Any]:
        """Return the condition on the binary form."""
        column, parameters = self.process_lhs(compiler, connection)
        text = as_json([{"code": self.rhs}])
        return f"{column} @> %s::jsonb", [*parameters, text]


def insert(model: Model, columns: Sequence[str], rows: Collection[Row]) -> None:
    """Write new rows. Columns that are not named get the default of their field."""
    if not rows:
        return
    named = [_field(model, name) for name in columns]
    others = [field for field in _concrete(model) if field not in named]
    table = _quoted(model._meta.db_table)  # noqa: SLF001
    names = ", ".join(_quoted(field.column) for field in (*named, *others))
    cells = copied_cells if connection.vendor == "postgresql" else adapted_cells
    turned = zip(*rows, strict=True)
    given = [cells(field, column) for field, column in zip(named, turned, strict=True)]
    given += [cells(field, (field.get_default(),)) * len(rows) for field in others]
    if connection.vendor != "postgresql":
        places = ", ".join(["%s"] * len(given))
        with connection.cursor() as cursor:
            sql = f"INSERT INTO {table} ({names}) VALUES ({places})"  # noqa: S608
            cursor.executemany(sql, list(zip(*given, strict=True)))
        return
    lines = "\n".join(map("\t".join, zip(*given, strict=True)))
    # What the database refuses in a copy is an error of Django's, as in any other statement.
    with (
        connection.cursor() as cursor,
        connection.wrap_database_errors,
        cursor.copy(f"COPY {table} ({names}) FROM STDIN") as copy,
    ):
        copy.write(f"{lines}\n")


def create(rows: Sequence[models.Model]) -> None:
    """Write new rows of one model, as they stand in memory."""
    if rows:
        names = [field.attname for field in _concrete(type(rows[0]))]
        insert(type(rows[0]), names, [[getattr(row, name) for name in names] for row in rows])


def create_together(*parts: Sequence[models.Model]) -> None:
    """Write a few new rows of several models, each part of one, as they stand in memory.

    One statement on PostgreSQL, so all of them go in or none; elsewhere one for each part. Rows
    may name those of parts before them. Keys that the database gives are not told.
    """
    for row in (row for rows in parts for row in rows):
        row._state.adding, row._state.db = False, connection.alias  # noqa: SLF001  # as Django
    if connection.vendor != "postgresql":
        for rows in parts:
            create(rows)
        return
    parts = tuple(rows for rows in parts if rows)
    given = [as_json([_told(row) for row in rows]) for rows in parts]
    with planned_cursor() as cursor:
        cursor.execute(_words_together(tuple(type(rows[0]) for rows in parts)), given)


def _told(row: models.Model) -> dict[str, Any]:
    """Return a row by its columns, as JSON can hold it."""
    return {field.column: getattr(row, field.attname) for field in _concrete(type(row))}


@cache
def _words_together(parts: tuple[Model, ...]) -> str:
    """Return the statement that writes rows of these models, each part of them given as JSON.

    A value for each part, and not one for each cell, makes one statement of it for any rows.
    """
    inserts = []
    for model in parts:
        names = ", ".join(_quoted(field.column) for field in _concrete(model))
        table = _quoted(model._meta.db_table)  # noqa: SLF001
        rows = f"json_populate_recordset(NULL::{table}, %s::json)"
        inserts.append(f"INSERT INTO {table} ({names}) SELECT {names} FROM {rows}")  # noqa: S608
    named = [f"part_{number} AS ({insert})" for number, insert in enumerate(inserts[:-1])]
    return f"WITH {', '.join(named)} {inserts[-1]}" if named else inserts[-1]


def update(
    model: Model, match: Sequence[str], columns: Sequence[str], rows: Sequence[Row]
) -> set[Any]:
    """Change rows that are still as they were seen.

    Args:
        model: whose rows.
        match: columns that a row must still have the values of, the key first.
        columns: what is set.
        rows: for each row the values of ``match``, then those of ``columns``.

    Returns:
        The keys of the rows that were changed; the others have other values by now or are gone.
    """
    if not rows:
        return set()
    if connection.vendor != "postgresql":
        return _update_each(model, match, columns, rows)
    fields = [_field(model, name) for name in (*match, *columns)]
    turned = zip(*rows, strict=True)
    given = [_Given(field, cells) for field, cells in zip(fields, turned, strict=True)]
    arrays = [one for i, one in enumerate(given) if i == 0 or not one.is_constant]
    for i, one in enumerate(arrays):
        one.source = f"c{i}"
    seen, new = given[: len(match)], given[len(match) :]
    sql = (
        f"UPDATE {_quoted(model._meta.db_table)} AS t"  # noqa: S608, SLF001
        f" SET {', '.join(f'{one.column} = {one.said}' for one in new)}"
        f" FROM unnest({', '.join(f'%s::{one.type}[]' for one in arrays)})"
        f" WITH ORDINALITY AS v({', '.join(one.source for one in arrays)}, number)"
        f" WHERE {' AND '.join(f't.{one.column} = {one.said}' for one in seen)}"
        " RETURNING v.number"  # numbers are read in a fraction of the time that keys take
    )
    parts = (_scalars(new), [one.as_array() for one in arrays], _scalars(seen))
    with connection.cursor() as cursor:
        cursor.execute(sql, [value for part in parts for value in part])
        return {rows[number - 1][0] for (number,) in cursor.fetchall()}


def delete(model: Model, keys: Iterable[Any]) -> None:
    """Delete rows by key."""
    for part in batches(keys):
        model._default_manager.filter(pk__in=part).delete()  # noqa: SLF001


def among(
    rows: models.QuerySet[Any, Any], keys: Collection[Any], name: str = "pk"
) -> Iterator[models.QuerySet[Any, Any]]:
    """Yield the rows with these keys, all at once: the keys are one array, elsewhere one JSON.

    ``name``: the column that holds the keys.
    """
    if not keys:
        return
    field = _field(rows.model, name)
    table = _quoted(rows.model._meta.db_table)  # noqa: SLF001
    column = f"{table}.{_quoted(field.column)}"
    if connection.vendor == "postgresql":
        yield rows.extra(where=[f"{column} = ANY(%s)"], params=[list(keys)])  # noqa: S610
        return
    among_them = f"{column} IN (SELECT value FROM json_each(%s))"  # noqa: S608
    told = as_json([adapted(field, key) for key in keys])
    yield rows.extra(where=[among_them], params=[told])  # noqa: S610


def batches(items: Iterable[Any], size: int = BATCH) -> Iterator[list[Any]]:
    """Yield the items in lists that are short enough for one statement's parameters.

    PostgreSQL takes all of them as one.
    """
    left = iter(items)
    if connection.vendor == "postgresql":
        size = 10_000
    while part := list(islice(left, size)):
        yield part


def _update_each(
    model: Model, match: Sequence[str], columns: Sequence[str], rows: Sequence[Row]
) -> set[Any]:
    """Change rows one by one. Nobody else can write meanwhile: the transaction has the lock."""
    width = len(match)
    seen = {row[0]: tuple(row[:width]) for row in rows}
    rows_of = model._default_manager.order_by()  # noqa: SLF001
    found = (
        row
        for part in batches(seen)
        for row in rows_of.filter(**{f"{match[0]}__in": part}).values_list(*match)
    )
    same = {row[0] for row in found if seen[row[0]] == tuple(row)}
    fields = [_field(model, name) for name in columns]
    key = _field(model, match[0])
    sql = (
        f"UPDATE {_quoted(model._meta.db_table)}"  # noqa: S608, SLF001
        f" SET {', '.join(f'{_quoted(field.column)} = %s' for field in fields)}"
        f" WHERE {_quoted(key.column)} = %s"
    )
    with connection.cursor() as cursor:
        cursor.executemany(
            sql,
            [
                [
                    *(adapted(f, value) for f, value in zip(fields, row[width:], strict=True)),
                    adapted(key, row[0]),
                ]
                for row in rows
                if row[0] in same
            ],
        )
    return same


def _concrete(model: Model) -> list[Any]:
    """Return the fields with a column, without a key that the database gives."""
    fields = model._meta.concrete_fields  # noqa: SLF001
    return [f for f in fields if not (f.primary_key and isinstance(f, models.AutoField))]


def _field(model: Model, name: str) -> Any:
    return model._meta.pk if name == "pk" else model._meta.get_field(name)  # noqa: SLF001


def _quoted(name: str) -> str:
    return connection.ops.quote_name(name)


class _Given:
    """The values of one column of an UPDATE: one for all rows, or a ``source`` of them."""

    def __init__(self, field: Any, cells: tuple[Any, ...]) -> None:
        self.cells, self.source = cells, ""
        self.is_constant = cells[-1] == cells[0] and cells.count(cells[0]) == len(cells)
        self.is_json = isinstance(field, models.JSONField)
        self.column = _quoted(field.column)
        key = field.primary_key
        plain = field.rel_db_type(connection) if key else field.db_type(connection)
        self.type = "text" if self.is_json else str(plain)

    @property
    def said(self) -> str:
        """Return the expression of the value of a row."""
        value = f"v.{self.source}" if self.source else f"%s::{self.type}"
        return f"{value}::jsonb" if self.is_json else value

    def as_array(self) -> str:
        """Return the values as the text of a PostgreSQL array, which is sent as one."""
        return "{" + ",".join(element_cells(self.cells, is_json=self.is_json)) + "}"


def _scalars(given: Iterable[_Given]) -> list[Any]:
    """Return the values that are the same for all rows."""
    cells = ((one, one.cells[0]) for one in given if not one.source)
    return [as_json(cell) if one.is_json else cell for one, cell in cells]
