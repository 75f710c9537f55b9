"""Volcano's HyperNodes in and out: domains of nodes that are written down."""

from typing import Any

import pytest
import yaml

from gpuplatform.common.fields import UNREADABLE
from gpuplatform.common.problems import Rejected
from gpuplatform.common.yamls import dumped
from gpuplatform.doors.exporter import export_everything
from gpuplatform.doors.importer import import_documents
from queues.models import Topology
from scheduling.models import Node
from scheduling.services import save_node
from scheduling.specs import NodeSpec
from scheduling.world import World

pytestmark = pytest.mark.django_db
LEAF = "tier-1.topology.gpuplatform.io/leaf"
HOST = "kubernetes.io/hostname"
SPINE = "tier-2.topology.gpuplatform.io/tier-2"


def hypernode(name: str, tier: Any, *members: Any, tier_name: str = "") -> dict[str, Any]:
    spec: dict[str, Any] = {"tier": tier, "members": list(members)}
    spec |= {"tierName": tier_name} if tier_name else {}
    return {
        "apiVersion": "topology.volcano.sh/v1alpha1",
        "kind": "HyperNode",
        "metadata": {"name": name},
        "spec": spec,
    }


def exact(name: str, kind: str = "Node") -> dict[str, Any]:
    return {"type": kind, "selector": {"exactMatch": {"name": name}}}


def pattern(text: str, kind: str = "Node") -> dict[str, Any]:
    return {"type": kind, "selector": {"regexMatch": {"pattern": text}}}


def labelled(**labels: str) -> dict[str, Any]:
    return {"type": "Node", "selector": {"labelMatch": {"matchLabels": labels}}}


def leaf(name: str, *members: Any) -> dict[str, Any]:
    return hypernode(name, 1, *members, tier_name="leaf")


S0 = leaf("s0", exact("node-0"), exact("node-1"))
S1 = leaf("s1", pattern("^node-[23]$"))
TOP = hypernode("s2", 2, exact("s0", "HyperNode"), exact("s1", "HyperNode"))


@pytest.fixture(autouse=True)
def nodes(db: None) -> None:
    for number in range(5):
        labels = {"pool": "spare"} if number == 4 else {}
        gpus = {"nvidia.com/gpu": 8}
        spec = NodeSpec(f"node-{number}", labels, capacity=gpus, allocatable=gpus)
        save_node(spec, actor=None)


def taken(*bodies: dict[str, Any]) -> list[tuple[str, str, set[str]]]:
    report = import_documents("".join(dumped(bodies)), actor=None)
    return [(one.name, one.action, one.codes) for one in report.results]


def domains(key: str) -> dict[str, str]:
    rows = Node.objects.order_by("name").values_list("name", "labels")
    return {name: labels[key] for name, labels in rows if key in labels}


def exported() -> list[dict[str, Any]]:
    return [yaml.safe_load(text) for text in dumped(export_everything(["HyperNode"]))]


def test_their_tiers_are_levels_and_their_members_labels_of_nodes() -> None:
    said = taken(TOP, S1, S0)  # in whatever order
    assert said == [(name, "created", set()) for name in ("s2", "s1", "s0")]
    assert domains(LEAF) == {"node-0": "s0", "node-1": "s0", "node-2": "s1", "node-3": "s1"}
    assert set(domains(SPINE).values()) == {"s2"}
    assert len(domains(SPINE)) == 4
    levels = Topology.objects.get(name="hypernodes").levels
    assert list(levels.values_list("node_label", flat=True)) == [SPINE, LEAF, HOST]


def test_a_tier_of_volcano_names_the_level_of_that_tier() -> None:
    taken(TOP, S1, S0)
    levels = tuple(
        Topology.objects.get(name="hypernodes").levels.values_list("node_label", flat=True)
    )
    from scheduling.loader import load_snapshot  # noqa: PLC0415
    from scheduling.routes import Doors  # noqa: PLC0415

    world = World(load_snapshot(), Doors({}, {}, {}), {})
    assert levels == (SPINE, LEAF, HOST)
    assert (world.level_of("tier:1", None), world.level_of("leaf", None)) == (LEAF, LEAF)
    assert world.level_of("tier:2", None) == SPINE


def test_what_comes_out_goes_in_again_and_changes_nothing() -> None:
    taken(TOP, S1, S0)
    before = exported()
    assert [(one["metadata"]["name"], one["spec"]["tier"]) for one in before] == [
        ("s0", 1),
        ("s1", 1),
        ("s2", 2),
    ]
    assert before[2]["spec"]["members"] == [exact("s0", "HyperNode"), exact("s1", "HyperNode")]
    assert before[1]["spec"] == {
        "tier": 1,
        "tierName": "leaf",
        "members": [exact("node-2"), exact("node-3")],
    }
    assert taken(*before) == [(name, "unchanged", set()) for name in ("s0", "s1", "s2")]
    assert exported() == before
    assert {action for _name, action, _codes in taken(TOP, S1, S0)} == {"unchanged"}


