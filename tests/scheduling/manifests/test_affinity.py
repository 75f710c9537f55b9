"""Node affinity of pod templates: what is required is read, the rest is kept and said."""

from typing import Any

import pytest

from gpuplatform.common.diagnostics import Diagnostic
from gpuplatform.common.fields import Fields
from scheduling.manifests.affinity import PREFERRED, REQUIRED
from scheduling.manifests.pods import read_template

CONTAINER = {"name": "c", "resources": {"requests": {"nvidia.com/gpu": "1"}}}


def read(affinity: Any) -> tuple[Any, list[Diagnostic]]:
    found: list[Diagnostic] = []
    template = {"metadata": {}, "spec": {"containers": [CONTAINER], "affinity": affinity}}
    shape = read_template(Fields(template, "Pod/ns/p", found))
    return shape.as_pod_set("main", 2).affinity, found


def required(*terms: Any) -> Any:
    return {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": list(terms)}}}


def expression(key: str, operator: str, *values: str) -> dict[str, Any]:
    return {"key": key, "operator": operator, **({"values": list(values)} if values else {})}


def test_required_terms_are_read_in_order():
    zone, disk = expression("zone", "In", "a", "b"), expression("disk", "Exists")
    name = expression("metadata.name", "NotIn", "node-1")
    terms, said = read(required({"matchExpressions": [zone, disk]}, {"matchFields": [name]}, {}))
    assert said == []
    assert terms == ((zone, {**disk, "values": []}), (name,), ())


def test_pods_without_affinity_have_none():
    assert read({}) == ((), [])
    assert read(None) == ((), [])


@pytest.mark.parametrize(
    ("affinity", "path"),
    [
        ({"nodeAffinity": {PREFERRED: [{"weight": 1}]}}, f"nodeAffinity.{PREFERRED}"),
        ({"podAffinity": {"a": 1}}, "podAffinity"),
        ({"podAntiAffinity": {"a": 1}}, "podAntiAffinity"),
    ],
)
def test_what_only_prefers_or_is_about_pods_is_said_to_be_kept_alone(affinity, path):
    terms, said = read(affinity)
    assert terms == ()
    assert [(d.code, d.path) for d in said] == [("FIELD_NOT_HONOURED", f"spec.affinity.{path}")]


@pytest.mark.parametrize(
    ("wrong", "code", "field"),
    [
        (expression("zone", "Near", "a"), "BAD_VALUE", "operator"),
        ({"key": "zone"}, "REQUIRED", "operator"),
        ({"operator": "Exists"}, "REQUIRED", "key"),
        (expression("zone", "In"), "BAD_VALUE", "values"),
        (expression("zone", "Exists", "a"), "BAD_VALUE", "values"),
        (expression("zone", "Gt", "five"), "BAD_VALUE", "values"),
        (expression("zone", "Lt", "1", "2"), "BAD_VALUE", "values"),
    ],
)
def test_wrong_expressions_are_named_with_their_path(wrong, code, field):
    _, said = read(required({"matchExpressions": [wrong]}))
    path = f"spec.affinity.nodeAffinity.{REQUIRED}.nodeSelectorTerms[0].matchExpressions[0]"
    assert [(d.code, d.path) for d in said] == [(code, f"{path}.{field}")]


def test_a_field_match_knows_the_name_of_a_node_alone():
    _, said = read(required({"matchFields": [expression("spec.podCIDR", "Exists")]}))
    assert [d.code for d in said] == ["BAD_VALUE"]
