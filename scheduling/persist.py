"""Many rows in few statements: COPY and unnest on PostgreSQL, the ORM's bulk calls elsewhere.

The one module that speaks PostgreSQL's own language. Every function writes inside the caller's
transaction; values are as a model's attributes hold them, JSON as plain Python.
Source: ``performance.md`` 6.
"""

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import partial
from itertools import islice
from typing import Any

from django.db import connection, models

BATCH = 200  # rows per statement elsewhere: SQLite bounds the parameters of one
Model = type[models.Model]
Row = Sequence[Any]
_dumps = partial(json.dumps, separators=(",", ":"))


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


def insert(model: Model, columns: Sequence[str], rows: Collection[Row]) -> None:
    """Write new rows. Columns that are not named get the default of their field."""
    if not rows:
        return
    if connection.vendor != "postgresql":
        made = (model(**dict(zip(columns, row, strict=True))) for row in rows)
        model._default_manager.bulk_create(made, batch_size=BATCH)  # noqa: SLF001
        return
    named = [_field(model, name) for name in columns]
    others = [field for field in _concrete(model) if field not in named]
    tail = [_prepared(field)(field.get_default()) for field in others]
    prepare = [_prepared(field) for field in named]
    names = ", ".join(_quoted(field.column) for field in (*named, *others))
    table = _quoted(model._meta.db_table)  # noqa: SLF001
    with connection.cursor() as cursor, cursor.copy(f"COPY {table} ({names}) FROM STDIN") as copy:
        for row in rows:
            copy.write_row([p(v) for p, v in zip(prepare, row, strict=True)] + tail)


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
    names = [f"c{i}" for i in range(len(fields))]
    arrays = ", ".join(f"%s::{_array_type(field)}[]" for field in fields)
    sets = zip(fields[len(match) :], names[len(match) :], strict=True)
    conditions = zip(fields[: len(match)], names, strict=False)
    sql = (
        f"UPDATE {_quoted(model._meta.db_table)} AS t"  # noqa: S608, SLF001
        f" SET {', '.join(f'{_quoted(f.column)} = v.{name}{_cast(f)}' for f, name in sets)}"
        f" FROM unnest({arrays}) AS v({', '.join(names)})"
        f" WHERE {' AND '.join(f't.{_quoted(f.column)} = v.{name}' for f, name in conditions)}"
        f" RETURNING t.{_quoted(fields[0].column)}"
    )
    turned = zip(*rows, strict=True)
    values = [_array(field, cells) for field, cells in zip(fields, turned, strict=True)]
    with connection.cursor() as cursor:
        cursor.execute(sql, values)
        return {key for (key,) in cursor.fetchall()}


def delete(model: Model, keys: Iterable[Any]) -> None:
    """Delete rows by key."""
    for part in batches(keys):
        model._default_manager.filter(pk__in=part).delete()  # noqa: SLF001


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
                    *(_adapted(f, value) for f, value in zip(fields, row[width:], strict=True)),
                    _adapted(key, row[0]),
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


def _prepared(field: Any) -> Callable[[Any], Any]:
    if isinstance(field, models.JSONField):
        return lambda value: None if value is None else _dumps(value)
    return lambda value: value


def _adapted(field: Any, value: Any) -> Any:
    return field.get_db_prep_save(value, connection)


def _array_type(field: Any) -> str:
    if isinstance(field, models.JSONField):
        return "text"
    return str(field.rel_db_type(connection) if field.primary_key else field.db_type(connection))


def _array(field: Any, cells: Iterable[Any]) -> str:
    """Return values as the text of a PostgreSQL array, which is sent as one."""
    prepare = _prepared(field)
    return "{" + ",".join(_element(prepare(cell)) for cell in cells) + "}"


def _element(value: Any) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, int):  # true and false are numbers to Python alone
        return str(value).lower()
    text = str(value).replace("\\", "\\\\").replace('"', '\\"')
    return f'"{text}"'


def _cast(field: Any) -> str:
    return "::jsonb" if isinstance(field, models.JSONField) else ""