def test_a_node_that_is_reported_again_stays_where_it_is() -> None:
    taken(S0)
    row = Node.objects.get(name="node-0")
    save_node(NodeSpec("node-0", {"pool": "new"}, allocatable=row.allocatable), actor=None)
    assert domains(LEAF)["node-0"] == "s0"


def test_an_edit_lets_nodes_go_and_takes_others_in() -> None:
    taken(S0)
    assert taken(leaf("s0", exact("node-1"), labelled(pool="spare"))) == [("s0", "changed", set())]
    assert domains(LEAF) == {"node-1": "s0", "node-4": "s0"}
    assert taken(leaf("s9", exact("node-1"))) == [("s9", "created", {"HYPERNODE_MOVED"})]
    assert domains(LEAF) == {"node-1": "s9", "node-4": "s0"}


SEVERAL = {"exactMatch": {"name": "node-0"}, "regexMatch": {"pattern": "node-.*"}}
BROKEN = (
    ("no tier", [hypernode("h", None, exact("node-0"))], "REQUIRED"),
    ("tier of the host", [hypernode("h", 0, exact("node-0"))], "OUT_OF_RANGE"),
    ("no members", [hypernode("h", 1)], "REQUIRED"),
    ("no selector", [hypernode("h", 1, {"type": "Node", "selector": {}})], "HYPERNODE_SELECTOR"),
    ("two", [hypernode("h", 1, {"type": "Node", "selector": SEVERAL})], "HYPERNODE_SELECTOR"),
    (
        "labels of a HyperNode",
        [hypernode("h", 2, labelled(a="b") | {"type": "HyperNode"})],
        "HYPERNODE_SELECTOR",
    ),
    ("another member", [hypernode("h", 1, exact("x", "Pod"))], "BAD_VALUE"),
    ("a broken pattern", [hypernode("h", 1, pattern("node-["))], "HYPERNODE_PATTERN"),
    ("a pattern for ever", [hypernode("h", 1, pattern("(a+)+$"))], "HYPERNODE_PATTERN"),
    ("repeated too often", [hypernode("h", 1, pattern("a*a*a*a*b"))], "HYPERNODE_PATTERN"),
    ("two parents", [S0, leaf("h", exact("node-0"))], "HYPERNODE_TWO_PARENTS"),
    ("two by pattern", [S1, leaf("h", pattern("node-3"))], "HYPERNODE_TWO_PARENTS"),
    (
        "not below",
        [S0, hypernode("h", 1, exact("s0", "HyperNode"), tier_name="leaf")],
        "HYPERNODE_TIER",
    ),
    ("another name of a tier", [S0, hypernode("h", 1, exact("node-3"))], "HYPERNODE_TIER_NAMED"),
)


@pytest.mark.parametrize(
    ("bodies", "code"), [one[1:] for one in BROKEN], ids=[one[0] for one in BROKEN]
)
def test_what_is_no_tree_is_refused_with_its_reason(bodies: list[Any], code: str) -> None:
    said = "".join(dumped(bodies))
    if code in UNREADABLE:
        with pytest.raises(Rejected) as unreadable:
            import_documents(said, actor=None)
        assert [one.code for one in unreadable.value.problems] == [code]
        assert not domains(LEAF)
        return
    (refused,) = import_documents(said, actor=None).rejected
    assert refused.codes == {code}
    assert refused.name not in domains(LEAF).values()


def test_members_that_nobody_knows_are_told() -> None:
    assert taken(leaf("s0", exact("node-0"), exact("node-9"))) == [
        ("s0", "created", {"HYPERNODE_MEMBER_UNKNOWN"})
    ]
    assert taken(leaf("h", pattern("rack"))) == [("h", "unchanged", {"HYPERNODE_EMPTY"})]
    assert len(exported()) == 1


def test_only_who_may_change_nodes_and_promises_takes_them_in(cast: Any) -> None:
    report = import_documents("".join(dumped([S0])), actor=cast.lea)
    assert [one.codes for one in report.results] == [{"NOT_ALLOWED"}]


def test_other_topologies_come_out_as_hypernodes_too() -> None:
    from queues.services import save_topology  # noqa: PLC0415
    from queues.specs import TopologySpec  # noqa: PLC0415

    save_topology(TopologySpec("dc", ("block", "rack", "kubernetes.io/hostname")), actor=None)
    for number, (block, rack) in enumerate([("b1", "r1"), ("b1", "r2"), ("b2", "r1")]):
        name = f"node-{number}"
        save_node(NodeSpec(name, {"block": block, "rack": rack}), actor=None)
    found = {one["metadata"]["name"]: one["spec"] for one in exported()}
    assert sorted(found) == ["dc-b1", "dc-b1-r1", "dc-b1-r2", "dc-b2", "dc-b2-r1"]
    assert (found["dc-b1"]["tier"], found["dc-b1"]["tierName"]) == (2, "block")
    children = ["dc-b1-r1", "dc-b1-r2"]
    assert found["dc-b1"]["members"] == [exact(name, "HyperNode") for name in children]
    assert found["dc-b2-r1"]["members"] == [exact("node-2")]
