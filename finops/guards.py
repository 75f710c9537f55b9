"""A closed month never changes: triggers that refuse it, on SQLite and on PostgreSQL.

They stand in the database, so that no service, shell or statement can pass them by. Django makes
a table of SQLite anew when it alters it, and its triggers go with the old one; therefore they are
put up after every ``migrate`` (``finops.apps``), where doing it twice changes nothing.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from django.db import connections

MESSAGE = "a closed month never changes"
OPERATIONS = ("INSERT", "UPDATE", "DELETE")
_PERIOD = (
    "EXISTS (SELECT 1 FROM finops_billingperiod p"
    " WHERE p.id = {row}.period_id AND p.status = 'closed')"
)
_BILL = (
    "EXISTS (SELECT 1 FROM finops_bill b JOIN finops_billingperiod p ON p.id = b.period_id"
    " WHERE b.id = {row}.bill_id AND p.status = 'closed')"
)
# Table -> when a row of it belongs to a closed month.
CLOSED = {
    "finops_billingperiod": "{row}.status = 'closed'",
    "finops_bill": _PERIOD,
    "finops_billline": _BILL,
    "finops_finding": _PERIOD,
    "finops_periodstep": _PERIOD,
    "finops_acknowledgement": _PERIOD,
    "finops_issuedbill": _PERIOD,
    "finops_freeze": _PERIOD,
    "finops_adjustment": _PERIOD,
}


@dataclass(frozen=True, slots=True)
class Guard:
    """One trigger: what must not be done to which rows."""

    table: str
    operation: str
    condition: str

    @property
    def name(self) -> str:
        """Return the trigger's name."""
        return f"{self.table}_closed_{self.operation.lower()}"


def guards() -> Iterator[Guard]:
    """Yield every guard; closing itself writes the period last, so its update is from open."""
    for table, condition in CLOSED.items():
        for operation in OPERATIONS:
            if (table, operation) == ("finops_billingperiod", "INSERT"):
                continue
            rows = {"INSERT": ("NEW",), "UPDATE": ("OLD", "NEW"), "DELETE": ("OLD",)}[operation]
            if table == "finops_billingperiod":
                rows = ("OLD",)
            yield Guard(table, operation, " OR ".join(condition.format(row=row) for row in rows))


def put_up(**kwargs: Any) -> None:
    """Put up the guards of this database; called after ``migrate``."""
    connection = connections[kwargs.get("using") or "default"]
    there = set(connection.introspection.table_names())
    with connection.cursor() as cursor:
        for guard in guards():
            if guard.table in there:
                for statement in _statements(connection.vendor, guard):
                    cursor.execute(statement)


def _statements(vendor: str, guard: Guard) -> Iterator[str]:
    if vendor == "sqlite":
        yield f"DROP TRIGGER IF EXISTS {guard.name}"
        yield (
            f"CREATE TRIGGER {guard.name} BEFORE {guard.operation} ON {guard.table}"
            f" WHEN {guard.condition} BEGIN SELECT RAISE(ABORT, '{MESSAGE}'); END"
        )
        return
    kept = "OLD" if guard.operation == "DELETE" else "NEW"
    yield (
        f"CREATE OR REPLACE FUNCTION {guard.name}() RETURNS trigger AS $$ BEGIN"
        f" IF {guard.condition} THEN"
        f" RAISE EXCEPTION '{MESSAGE}' USING ERRCODE = 'check_violation'; END IF;"
        f" RETURN {kept}; END $$ LANGUAGE plpgsql"
    )
    yield f"DROP TRIGGER IF EXISTS {guard.name} ON {guard.table}"
    yield (
        f"CREATE TRIGGER {guard.name} BEFORE {guard.operation} ON {guard.table}"
        f" FOR EACH ROW EXECUTE FUNCTION {guard.name}()"
    )
