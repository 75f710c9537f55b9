"""Two people at once, on the database that lets two people write at once."""

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest
from django.db import connection

from gpuplatform.common.problems import Rejected, Stale
from queues import services
from queues.models import ClusterQueue, Cohort, FlavorQuota
from queues.specs import CohortSpec
from tests.queues.promises import queue

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.skipif(
        "connection.vendor != 'postgresql'", reason="only on PostgreSQL: SQLite has one writer"
    ),
]


def at_once(*writes):
    """Run ``writes`` together; return what each answered, errors as values."""
    barrier = Barrier(len(writes))

    def run(write):
        try:
            barrier.wait(timeout=10)
            return write()
        except Rejected as error:
            return error
        finally:
            connection.close()

    with ThreadPoolExecutor(len(writes)) as pool:
        return list(pool.map(run, writes))


def test_of_two_editors_of_one_version_one_is_stale():
    services.save_cluster_queue(queue(), actor=None)
    answers = at_once(
        lambda: services.save_cluster_queue(queue(24), actor=None, if_version=1),
        lambda: services.save_cluster_queue(queue(32), actor=None, if_version=1),
    )
    kept = [answer for answer in answers if isinstance(answer, ClusterQueue)]
    assert [type(answer) for answer in answers].count(Stale) == len(kept) == 1
    assert FlavorQuota.objects.get().nominal in {24, 32}
    assert ClusterQueue.objects.get().version == 2


def test_of_two_makers_of_one_queue_one_is_stale():
    services.save_cohort(CohortSpec("llm-platform"), actor=None)
    answers = at_once(
        *[lambda: services.save_cluster_queue(queue(), actor=None, if_version=0)] * 2
    )
    assert [type(answer) for answer in answers].count(Stale) == 1
    assert FlavorQuota.objects.count() == 1


def test_two_edits_do_not_close_a_cycle_together():
    for name in ("a", "b"):
        services.save_cohort(CohortSpec(name), actor=None)
    answers = at_once(
        lambda: services.save_cohort(CohortSpec("a", "b"), actor=None),
        lambda: services.save_cohort(CohortSpec("b", "a"), actor=None),
    )
    assert [type(answer) for answer in answers].count(Rejected) == 1
    assert Cohort.objects.filter(parent=None).count() == 1
