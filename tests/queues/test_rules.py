"""Every rule of the quota room, by its code: what breaks it, and where the answer points."""

from dataclasses import replace
from decimal import Decimal

import pytest

from queues import rules
from queues.specs import (
    CohortSpec,
    FlavorSpec,
    LocalQueueSpec,
    NamespaceSpec,
    PriorityClassSpec,
    QuotaSpec,
    TaintSpec,
    TeamSpec,
    TolerationSpec,
    TopologySpec,
)
from tests.queues.promises import GPU, group, queue

FLAVOR = FlavorSpec("h100-sxm", {"accelerator": "h100-sxm"})
TOPOLOGY = TopologySpec("dc", ("example.com/block", "kubernetes.io/hostname"))
DOOR = LocalQueueSpec("ns-datos", "lq-datos", "cq-datos")
MANY = {f"label-{n}": "x" for n in range(9)}


def found(problems):
    return [(problem.path, problem.code) for problem in problems]


def tolerating(**fields):
    return replace(FLAVOR, tolerations=(TolerationSpec(**fields),))


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        pytest.param(TeamSpec("datos"), [], id="a plain team is fine"),
        pytest.param(TeamSpec("Datos"), [("name", "bad_name")], id="capitals are no name"),
        pytest.param(TeamSpec("a" * 64), [("name", "bad_name")], id="64 letters are too many"),
        pytest.param(TeamSpec(""), [("name", "bad_name")], id="nothing is no name"),
        pytest.param(
            TeamSpec("datos", display_name="x" * 101),
            [("display_name", "too_long")],
            id="a display name has an end",
        ),
        pytest.param(
            TeamSpec("datos", description="a\0b"),
            [("description", "bad_characters")],
            id="NUL cannot be kept",
        ),
        pytest.param(
            TeamSpec("datos", accounting_mode="barter"),
            [("accounting_mode", "unknown_choice")],
            id="accounting modes are two",
        ),
    ],
)
def test_teams(spec, expected):
    assert found(rules.check_team(spec)) == expected


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        pytest.param(NamespaceSpec("ns-datos", {"a": "b"}, "datos"), [], id="a plain namespace"),
        pytest.param(NamespaceSpec("ns.datos"), [("name", "bad_name")], id="no dots"),
        pytest.param(
            NamespaceSpec("ns", {"a b": "c"}), [("labels[a b]", "bad_label_key")], id="label key"
        ),
        pytest.param(
            NamespaceSpec("ns", {"a": "-"}), [("labels[a]", "bad_label_value")], id="label value"
        ),
        pytest.param(NamespaceSpec("ns", team="x"), [("team", "no_such_team")], id="unknown team"),
        pytest.param(NamespaceSpec("ns", team=""), [], id="nobody may own it"),
    ],
)
def test_namespaces(spec, expected):
    assert found(rules.check_namespace(spec, {"datos"})) == expected


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        pytest.param(FLAVOR, [], id="a plain flavor"),
        pytest.param(
            replace(FLAVOR, node_labels=MANY), [("node_labels", "too_many")], id="eight labels"
        ),
        pytest.param(
            replace(FLAVOR, node_taints=(TaintSpec("a", effect="Never"),)),
            [("node_taints[0].effect", "unknown_choice")],
            id="taint effects are three",
        ),
        pytest.param(
            replace(FLAVOR, node_taints=(TaintSpec("a", "-"),)),
            [("node_taints[0].value", "bad_label_value")],
            id="a taint's value is a label value",
        ),
        pytest.param(
            tolerating(operator="Equal"),
            [("tolerations[0].operator", "empty_key_needs_exists")],
            id="without key only Exists",
        ),
        pytest.param(
            tolerating(key="a", operator="Exists", value="b"),
            [("tolerations[0].value", "exists_has_no_value")],
            id="Exists takes no value",
        ),
        pytest.param(
            tolerating(key="a", operator="Equal", value="b", seconds=1),
            [("tolerations[0].seconds", "seconds_need_no_execute")],
            id="seconds with NoExecute only",
        ),
        pytest.param(
            tolerating(key="a", operator="Exists", effect="NoExecute", seconds=1),
            [],
            id="seconds with NoExecute",
        ),
        pytest.param(
            FlavorSpec("h100-sxm", topology="dc"),
            [("node_labels", "topology_needs_labels")],
            id="a topology needs a node label",
        ),
    ],
)
def test_flavors(spec, expected):
    assert found(rules.check_flavor(spec)) == expected


