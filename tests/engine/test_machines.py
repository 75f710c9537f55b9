"""A flavor is a kind of machine as soon as it has ever had one."""

from dataclasses import replace

from scheduling.engine.cycle import decide
from scheduling.engine.plan import Admit, Hold
from scheduling.engine.snapshot import Memory
from tests.engine.builders import node, pods, world


def last_node_gone():
    """One node, and a gang that fits on it; then the node is gone."""
    before = world().flavor().nodes(1).queue("a", 8).pending("w", "a", pods(1, gpus=4)).build()
    return replace(before, nodes=(), memory=decide(replace(before, workloads=())).memory)


def test_a_flavor_whose_last_node_is_gone_has_no_room() -> None:
    """It does not turn into one that is admitted by quota alone."""
    plan = decide(last_node_gone())
    (held,) = plan.decisions
    assert isinstance(held, Hold)
    assert plan.memory.machines == ("h100-sxm",)


def test_a_flavor_whose_labels_no_node_carries_any_more_has_no_room() -> None:
    gone = last_node_gone()
    other = replace(gone, nodes=(node(1, labels={"accelerator": "renamed"}),))
    assert [type(one) for one in decide(other).decisions] == [Hold]


def test_a_flavor_that_never_had_nodes_is_admitted_by_quota_alone() -> None:
    plan = decide(replace(last_node_gone(), memory=Memory()))
    assert [type(one) for one in plan.decisions] == [Admit]
    assert plan.memory.machines == ()
