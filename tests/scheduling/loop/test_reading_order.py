"""A cycle reads in several queries while others commit; the order of the queries is a rule."""

from django.db import connection
from django.test.utils import CaptureQueriesContext

from scheduling.loader import load


def test_workloads_are_read_before_their_pod_sets(db: None) -> None:
    """Else one submitted in between has no pods yet, and a gang without pods fits everywhere."""
    with CaptureQueriesContext(
        connection,
    ) as captured:
        load()
    told = [query["sql"] for query in captured if " FROM " in query["sql"]]  # not what a
    asked = [sql for sql in told if "GROUP BY" not in sql]  # connection asks of itself; no sums
    tables = [sql.split(" FROM ")[1].split()[0].strip('"') for sql in asked]
    read = [table for table in tables if table in {"scheduling_workload", "scheduling_podset"}]
    assert read == ["scheduling_workload", "scheduling_podset"]