def test_a_flavor_keeps_its_topology():
    before = replace(FLAVOR, topology="dc")
    assert found(rules.check_flavor(before, FLAVOR)) == []
    for after in (FLAVOR, replace(FLAVOR, topology="other")):
        assert found(rules.check_flavor(after, before)) == [("topology", "immutable")]


@pytest.mark.parametrize(
    ("levels", "expected"),
    [
        pytest.param(TOPOLOGY.levels, [], id="block and host"),
        pytest.param((), [("levels", "too_few")], id="no level"),
        pytest.param(
            tuple(f"level-{n}" for n in range(17)), [("levels", "too_many")], id="17 levels"
        ),
        pytest.param(
            ("a", "a"), [("levels[0]", "duplicate"), ("levels[1]", "duplicate")], id="twice"
        ),
        pytest.param(
            ("kubernetes.io/hostname", "rack"),
            [("levels[0]", "hostname_not_last")],
            id="hostname is the last",
        ),
        pytest.param(("a b",), [("levels[0]", "bad_label_key")], id="levels are label keys"),
    ],
)
def test_topologies(levels, expected):
    assert found(rules.check_topology(TopologySpec("dc", levels))) == expected


def test_levels_change_only_above_a_hostname():
    longer = TopologySpec("dc", ("zone", *TOPOLOGY.levels))
    assert found(rules.check_topology(longer, TOPOLOGY)) == []
    without_host = TopologySpec("dc", ("zone",))
    assert found(rules.check_topology(without_host, TOPOLOGY)) == [("levels", "immutable")]


@pytest.mark.parametrize(
    ("selector", "expected"),
    [
        pytest.param(None, [], id="nobody"),
        pytest.param({}, [], id="everybody"),
        pytest.param({"matchLabels": {"a": "b"}}, [], id="labels"),
        pytest.param(
            {"matchExpressions": [{"key": "a", "operator": "In", "values": ["b"]}]}, [], id="In"
        ),
        pytest.param({"labels": {}}, [("", "bad_selector")], id="an unknown part"),
        pytest.param({"matchLabels": []}, [(".matchLabels", "bad_selector")], id="wrong type"),
        pytest.param(
            {"matchLabels": {"a": 1}}, [(".matchLabels[a]", "bad_label_value")], id="a number"
        ),
        pytest.param({"matchLabels": None, "matchExpressions": None}, [], id="null is absent"),
        pytest.param(
            {"matchExpressions": "x"}, [(".matchExpressions", "bad_selector")], id="no list"
        ),
        pytest.param(
            {"matchExpressions": [{"key": "a"}]},
            [(".matchExpressions[0]", "bad_selector")],
            id="no operator",
        ),
        pytest.param(
            {"matchExpressions": [{"key": "a", "operator": "Gt", "values": ["1"]}]},
            [(".matchExpressions[0].operator", "unknown_choice")],
            id="unknown operator",
        ),
        pytest.param(
            {"matchExpressions": [{"key": "a", "operator": "In"}]},
            [(".matchExpressions[0].values", "bad_selector")],
            id="In needs values",
        ),
        pytest.param(
            {"matchExpressions": [{"key": "a", "operator": "Exists", "values": ["b"]}]},
            [(".matchExpressions[0].values", "bad_selector")],
            id="Exists has none",
        ),
    ],
)
def test_selectors(selector, expected):
    problems = rules.check_cluster_queue(queue(namespace_selector=selector), ())
    assert found(problems) == [(f"namespace_selector{path}", code) for path, code in expected]


