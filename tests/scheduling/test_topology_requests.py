"""Slices and groups from the request to the nodes: rules, rows, a cycle, what is told."""

from collections import Counter
from dataclasses import replace
from typing import Any

import pytest

from scheduling.cycle import run_cycle
from scheduling.engine.snapshot import SliceLayer, TopologyRequest
from scheduling.engine.terms import TopologyMode
from scheduling.loader import load_snapshot
from scheduling.models import Node, Placement, Workload
from scheduling.rules import check_workload
from scheduling.services import load_world, submit_workload
from scheduling.specs import PodSetSpec, SliceSpec, TopologySpec, WorkloadSpec
from tests.doors.samples import on_cluster

pytestmark = pytest.mark.django_db

GPU = "nvidia.com/gpu"
LABEL = "topology.kubernetes.io/"
ONE = PodSetSpec("main", 8, {GPU: 1})
IN_BLOCK, IN_RACK = TopologySpec("required", "block"), TopologySpec("required", "rack")
SLICES = (SliceSpec("block", 8), SliceSpec("rack", 4))


@pytest.fixture
def cluster() -> None:
    """Eight nodes of four GPUs, two a rack, two racks a block, and two Volcano queues."""
    on_cluster(32, "kueue-topology-flavor", "volcano-queues")


def spec(*pod_sets: PodSetSpec, name: str = "job") -> WorkloadSpec:
    return WorkloadSpec("ns-x", name, pod_sets, queue="team-datos")


def findings(*pod_sets: PodSetSpec) -> list[tuple[str, str]]:
    found = check_workload(spec(*pod_sets), load_world())
    return [(d.code, d.path) for d in found if d.is_error]


def grouped(name: str, count: int, **changes: Any) -> PodSetSpec:
    return replace(PodSetSpec(name, count, {GPU: 1}, topology=IN_RACK, group="pair"), **changes)


FOUR = ("block", "rack", "hostname", "hostname")
BAD = [
    ("a size that does not divide the pods", (replace(ONE, slices=(SliceSpec("rack", 3),)),),
     [("SLICES_NOT_WHOLE", "pod_sets[0].slice.size")]),
    ("a slice of more pods than there are", (replace(ONE, slices=(SliceSpec("rack", 9),)),),
     [("SUBGROUP_TOO_LARGE", "pod_sets[0].slice.size")]),
    ("an inner size that does not divide the outer",
     (replace(ONE, slices=(SliceSpec("block", 8), SliceSpec("rack", 3))),),
     [("SLICES_NOT_NESTED", "pod_sets[0].slices[1].size")]),
    ("four layers", (replace(ONE, slices=tuple(SliceSpec(level, 8) for level in FOUR)),),
     [("TOO_MANY_SLICE_LAYERS", "pod_sets[0].slices")]),
    ("slices in slices of one level",
     (replace(ONE, slices=(SliceSpec("rack", 8), SliceSpec("rack", 4))),),
     [("SLICES_AT_ONE_LEVEL", "pod_sets[0].slices[1].level")]),
    ("a level that nobody has", (replace(ONE, slices=(SliceSpec("floor", 4),)),),
     [("UNKNOWN_TOPOLOGY_LEVEL", "pod_sets[0].slice.level")]),
    ("a slice wider than the pod set",
     (replace(ONE, count=4, topology=IN_RACK, slices=(SliceSpec("block", 4),)),),
     [("SLICE_WIDER_THAN_TOPOLOGY", "pod_sets[0].slice.level")]),
    ("an inner slice wider than the outer",
     (replace(ONE, slices=(SliceSpec("rack", 8), SliceSpec("block", 4))),),
     [("SLICE_WIDER_THAN_TOPOLOGY", "pod_sets[0].slices[1].level")]),
    ("a group of one", (grouped("a", 1),), [("GROUP_OF_ONE", "pod_sets[0].group")]),
    ("members at two levels", (grouped("a", 1), grouped("b", 2, topology=IN_BLOCK)),
     [("GROUP_TOPOLOGY_DIFFERS", "pod_sets[1].topology")]),
    ("members that ask for nothing", (grouped("a", 1, topology=None), grouped("b", 1)),
     [("GROUP_TOPOLOGY_DIFFERS", "pod_sets[0].topology"),
      ("GROUP_TOPOLOGY_DIFFERS", "pod_sets[1].topology")]),
    ("a group whose name is none", (grouped("a", 1, group="A b"), grouped("b", 1, group="A b")),
     [("bad_name", "pod_sets[0].group"), ("bad_name", "pod_sets[1].group")]),
]  # fmt: skip


