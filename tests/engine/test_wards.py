"""Who can feel whose moves: trees of quota, and pools of nodes that trees share."""

import pytest

from scheduling.engine.machines import GPU, Node
from scheduling.engine.snapshot import Quota
from scheduling.engine.state import State
from tests.engine.builders import World, columns, world

LABELS = {"red": {"colour": "red"}, "blue": {"colour": "blue"}, "big": {"size": "big"}}


def site(nodes: list[dict[str, str]], queues: dict[str, tuple[str | None, list[str]]]) -> World:
    """Return nodes with labels, and queues: each with its cohort and the flavors it offers."""
    made = world()
    room = {GPU: 8, "pods": 110}
    made.node_list = [Node(f"node-{i}", labels, room) for i, labels in enumerate(nodes)]
    for flavor, labels in LABELS.items():
        made.flavor(flavor, node_labels=labels)
    for name, (cohort, flavors) in queues.items():
        groups = tuple(columns(flavor, {GPU: Quota(8)}) for flavor in flavors)
        made.queue(name, cohort=cohort, groups=groups)
    return made


RED, BLUE, BIG_RED = {"colour": "red"}, {"colour": "blue"}, {"colour": "red", "size": "big"}
BIG_BLUE = {"colour": "blue", "size": "big"}


@pytest.mark.parametrize(
    ("nodes", "queues", "wards"),
    [
        pytest.param(
            [RED, BLUE], {"a": (None, ["red"]), "b": (None, ["blue"])}, [{"a"}, {"b"}], id="apart"
        ),
        pytest.param([], {"a": ("one", ["red"]), "b": ("one", ["blue"])}, [{"a", "b"}], id="tree"),
        pytest.param(
            [RED], {"a": (None, ["red"]), "b": (None, ["red"])}, [{"a", "b"}], id="one flavor"
        ),
        pytest.param(
            [BIG_RED], {"a": (None, ["red"]), "b": (None, ["big"])}, [{"a", "b"}], id="one node"
        ),
        pytest.param(
            [BIG_RED, BIG_BLUE],
            {"a": (None, ["red"]), "b": (None, ["blue"]), "c": (None, ["big"])},
            [{"a", "b", "c"}],
            id="through a third queue",
        ),
        pytest.param(
            [BIG_RED, BIG_BLUE],
            {"a": (None, ["red"]), "b": (None, ["blue"])},
            [{"a"}, {"b"}],
            id="not through a flavor that nobody offers",
        ),
        pytest.param(
            [RED],
            {"a": (None, ["red", "big"]), "b": (None, ["blue", "big"])},
            [{"a"}, {"b"}],
            id="not through a flavor without nodes",
        ),
    ],
)
def test_a_move_is_felt_in_its_tree_and_where_nodes_are_shared(nodes, queues, wards) -> None:
    wards_of = State(site(nodes, queues).build()).wards
    assert {frozenset(wards_of.beside(name)) for name in queues} == set(map(frozenset, wards))
