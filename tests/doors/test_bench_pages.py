"""The bench of pages stands on rows that the product itself would call sound."""

import pytest
from django.test import Client
from django.utils import timezone

from finops.billing import rebuild_draft
from gpuplatform.common.periods import month_at
from gpuplatform.doors.bench_pages import measuring
from gpuplatform.doors.bench_pages.rows import Size, write
from queues.models import ClusterQueue
from scheduling.models import UsageInterval, Workload

pytestmark = pytest.mark.django_db
SMALL = Size(queues=20, workloads=40, history=30, nodes=8)


@pytest.fixture
def client_of_admin():
    write(SMALL, timezone.now())
    return measuring._admin()  # noqa: SLF001


def test_there_is_as_much_as_was_asked_for(client_of_admin):
    states = Workload.objects.order_by().values_list("status", flat=True)
    assert sorted(set(states)) == ["finished", "pending", "running"]
    assert (ClusterQueue.objects.count(), Workload.objects.count()) == (20, 70)
    running = Workload.objects.filter(status="running").count()
    assert UsageInterval.objects.filter(ended_at=None).count() == running == 16


def test_every_page_that_is_measured_is_there(client_of_admin: Client):
    rebuild_draft(month_at(timezone.now()).name)
    paths = (*measuring.PAGES, *measuring.FIGURES)
    found = measuring._measured(client_of_admin, paths, ("/",), 1)  # noqa: SLF001
    assert {one.path for one in found} == set(paths)
    assert all(one.queries and one.p95_ms > 0 and one.bytes > 100 for one in found)


def test_the_slowest_comes_first_and_stands_beside_its_goals(client_of_admin):
    chosen = ("/teams/", "/prices/")
    pages = measuring._measured(client_of_admin, measuring.PAGES, chosen, 2)  # noqa: SLF001
    assert [page.p95_ms for page in pages] == sorted((p.p95_ms for p in pages), reverse=True)
    report = measuring._report(SMALL, {}, pages, [])  # noqa: SLF001
    assert list(report.work) == [page.path for page in pages]
    ids = [goal.id for goal in report.goals]
    assert ids == ["ms-page-p95-worst", "ms-page-p95-worst-floor", "queries-page-worst"]
