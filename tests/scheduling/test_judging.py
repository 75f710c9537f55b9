"""New work is judged by the world as it stands, which is read only where something has changed."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext

from queues import services as queues
from queues.access import actor_for
from queues.descriptions import describe_cluster_queue, describe_flavor, describe_local_queue
from queues.models import ClusterQueue, LocalQueue, Namespace, ResourceFlavor
from queues.specs import LocalQueueSpec, NamespaceSpec, PriorityClassSpec, TeamSpec, TopologySpec
from scheduling import judging, services
from scheduling.models import Node, Workload
from scheduling.selectors.quotas import load_board
from scheduling.services import delete_node, describe_node, load_world, save_node, set_cordon
from scheduling.specs import PodSetSpec, WorkloadSpec
from tests.scheduling.loop.world import nodes, queue

pytestmark = pytest.mark.django_db
GPU = "nvidia.com/gpu"


@pytest.fixture(autouse=True)
def kept(settings: Any, datos: Any) -> Iterator[None]:
    settings.WORLD_KEPT = True
    judging.forget()
    nodes(2)
    queue("datos", 8)
    queue("ia", 8)
    yield
    judging.forget()


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return a list that grows with each time that the tables are read."""
    found: list[int] = []
    platform = services._read_platform  # noqa: SLF001  # what is counted

    def counted() -> Any:
        found.append(1)
        return platform()

    monkeypatch.setattr(services, "_read_platform", counted)
    return found


def told() -> Any:
    """Return what the world says, without when it was asked."""
    world = load_world(works=False)
    doors = [sorted(part) for part in (world.doors.local_queues, world.doors.cluster_queues)]
    return replace(world.snapshot, now=0.0), doors, dict(world.priorities)


def other_quota() -> None:
    spec = describe_cluster_queue(ClusterQueue.objects.get(name="cq-datos"))
    group = spec.groups[0]
    flavor = group.flavors[0]
    cells = tuple(replace(cell, nominal=cell.nominal - 1) for cell in flavor.quotas)
    groups = (replace(group, flavors=(replace(flavor, quotas=cells),)),)
    queues.save_cluster_queue(replace(spec, groups=groups), actor=None)


def stopped() -> None:
    row = LocalQueue.objects.get(namespace="ns-datos")
    spec = describe_local_queue(row)
    queues.save_local_queue(replace(spec, stop_policy="Hold"), actor=None)


def other_flavor() -> None:
    spec = describe_flavor(ResourceFlavor.objects.first())
    queues.save_flavor(replace(spec, node_labels={"other": "label"}), actor=None)


def smaller_node() -> None:
    spec = describe_node(Node.objects.order_by("name")[0])
    save_node(replace(spec, allocatable={GPU: 1}), actor=None)


CHANGES: dict[str, Callable[[], object]] = {
    "a quota": other_quota,
    "a stopped queue": stopped,
    "a flavor": other_flavor,
    "a smaller node": smaller_node,
    "a cordon": lambda: set_cordon(Node.objects.order_by("name")[0].name, True, actor=None),
    "a node less": lambda: delete_node(Node.objects.order_by("name")[0].name, actor=None),
    "a namespace": lambda: queues.save_namespace(NamespaceSpec("ns-new"), actor=None),
    "a local queue": lambda: queues.save_local_queue(
        LocalQueueSpec("ns-new", "lq", "cq-datos"), actor=None
    ),
    "a team": lambda: queues.save_team(TeamSpec("newcomers"), actor=None),
    "a priority class": lambda: queues.save_priority_class(
        PriorityClassSpec("workload", "high", 9), actor=None
    ),
    "a topology": lambda: queues.save_topology(TopologySpec("dc", ("rack",)), actor=None),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_what_has_changed_is_read(change: Callable[[], object], read: list[int]) -> None:
    told()
    change()
    kept, count = told(), len(read)
    judging.forget()
    assert count == 2
    assert kept == told()


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_page_keeps_no_promise_that_has_changed(
    change: Callable[[], object], settings: Any, ada: Any
) -> None:
    actor = actor_for(ada)
    load_board(actor)
    change()
    kept = load_board(actor)
    settings.WORLD_KEPT = False
    anew = load_board(actor)
    assert replace(kept.snapshot, now=0.0) == replace(anew.snapshot, now=0.0)
    assert kept.rows == anew.rows
    assert kept.queues == anew.queues


def test_a_page_reads_promises_once(ada: Any) -> None:
    actor = actor_for(ada)
    load_board(actor)
    with CaptureQueriesContext(connection) as asked:
        load_board(actor)
    assert not [one for one in asked if "node_labels" in one["sql"]]


def test_what_has_not_changed_is_not_read(read: list[int]) -> None:
    before = told()
    with CaptureQueriesContext(connection) as asked:
        assert told() == before
    assert (len(read), len(asked)) == (1, 1)


def test_an_edit_that_was_rolled_back_leaves_no_trace(read: list[int]) -> None:
    before = told()
    with transaction.atomic():
        other_quota()
        within = told()
        transaction.set_rollback(True)
    assert within != before
    assert told() == before
    with transaction.atomic():
        stopped()
        other_quota()
        transaction.set_rollback(True)
    other_quota()
    assert told() == within
    assert len(read) == 4


def test_work_changes_nothing_of_it(read: list[int]) -> None:
    told()
    work = WorkloadSpec("ns-datos", "job", (PodSetSpec("main", 1, {GPU: 1}),), queue="lq")
    services.submit_workload(work, actor=None)
    assert Workload.objects.count() == 1
    assert len(read) == 1


def test_what_it_remembers_is_let_go_of(read: list[int], monkeypatch: Any) -> None:
    monkeypatch.setattr(judging, "MOST_USES", 3)
    for _ in range(7):
        told()
    assert len(read) == 3


def test_a_new_owner_counts_at_once(ian: Any) -> None:
    from queues.access import actor_for  # noqa: PLC0415
    from scheduling.services import Refused, within_rights  # noqa: PLC0415

    work = WorkloadSpec("ns-datos", "job", (PodSetSpec("main", 1, {GPU: 1}),), queue="lq")
    foreign = within_rights(work, load_world(works=False), actor_for(ian))
    assert foreign.cluster_queue_of(work) is None  # to her it is not there
    row = ClusterQueue.objects.get(name="cq-datos")
    queues.save_cluster_queue(replace(describe_cluster_queue(row), team="ia"), actor=None)
    queues.save_namespace(
        NamespaceSpec("ns-datos", team="ia"), actor=None, reason="agreed with both teams"
    )
    try:
        own = within_rights(work, load_world(works=False), actor_for(ian))
    except Refused as refused:
        pytest.fail(str(refused))
    assert own.cluster_queue_of(work) == "cq-datos"
    assert Namespace.objects.get(name="ns-datos").team.name == "ia"
