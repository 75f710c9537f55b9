"""Rows become a snapshot, in a number of queries that does not grow."""

from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from queues.models import Cohort, FlavorQuota, LocalQueue, Namespace, Topology, TopologyLevel
from scheduling.cycle import run_cycle
from scheduling.engine.diagnostics import check_promises
from scheduling.engine.machines import GPU
from scheduling.engine.snapshot import FlavorResource, Quota
from scheduling.engine.terms import Status, TopologyMode
from scheduling.loader import load_snapshot
from scheduling.models import Admission, Node
from tests.scheduling.loop.world import FLAVOR, NOON, nodes, queue, work

pytestmark = pytest.mark.django_db
GPUS = FlavorResource(FLAVOR, GPU)


def count_queries() -> int:
    with CaptureQueriesContext(
        connection,
    ) as queries:
        load_snapshot(NOON)
    return len(queries)


def test_the_number_of_queries_does_not_grow_with_the_rows():
    nodes(1)
    queue("datos", 2, cohort="llm")
    work("datos", "one")
    run_cycle()
    few = count_queries()
    nodes_before = Node.objects.count()
    Node.objects.bulk_create(Node(name=f"more-{n}") for n in range(20))
    for n in range(6):
        queue(f"team{n}", 3, cohort=f"cohort{n % 2}")
        work(f"team{n}", f"job{n}")
    run_cycle()
    assert Node.objects.count() > nodes_before
    assert count_queries() == few
    assert few <= 17  # the checks among them: whom they would refuse


def test_an_empty_database_is_an_empty_world():
    snapshot = load_snapshot(NOON)
    assert (snapshot.now, snapshot.nodes, snapshot.workloads) == (NOON.timestamp(), (), ())


def test_only_live_work_is_loaded_and_evicted_work_that_still_stands_is_releasing():
    queue("datos", 8)
    pending, running, leaving = (work("datos", name) for name in ("a", "b", "c"))
    work("datos", "old", status=Status.FINISHED, outcome="succeeded")
    cancelled = work("datos", "d", status=Status.FINISHED, outcome="cancelled")
    for workload, evicted_at in ((running, None), (leaving, NOON), (cancelled, NOON)):
        Admission.objects.create(
            workload=workload, cluster_queue="cq-datos", admitted_at=NOON, evicted_at=evicted_at
        )
    loaded = {w.name: (w.admission is not None, w.releasing) for w in load_snapshot().workloads}
    assert loaded == {
        "ns-datos/a": (False, False),
        "ns-datos/b": (True, False),
        "ns-datos/c": (True, True),
        "ns-datos/d": (True, True),
    }
    assert pending.version == 1


@pytest.mark.parametrize(
    ("selector", "blocked"),
    [
        (None, "NAMESPACE_NOT_ALLOWED"),
        ({}, ""),
        ({"matchLabels": {"kubernetes.io/metadata.name": "ns-datos"}}, ""),
        ({"matchLabels": {"tier": "gold"}}, ""),
        ({"matchLabels": {"tier": "tin"}}, "NAMESPACE_NOT_ALLOWED"),
        ({"matchExpressions": [{"key": "tier", "operator": "In", "values": ["gold"]}]}, ""),
        (
            {"matchExpressions": [{"key": "tier", "operator": "DoesNotExist"}]},
            "NAMESPACE_NOT_ALLOWED",
        ),
    ],
)
def test_the_namespace_selector_is_judged_on_declared_labels(selector, blocked):
    Namespace.objects.create(name="ns-datos", labels={"tier": "gold"})
    queue("datos", 2, namespace_selector=selector)
    work("datos", "job")
    assert [w.blocked for w in load_snapshot().workloads] == [blocked]


def test_an_undeclared_namespace_has_its_name_only():
    selector = {"matchLabels": {"kubernetes.io/metadata.name": "ns-datos"}}
    queue("datos", 2, namespace_selector=selector)
    work("datos", "mine")
    LocalQueue.objects.create(namespace="ns-other", name="lq", cluster_queue="cq-datos")
    work("other", "foreign")
    assert [(w.name, w.blocked) for w in load_snapshot().workloads] == [
        ("ns-datos/mine", ""),
        ("ns-other/foreign", "NAMESPACE_NOT_ALLOWED"),
    ]


