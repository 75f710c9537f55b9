"""Several tables in one statement: every value is that of reading the table alone."""

from datetime import timedelta
from decimal import Decimal

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from gpuplatform.common import clock
from gpuplatform.common.together import instances, read_together, whole
from queues import models as promises
from queues.access import actor_for
from scheduling import models as rows
from scheduling.loader import load_snapshot
from scheduling.selectors.quotas import load_board
from tests.scheduling.loop import world

pytestmark = pytest.mark.django_db
KINDS = (
    *(promises.LocalQueue, promises.ClusterQueue, promises.Namespace, promises.Team),
    *(promises.Cohort, promises.FlavorQuota, promises.ResourceFlavor, promises.TopologyLevel),
    *(rows.Node, rows.Workload, rows.PodSet, rows.Admission, rows.Placement, rows.UsageInterval),
)


@pytest.fixture
def full(platform):
    """Values that JSON has no type for, and some that are easily mistaken for others."""
    promises.ClusterQueue.objects.update(
        fair_weight=Decimal("0.3500"), carried={"a": "1", "b": [1.5, None, True]}
    )
    promises.ResourceFlavor.objects.update(node_labels={"plus": "ñ + ¿", "quote": '"'})
    rows.Workload.objects.update(
        waiting_since=clock.now() - timedelta(microseconds=1), role_minima={"main": 0}
    )
    return platform


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_rows_read_together_are_those_read_alone(full, kind):
    (lines,) = read_together(whole(kind.objects.order_by("pk")))
    alone = list(kind.objects.order_by("pk"))
    assert alone or kind is promises.TopologyLevel
    columns = [column.attname for column in kind._meta.concrete_fields]  # noqa: SLF001
    for one, other in zip(instances(kind, lines), alone, strict=True):
        for name in columns:
            mine, theirs = getattr(one, name), getattr(other, name)
            assert (type(mine), mine) == (type(theirs), theirs), name


def test_each_question_gets_its_own_rows_in_its_own_order_by_one_query(full):
    queues = promises.ClusterQueue.objects.values_list("name", "cohort__name")
    nodes = rows.Node.objects.order_by("name").values_list("name")
    with CaptureQueriesContext(connection) as captured:
        found = read_together(queues, nodes)
    assert len(captured) == 1
    assert found == [list(queues), list(nodes)]


def test_what_pages_read_is_the_snapshot_without_what_waits(full, ada):
    world.work("datos", "late")
    board, every = load_board(actor_for(ada)), load_snapshot()
    held = tuple(work for work in every.workloads if work.admission is not None)
    assert board.snapshot.workloads == held
    assert board.snapshot.cluster_queues == every.cluster_queues
    assert board.snapshot.nodes == every.nodes
    assert board.snapshot.cohorts == every.cohorts