@pytest.mark.usefixtures("cluster")
@pytest.mark.parametrize(("pod_sets", "found"), [c[1:] for c in BAD], ids=[c[0] for c in BAD])
def test_what_is_wrong_is_named_with_its_path(
    pod_sets: tuple[PodSetSpec, ...], found: list[tuple[str, str]]
) -> None:
    assert findings(*pod_sets) == found


@pytest.mark.usefixtures("cluster")
def test_a_slice_at_the_level_of_the_pod_set_or_below_is_sound() -> None:
    assert findings(replace(ONE, topology=IN_BLOCK, slices=SLICES)) == []
    assert findings(replace(ONE, topology=IN_RACK, slices=(SliceSpec("hostname", 4),))) == []


@pytest.mark.usefixtures("cluster")
def test_what_is_asked_for_reaches_the_engine_in_labels() -> None:
    submit_workload(spec(replace(ONE, topology=IN_BLOCK, slices=SLICES)), actor=None)
    ((pod_set,),) = [work.pod_sets for work in load_snapshot().workloads]
    layers = (SliceLayer(f"{LABEL}block", 8), SliceLayer(f"{LABEL}rack", 4))
    expected = TopologyRequest(TopologyMode.REQUIRED, f"{LABEL}block", slices=layers)
    assert pod_set.topology == expected


def racks() -> Counter[str]:
    labels = {node.name: node.labels for node in Node.objects.all()}
    found: Counter[str] = Counter()
    for row in Placement.objects.all():
        found[labels[row.node][f"{LABEL}rack"]] += row.count
    return found


@pytest.mark.usefixtures("cluster")
def test_slices_are_placed_whole_and_nothing_is_said_to_be_ignored() -> None:
    sliced = replace(ONE, count=12, slices=(SliceSpec("rack", 6),))
    row = submit_workload(spec(sliced), actor=None).workload
    run_cycle()
    assert row is not None
    row.refresh_from_db()
    assert (row.status, row.warnings) == ("admitted", [])
    assert sorted(racks().values()) == [6, 6]


@pytest.mark.usefixtures("cluster")
def test_a_leader_stands_in_the_rack_of_its_workers() -> None:
    row = submit_workload(spec(grouped("lead", 1), grouped("work", 7)), actor=None).workload
    run_cycle()
    assert row is not None
    row.refresh_from_db()
    assert row.status == "admitted"
    assert list(racks().values()) == [8]


@pytest.mark.usefixtures("cluster")
def test_whole_slices_that_no_rack_could_hold_are_refused_with_numbers() -> None:
    sliced = replace(ONE, count=9, slices=(SliceSpec("rack", 9),))
    found = {d.code: d for d in check_workload(spec(sliced), load_world())}
    assert found["NEVER_FITS_TOPOLOGY"].numbers["fits_slices"] == 0
    words = found["NEVER_FITS_TOPOLOGY"].as_problem().message
    assert words.startswith("Each slice of 9 pods must stand in one topology.kubernetes.io")


@pytest.mark.usefixtures("cluster")
def test_the_page_says_what_is_asked_for(ada: Any, client: Any) -> None:
    asked = replace(ONE, topology=IN_BLOCK, slices=SLICES)
    row = submit_workload(spec(asked), actor=None).workload
    assert isinstance(row, Workload)
    client.force_login(ada)
    page = client.get(f"/workloads/{row.uid}/").content.decode()
    assert "required: block, slices of 8 in one block, slices of 4 in one rack" in page


@pytest.mark.usefixtures("cluster")
def test_rest_takes_one_slice_or_a_list_and_never_both(ada: Any, client: Any) -> None:
    from scheduling.workload_body import read_workload  # noqa: PLC0415

    pod_set: dict[str, Any] = {"name": "main", "count": 8, "requests": {GPU: 1}}
    body = {"name": "a", "namespace": "ns", "queue": "q"}
    one = read_workload({**body, "pod_sets": [{**pod_set, "slice": {"level": "rack", "size": 4}}]})
    layers = [{"level": "block", "size": 8}, {"level": "rack", "size": 4}]
    several = read_workload({**body, "pod_sets": [{**pod_set, "slices": layers, "group": "g"}]})
    assert one.pod_sets[0].slices == (SliceSpec("rack", 4),)
    assert (several.pod_sets[0].slices, several.pod_sets[0].group) == (SLICES, "g")