@pytest.mark.parametrize(
    ("queue_name", "stop", "leads_to", "blocked"),
    [
        ("lq", "None", "cq-datos", ""),
        ("lq", "Hold", "cq-datos", "QUEUE_STOPPED"),
        ("lq", "HoldAndDrain", "cq-datos", "QUEUE_STOPPED"),
        ("nowhere", "None", "nowhere", "QUEUE_MISSING"),
        ("cq-datos", "None", "cq-datos", ""),
        ("cq-closed", "None", "cq-closed", "QUEUE_MISSING"),
        ("", "None", None, ""),
    ],
)
def test_a_queue_name_leads_to_a_cluster_queue_or_nowhere(queue_name, stop, leads_to, blocked):
    queue("datos", 2)
    queue("closed", 2, namespace_selector={"matchLabels": {"a": "b"}})
    LocalQueue.objects.filter(namespace="ns-datos").update(stop_policy=stop)
    work("datos", "job", queue_name=queue_name)
    assert [(w.queue, w.blocked) for w in load_snapshot().workloads] == [(leads_to, blocked)]


def test_admitted_work_stays_in_its_queue_when_the_local_queue_only_holds():
    queue("datos", 2)
    Admission.objects.create(
        workload=work("datos", "a", status=Status.ADMITTED),
        cluster_queue="cq-datos",
        admitted_at=NOON,
    )
    LocalQueue.objects.update(stop_policy="Hold", cluster_queue="cq-elsewhere")
    held = ("cq-datos", "LocalQueueHeld")  # it runs on, and gets no more pods
    assert [(w.queue, w.blocked) for w in load_snapshot().workloads] == [held]
    LocalQueue.objects.update(stop_policy="HoldAndDrain")
    assert [w.blocked for w in load_snapshot().workloads] == ["QUEUE_STOPPED"]


def test_a_residual_cohort_owns_what_healthy_nodes_leave_of_its_promises():
    nodes(8)
    Node.objects.filter(name="h100-node-01").update(schedulable=False)
    Cohort.objects.create(name="volcano", quota_source="residual")
    queue("datos", 16, cohort="volcano")
    queue("ia", 8, cohort="volcano")
    assert load_snapshot().cohorts["volcano"].quotas == {GPUS: Quota(28 - 24)}
    FlavorQuota.objects.filter(nominal=8).update(nominal=80)
    assert load_snapshot().cohorts["volcano"].quotas == {GPUS: Quota(0)}


def test_a_residual_cohort_leaves_alone_what_is_promised_elsewhere():
    nodes(2)
    parent = Cohort.objects.create(name="division")
    Cohort.objects.create(name="volcano", quota_source="residual")
    queue("datos", 2, cohort="volcano")
    queue("ia", 1, cohort="division")
    FlavorQuota.objects.create(cohort=parent, flavor=FLAVOR, resource=GPU, nominal=1)
    snapshot = load_snapshot()
    assert snapshot.cohorts["volcano"].quotas == {GPUS: Quota(8 - 2 - 1 - 1)}
    assert check_promises(snapshot) == ()


def test_two_residual_cohorts_do_not_both_own_the_same_rest():
    nodes(2)
    for name in ("a", "b"):
        Cohort.objects.create(name=name, quota_source="residual")
        queue(name, 2, cohort=name)
    cohorts = load_snapshot().cohorts
    assert [cohorts[name].quotas[GPUS].nominal for name in ("a", "b")] == [4, 0]


def test_a_queue_that_cannot_admit_says_why():
    queue("datos", 2, cohort="a")
    assert load_snapshot().cluster_queues["cq-datos"].inactive == "FlavorNotFound"
    nodes(1)
    assert load_snapshot().cluster_queues["cq-datos"].inactive == ""
    a = Cohort.objects.get(name="a")
    b = Cohort.objects.create(name="b", parent=a)
    Cohort.objects.filter(name="a").update(parent=b)
    assert load_snapshot().cluster_queues["cq-datos"].inactive == "CohortCycle"


def test_levels_and_topology_requests_are_read_in_order():
    topology = Topology.objects.create(name="dc")
    for position, label in ((1, "rack"), (0, "block")):
        TopologyLevel.objects.create(topology=topology, position=position, node_label=label)
    queue("datos", 2)
    work("datos", "job", topology={"topology_mode": "required", "topology_level": "rack"})
    snapshot = load_snapshot()
    request = snapshot.workloads[0].pod_sets[0].topology
    assert snapshot.topologies["dc"].levels == ("block", "rack")
    assert request is not None
    assert (request.mode, request.level) == (TopologyMode.REQUIRED, "rack")


def test_the_pods_of_the_last_30_days_are_counted_by_what_they_ask():
    queue("datos", 8)
    work("datos", "one", pods=3, gpus=2, created_at=NOON - timedelta(days=29))
    work("datos", "two", pods=4, gpus=2, status=Status.FINISHED, outcome="failed", created_at=NOON)
    work("datos", "other", gpus=8, created_at=NOON)
    work("datos", "old", pods=9, created_at=NOON - timedelta(days=30))
    work("datos", "not-yet", pods=9, created_at=NOON + timedelta(seconds=1))
    found = {one.pod_set.requests[GPU]: one.pods for one in load_snapshot(NOON).shapes}
    assert found == {2: 7, 8: 1}
