"""Promises written as documents and read again say exactly the same."""

from dataclasses import replace
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuplatform.common.manifests import load_documents
from gpuplatform.common.yamls import dumped
from queues.manifests import reader_for
from queues.manifests.export import manifest_of
from queues.specs import (
    ClusterQueueSpec,
    CohortSpec,
    FlavorQuotasSpec,
    FlavorSpec,
    FungibilitySpec,
    LocalQueueSpec,
    NamespaceSpec,
    PreemptionSpec,
    PriorityClassSpec,
    QuotaSpec,
    ResourceGroupSpec,
    TaintSpec,
    TeamSpec,
    TolerationSpec,
    TopologySpec,
)

GPU = "nvidia.com/gpu"
GROUPS = (
    ResourceGroupSpec(
        (GPU, "memory"),
        (
            FlavorQuotasSpec("h100", (QuotaSpec(GPU, 16, 8, 4), QuotaSpec("memory", 3 * 2**30))),
            FlavorQuotasSpec("a100", (QuotaSpec(GPU, 0, 0), QuotaSpec("memory", 1, None, 0))),
        ),
    ),
    ResourceGroupSpec(("cpu",), (FlavorQuotasSpec("small", (QuotaSpec("cpu", 1500),)),)),
)
QUEUE = ClusterQueueSpec("cq", GROUPS, team="datos", cohort="all", namespace_selector={})
SPECS = {
    "a team": TeamSpec("datos", "Datos e IA", "CC-7", "chargeback", "Line one\nline two"),
    "a team's name alone": TeamSpec("datos"),
    "a namespace of a team": NamespaceSpec("ns", {"a": "1e5"}, "datos"),
    "a namespace that its label gives away": NamespaceSpec(
        "ns", {"gpuplatform.io/team": "datos"}, "datos"
    ),
    "a namespace whose label is out of date": NamespaceSpec(
        "ns", {"gpuplatform.io/team": "datos"}, "ia"
    ),
    "a class of workloads": PriorityClassSpec("workload", "high", -7, description="no"),
    "a class of pods": PriorityClassSpec("pod", "usual", 5, True, "For all"),
    "a topology": TopologySpec("dc", ("example.org/block", "kubernetes.io/hostname")),
    "a flavor": FlavorSpec(
        "h100",
        {"accelerator": "h100"},
        (TaintSpec("gpu", "yes", "NoExecute"), TaintSpec("gpu2")),
        (TolerationSpec("gpu", "Exists", "", "NoSchedule", 0), TolerationSpec(operator="Exists")),
        "dc",
        "binpack",
    ),
    "a plain flavor": FlavorSpec("default"),
    "a cohort": CohortSpec(
        "all", "above", GROUPS, Decimal("0.25"), "none", "fair_share", "residual"
    ),
    "a plain cohort": CohortSpec("all", fairness="history"),
    "a queue": QUEUE,
    "a closed queue without quota": ClusterQueueSpec(
        "cq", team="datos", stop_policy="HoldAndDrain", queueing_strategy="StrictFIFO"
    ),
    "a queue that shares": replace(
        QUEUE,
        fair_weight=Decimal("2.5"),
        namespace_selector={"matchExpressions": [{"key": "a", "operator": "Exists"}]},
        admission_order="usage",
        priority_first=True,
        undeclared="IgnoreUndeclared",
    ),
    "a queue that evicts": replace(
        QUEUE,
        preemption=PreemptionSpec("LowerOrNewerEqualPriority", "Any", "LowerPriority", -3),
        fungibility=FungibilitySpec("TryNextFlavor", "MayStopSearch", "PreemptionOverBorrowing"),
        minimum_runtime_s=600,
        yields_to_own=True,
        reclaimable=False,
    ),
    "a queue that said more": replace(
        QUEUE,
        carried={
            "admissionChecks": ["far"],
            "dequeueStrategy": "fifo",
            "affinity": {"nodeGroupAffinity": {"required": ["a"]}},
        },
    ),
    "a local queue": LocalQueueSpec("ns", "lq", "cq", "Hold", Decimal(3)),
}


@pytest.mark.parametrize("spec", SPECS.values(), ids=SPECS)
def test_a_promise_is_read_as_it_was_written(spec: object) -> None:
    (document,) = load_documents("".join(dumped([manifest_of(spec)])))
    reader = reader_for(document)
    assert reader is not None
    reading = reader(document)
    assert reading.specs == [spec]
    said = {found.code for found in reading.diagnostics}
    assert said <= {"FIELD_NOT_HONOURED", "FAIR_WEIGHT_KEPT"}


def test_a_queue_of_nobody_says_so() -> None:
    (document,) = load_documents("".join(dumped([manifest_of(replace(QUEUE, team=None))])))
    reader = reader_for(document)
    assert reader is not None
    assert reader(document).specs == [replace(QUEUE, team="")]


@pytest.mark.parametrize("text", ["[]", "{", '{"colour": "red"}'])
def test_fields_of_volcano_that_are_none_are_refused(text: str) -> None:
    body = manifest_of(QUEUE)
    body["metadata"]["annotations"] = {"gpuplatform.io/volcano-fields": text}
    (document,) = load_documents("".join(dumped([body])))
    reader = reader_for(document)
    assert reader is not None
    assert "BAD_VALUE" in {found.code for found in reader(document).diagnostics}


TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=30)
LEAVES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(10**18), 10**18),
    st.floats(allow_nan=False, allow_infinity=False),
    TEXT,
    st.sampled_from(["1e5", "no", "0x1f", "1_000", "12:30", "2026-06-01", "~", "null", "=", ""]),
)
VALUES = st.recursive(
    LEAVES, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4)
)


@given(VALUES)
def test_whatever_is_written_as_yaml_is_read_as_the_same(value: object) -> None:
    (document,) = load_documents("".join(dumped([{"kind": "X", "value": value}])))
    assert document.body == {"kind": "X", "value": value}