PARENTS = {"root": None, "mid": "root", "leaf": "mid"}


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        pytest.param(CohortSpec("root"), [], id="a plain cohort"),
        pytest.param(CohortSpec("root", fairness="history"), [], id="fair at the top"),
        pytest.param(
            CohortSpec("root", fairness="share", reclaim_to="fair_share"), [], id="levelled"
        ),
        pytest.param(
            CohortSpec("root", reclaim_to="fair_share"),
            [("reclaim_to", "no_fair_share")],
            id="no fair share without fairness",
        ),
        pytest.param(
            CohortSpec("root", reclaim_to="all"),
            [("reclaim_to", "unknown_choice")],
            id="reclaim_to",
        ),
        pytest.param(
            CohortSpec("leaf", "root", fairness="history"),
            [("fairness", "not_at_the_top")],
            id="fairness is for the top of a tree to say",
        ),
        pytest.param(CohortSpec("leaf", "later"), [], id="the parent may come later"),
        pytest.param(CohortSpec("root", "leaf"), [("parent", "cycle")], id="a cycle of three"),
        pytest.param(CohortSpec("root", "root"), [("parent", "cycle")], id="its own parent"),
        pytest.param(
            CohortSpec("root", groups=(group(QuotaSpec(GPU, 4, 4, None)),)),
            [("groups[0].flavors[0].quotas[0].borrowing_limit", "no_parent")],
            id="limits need a parent",
        ),
        pytest.param(
            CohortSpec("mid", "root", (group(QuotaSpec(GPU, 4, None, 8)),)),
            [],
            id="a cohort may lend more than its own: the limit covers the subtree",
        ),
        pytest.param(
            CohortSpec("root", fairness="luck"), [("fairness", "unknown_choice")], id="fairness"
        ),
        pytest.param(
            CohortSpec("root", quota_source="residual", groups=(group(QuotaSpec(GPU, 4)),)),
            [("groups", "residual_has_no_quota")],
            id="a computed quota is not declared",
        ),
        pytest.param(
            CohortSpec("root", quota_source="luck"), [("quota_source", "unknown_choice")], id="src"
        ),
    ],
)
def test_cohorts(spec, expected):
    assert found(rules.check_cohort(spec, PARENTS)) == expected


def test_a_cycle_that_is_there_already_is_not_this_cohorts_fault():
    assert found(rules.check_cohort(CohortSpec("fresh", "a"), {"a": "b", "b": "a"})) == []


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        pytest.param(DOOR, [], id="a plain door"),
        pytest.param(replace(DOOR, namespace="a.b"), [("namespace", "bad_name")], id="namespace"),
        pytest.param(replace(DOOR, stop_policy="x"), [("stop_policy", "unknown_choice")], id="st"),
        pytest.param(
            replace(DOOR, cluster_queue="cq-ia"), [("cluster_queue", "immutable")], id="target"
        ),
        pytest.param(replace(DOOR, fair_weight=Decimal(2)), [], id="the weight may change"),
    ],
)
def test_local_queues(spec, expected):
    assert found(rules.check_local_queue(spec, DOOR)) == expected


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        pytest.param(PriorityClassSpec("workload", "high", 2**31 - 1), [], id="the highest"),
        pytest.param(
            PriorityClassSpec("workload", "high", 2**31), [("value", "out_of_range")], id="33 bits"
        ),
        pytest.param(PriorityClassSpec("x", "high", 1), [("kind", "unknown_choice")], id="kind"),
        pytest.param(PriorityClassSpec("pod", "", 1), [("name", "bad_name")], id="no name"),
    ],
)
def test_priority_classes(spec, expected):
    assert found(rules.check_priority_class(spec)) == expected
