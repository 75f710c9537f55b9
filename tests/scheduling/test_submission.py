"""Submitting, cancelling, nodes: what the services write, refuse and leave alone."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from django.test.utils import CaptureQueriesContext

from gpuplatform.common.models import AuditEntry, Change
from gpuplatform.common.problems import Rejected
from queues.models import PriorityClass
from queues.services import save_namespace
from queues.specs import NamespaceSpec
from scheduling.models import Node, Workload
from scheduling.rules import check_workload
from scheduling.services import (
    Refused,
    cancel_workload,
    delete_node,
    load_world,
    save_node,
    set_cordon,
    submit_workload,
)
from scheduling.specs import NodeSpec, PodSetSpec, SliceSpec, TopologySpec, WorkloadSpec
from tests.doors.samples import on_cluster

pytestmark = pytest.mark.django_db

GPU = "nvidia.com/gpu"
ONE = PodSetSpec("main", 1, {GPU: 1})
SPEC = WorkloadSpec("ns-datos", "job", (ONE,), queue="lq-datos")


@pytest.fixture
def queues(datos: Any) -> None:
    save_namespace(NamespaceSpec("ns-datos", team="datos"), actor=None)
    on_cluster(4, "kueue-three-teams")


@pytest.mark.usefixtures("queues")
def test_an_accepted_workload_is_pending_with_its_story_its_audit_and_a_wake_up(lea: Any) -> None:
    before = Change.objects.count()

    row = submit_workload(SPEC, actor=lea).workload

    assert row is not None
    assert (row.status, row.pending_reason, row.gpus) == ("pending", "PendingEvaluation", 1)
    assert (row.team.name, row.submitted_by) == ("datos", lea)
    assert [event.kind for event in row.events.all()] == ["submitted"]
    entry = AuditEntry.objects.get(action="workload.submitted")
    assert (entry.actor, entry.subject, entry.team) == (lea, "ns-datos/job", "datos")
    assert Change.objects.count() == before + 1


@pytest.mark.usefixtures("queues")
def test_a_live_name_is_taken_and_a_finished_one_is_free_again() -> None:
    first = submit_workload(SPEC, actor=None).workload

    with pytest.raises(Refused) as refusal:
        submit_workload(SPEC, actor=None)
    assert [problem.code for problem in refusal.value.problems] == ["name_taken"]

    cancel_workload(first.uid, actor=None)
    assert submit_workload(SPEC, actor=None).workload is not None
    assert Workload.objects.count() == 2


@pytest.mark.usefixtures("queues")
def test_a_dry_run_says_the_same_and_writes_nothing() -> None:
    before = AuditEntry.objects.count(), Change.objects.count()

    assert submit_workload(SPEC, actor=None, dry_run=True).workload is None
    with pytest.raises(Refused):
        submit_workload(replace(SPEC, queue="nowhere"), actor=None, dry_run=True)

    assert (AuditEntry.objects.count(), Change.objects.count()) == before
    assert not Workload.objects.exists()


@pytest.mark.usefixtures("queues")
def test_a_site_may_accept_the_impossible_with_the_same_reasons(settings: Any) -> None:
    settings.ACCEPT_IMPOSSIBLE_WORKLOADS = True
    big = replace(SPEC, pod_sets=(replace(ONE, count=5),))

    row = submit_workload(big, actor=None).workload

    assert {warning["code"] for warning in row.warnings} == {
        "NEVER_FITS_QUEUE",
        "NEVER_FITS_CLUSTER",
    }
    assert row.status == "pending"


@pytest.mark.usefixtures("queues")
def test_what_is_malformed_stays_refused_there(settings: Any) -> None:
    settings.ACCEPT_IMPOSSIBLE_WORKLOADS = True

    with pytest.raises(Refused):
        submit_workload(replace(SPEC, priority_class="none"), actor=None)


@pytest.mark.usefixtures("queues")
def test_the_priority_is_the_class_s_then_the_own_then_the_default() -> None:
    PriorityClass.objects.create(kind="workload", name="high", value=100)
    PriorityClass.objects.create(kind="pod", name="usual", value=7, global_default=True)
    specs = [
        replace(SPEC, name="a", priority_class="high"),
        replace(SPEC, name="b", priority=5),
        replace(SPEC, name="c"),
    ]

    rows = [submit_workload(spec, actor=None).workload for spec in specs]

    assert [row.priority for row in rows] == [100, 5, 7]


@pytest.mark.usefixtures("queues")
def test_submitting_takes_a_fixed_number_of_queries(
    django_assert_max_num_queries: Any, connection: Any
) -> None:
    def queries(spec: WorkloadSpec) -> int:
        with CaptureQueriesContext(connection) as found:
            submit_workload(spec, actor=None)
        return len(found)

    first = queries(SPEC)
    for number in range(5):
        submit_workload(replace(SPEC, name=f"more-{number}"), actor=None)

    assert queries(replace(SPEC, name="last")) == first


@pytest.fixture
def connection() -> Any:
    from django.db import connection as default  # noqa: PLC0415

    return default


@pytest.mark.usefixtures("queues")
def test_cancelling_ends_a_workload_once() -> None:
    row = submit_workload(SPEC, actor=None).workload

    cancelled = cancel_workload(row.uid, actor=None, reason="no longer needed")

    assert (cancelled.status, cancelled.outcome) == ("finished", "cancelled")
    with pytest.raises(Rejected) as refusal:
        cancel_workload(row.uid, actor=None)
    assert refusal.value.problems[0].code == "already_finished"


WARNED: list[tuple[Mapping[str, Any], str]] = [
    (
        {"min_member": 2, "pod_sets": (replace(ONE, count=2, min_count=1),)},
        "pod_sets[0].min_count",
    ),
]


@pytest.mark.usefixtures("queues")
@pytest.mark.parametrize(("changes", "path"), WARNED, ids=[path for _, path in WARNED])
def test_what_is_kept_and_not_followed_is_said(changes: Mapping[str, Any], path: str) -> None:
    found = check_workload(replace(SPEC, **changes), load_world())

    assert [(d.code, d.path) for d in found] == [("FIELD_NOT_HONOURED", path)]


@pytest.mark.parametrize(
    ("level", "label"),
    [
        ("topology.kubernetes.io/block", "topology.kubernetes.io/block"),
        ("block", "topology.kubernetes.io/block"),
        ("tier:1", "topology.kubernetes.io/rack"),
        ("tier:2", "topology.kubernetes.io/block"),
        ("tier:0", "kubernetes.io/hostname"),
        ("tier:3", None),
        ("floor", None),
    ],
)
def test_a_level_is_a_label_its_last_part_or_a_tier(level: str, label: str | None) -> None:
    on_cluster(16, "kueue-topology-flavor")

    assert load_world().level_of(level, None) == label


def test_a_short_level_name_is_stored_as_the_label() -> None:
    on_cluster(16, "kueue-topology-flavor", "volcano-queues")
    rack = replace(ONE, topology=TopologySpec("required", "rack"))
    spec = WorkloadSpec("ns-x", "job", (rack,), queue="team-datos")

    row = submit_workload(spec, actor=None).workload

    assert row.pod_sets.get().topology_level == "topology.kubernetes.io/rack"


def test_an_unknown_slice_level_is_named() -> None:
    on_cluster(16, "kueue-topology-flavor", "volcano-queues")
    sliced = replace(ONE, slices=(SliceSpec("floor", 1),))
    spec = WorkloadSpec("ns-x", "job", (sliced,), queue="team-datos")

    codes = {d.code for d in check_workload(spec, load_world())}

    assert "UNKNOWN_TOPOLOGY_LEVEL" in codes


@pytest.mark.usefixtures("queues")
def test_a_mistyped_resource_gets_the_nearest_name() -> None:
    spec = replace(SPEC, pod_sets=(replace(ONE, requests={"nvidia.com/gpus": 1}),))

    found = {d.code: d.numbers for d in check_workload(spec, load_world())}

    assert found["UNKNOWN_RESOURCE"]["nearest"] == GPU
    assert "UNCOVERED_RESOURCE" in found


@pytest.mark.usefixtures("queues")
def test_a_namespace_that_the_queue_does_not_admit_is_refused() -> None:
    from queues.services import save_local_queue  # noqa: PLC0415
    from queues.specs import LocalQueueSpec  # noqa: PLC0415

    save_local_queue(LocalQueueSpec("ns-ia", "lq", "cq-datos"), actor=None)

    with pytest.raises(Refused) as refusal:
        submit_workload(replace(SPEC, namespace="ns-ia", queue="lq"), actor=None)
    assert [p.code for p in refusal.value.problems] == ["NAMESPACE_NOT_ALLOWED"]


# ---- nodes -------------------------------------------------------------------------------------
NODE = NodeSpec("n1", {"a": "b"}, allocatable={GPU: 4}, capacity={GPU: 4})


def test_an_equal_report_of_a_node_changes_nothing() -> None:
    first = save_node(NODE, actor=None)
    noted = AuditEntry.objects.count(), Change.objects.count()

    again = save_node(NODE, actor=None)

    assert again.version == first.version
    assert (AuditEntry.objects.count(), Change.objects.count()) == noted


def test_a_change_of_a_node_is_audited_and_wakes_the_cycle() -> None:
    save_node(NODE, actor=None)

    row = save_node(replace(NODE, ready=False), actor=None)

    assert (row.version, row.ready) == (2, False)
    assert AuditEntry.objects.filter(action="node.updated").count() == 1
    assert Change.objects.filter(topic="node", key="n1").count() == 2


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"name": "No Name"}, "bad_name"),
        ({"labels": {"a b": "c"}}, "bad_label_key"),
        ({"allocatable": {GPU: 5}}, "ALLOCATABLE_ABOVE_CAPACITY"),
        ({"taints": ({"key": ""},)}, "bad_label_key"),
        ({"capacity": {GPU: -1}, "allocatable": {}}, "negative"),
    ],
)
def test_an_impossible_node_is_refused(changes: Mapping[str, Any], code: str) -> None:
    with pytest.raises(Rejected) as refusal:
        save_node(replace(NODE, **changes), actor=None)

    assert [problem.code for problem in refusal.value.problems] == [code]
    assert not Node.objects.exists()


def test_a_cordon_is_noted_once_and_lifted_again(ada: Any) -> None:
    save_node(NODE, actor=None)

    set_cordon("n1", True, actor=ada, reason="fan is loud")
    set_cordon("n1", True, actor=ada)
    row = set_cordon("n1", False, actor=ada)

    assert row.schedulable
    entries = AuditEntry.objects.filter(actor=ada).order_by("id")
    assert [entry.action for entry in entries] == ["node.cordoned", "node.uncordoned"]
    assert entries[0].reason == "fan is loud"


def test_a_deleted_node_is_gone_and_a_missing_one_is_named() -> None:
    save_node(NODE, actor=None)

    delete_node("n1", actor=None)

    assert not Node.objects.exists()
    with pytest.raises(Rejected) as refusal:
        set_cordon("n1", True, actor=None)
    assert refusal.value.problems[0].code == "not_found"
