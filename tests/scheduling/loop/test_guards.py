"""A promise under which work stands or waits cannot be deleted."""

import pytest

from gpuplatform.common.problems import Rejected
from queues.models import LocalQueue
from queues.services import delete_cluster_queue, delete_local_queue
from scheduling.cycle import run_cycle
from tests.scheduling.loop.world import nodes, queue, work

pytestmark = pytest.mark.django_db


def test_a_local_queue_stays_while_live_work_names_it(clock):
    queue("datos", 4)
    work("datos", "job")
    with pytest.raises(Rejected, match="ns-datos/job"):
        delete_local_queue("ns-datos", "lq", actor=None)
    assert LocalQueue.objects.exists()


def test_a_cluster_queue_stays_while_work_holds_its_quota(clock):
    nodes(1)
    queue("datos", 4)
    work("datos", "job")
    run_cycle()
    LocalQueue.objects.all().delete()
    with pytest.raises(Rejected, match="ns-datos/job"):
        delete_cluster_queue("cq-datos", actor=None)
