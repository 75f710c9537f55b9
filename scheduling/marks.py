"""Whether anything promised has changed: one question about all rows that promise something.

Promises, nodes and who owns them change seldom. All of them are rows with a version that grows
with each edit (``queues.services.writing``), so it is told by how many rows there are of each
kind, the sum of their versions, the newest row and the last edit. Another process' edit, a rolled
back one and one that came back are told apart by that. Source: ``decisions.md`` 7.
"""

from functools import cache

from django.db import connection
from django.db.models import Model, TextField
from django.db.models.expressions import RawSQL

from gpuplatform.common.questions import planned_cursor
from queues.models import (
    ClusterQueue,
    Cohort,
    LocalQueue,
    Namespace,
    PriorityClass,
    ResourceFlavor,
    Team,
    Topology,
)
from scheduling.models import Node

PROMISED: tuple[type[Model], ...] = (
    *(Team, Namespace, PriorityClass, Topology, ResourceFlavor, Node),
    *(Cohort, ClusterQueue, LocalQueue),
)
Mark = tuple[str, str]  # of which database, and what it said


def promised_mark() -> Mark:
    """Return what is another after every edit of promises, nodes and their owners. 1 query."""
    with planned_cursor() as cursor:
        cursor.execute(f"SELECT {_question()}")  # nothing comes from outside
        return mark_of(cursor.fetchone()[0])


def mark_column() -> RawSQL:
    """Return the same as a column of a question about something else, for :func:`mark_of`."""
    return RawSQL(_question(), (), output_field=TextField())  # noqa: S611  # as above


def mark_of(told: str) -> Mark:
    """Return the mark of what a database said."""
    return (str(connection.settings_dict["NAME"]), told)


@cache
def _question() -> str:
    """Return the question about all tables, as one text; nothing in it comes from outside."""
    return " || ';' || ".join(f"({_about(model)})" for model in PROMISED)


def _about(model: type[Model]) -> str:
    table = connection.ops.quote_name(model._meta.db_table)  # noqa: SLF001  # Django's own name
    numbers = ("COUNT(*)", "SUM(version)", "MAX(id)", "MAX(updated_at)")
    told = " || ',' || ".join(f"COALESCE(CAST({one} AS TEXT), '')" for one in numbers)
    return f"SELECT {told} FROM {table}"  # noqa: S608
