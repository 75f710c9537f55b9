"""The small kinds of promises, each in its spellings, and what is for other readers."""

from decimal import Decimal

import pytest

from gpuplatform.common.manifests import load_documents
from queues.manifests import kueue, reader_for
from queues.specs import (
    CohortSpec,
    FlavorSpec,
    NamespaceSpec,
    PriorityClassSpec,
    TaintSpec,
    TolerationSpec,
    TopologySpec,
)
from tests.queues.reading import read, said

SMALL = [
    pytest.param(
        """
        apiVersion: kueue.x-k8s.io/v1alpha1
        kind: Cohort
        metadata: {name: llm}
        spec: {parent: org, fairSharing: {weight: 2}}
        """,
        CohortSpec("llm", "org", fair_weight=Decimal(2)),
        [("FAIR_WEIGHT_KEPT", "spec.fairSharing.weight")],
        id="the first spelling of a cohort's parent",
    ),
    pytest.param(
        """
        apiVersion: kueue.x-k8s.io/v1beta2
        kind: Cohort
        metadata: {name: llm}
        spec: {parentName: org}
        """,
        CohortSpec("llm", "org"),
        [],
        id="the current spelling of a cohort's parent",
    ),
    pytest.param(
        "{apiVersion: kueue.x-k8s.io/v1beta1, kind: Cohort, metadata: {name: llm}}",
        CohortSpec("llm"),
        [],
        id="a cohort without a spec",
    ),
    pytest.param(
        """
        apiVersion: kueue.x-k8s.io/v1alpha1
        kind: Topology
        metadata: {name: dc, creationTimestamp: null}
        spec: {levels: [{nodeLabel: rack}]}
        """,
        TopologySpec("dc", ("rack",)),
        [],
        id="the first spelling of a topology",
    ),
    pytest.param(
        """
        apiVersion: kueue.x-k8s.io/v1beta2
        kind: ResourceFlavor
        metadata: {name: f}
        spec:
          nodeTaints: [{key: gpu, effect: NoExecute}]
          tolerations: [{key: gpu, operator: Exists, effect: NoExecute, tolerationSeconds: 5}]
        """,
        FlavorSpec(
            "f",
            {},
            (TaintSpec("gpu", effect="NoExecute"),),
            (TolerationSpec("gpu", "Exists", effect="NoExecute", seconds=5),),
        ),
        [],
        id="taints and tolerations",
    ),
    pytest.param(
        """
        apiVersion: kueue.x-k8s.io/v1beta1
        kind: WorkloadPriorityClass
        metadata: {name: high}
        value: -10
        description: low, in fact
        """,
        PriorityClassSpec("workload", "high", -10, description="low, in fact"),
        [],
        id="a workload priority class",
    ),
    pytest.param(
        """
        apiVersion: scheduling.k8s.io/v1
        kind: PriorityClass
        metadata: {name: high}
        value: 1000
        globalDefault: true
        preemptionPolicy: Never
        """,
        PriorityClassSpec("pod", "high", 1000, global_default=True),
        [("FIELD_NOT_HONOURED", "preemptionPolicy")],
        id="a pod priority class",
    ),
    pytest.param(
        """
        apiVersion: v1
        kind: Namespace
        metadata: {name: ns-datos, labels: {gpuplatform.io/team: datos}}
        status: {phase: Active}
        """,
        NamespaceSpec("ns-datos", {"gpuplatform.io/team": "datos"}, "datos"),
        [],
        id="a namespace with its owner",
    ),
    pytest.param(
        "{apiVersion: kueue.x-k8s.io/v1beta1, kind: WorkloadPriorityClass, metadata: {name: x}}",
        PriorityClassSpec("workload", "x", 0),
        [("REQUIRED", "value")],
        id="a class without a value",
    ),
    pytest.param(
        """
        apiVersion: scheduling.k8s.io/v1
        kind: PriorityClass
        metadata: {name: x}
        value: 2147483648
        """,
        PriorityClassSpec("pod", "x", 0),
        [("OUT_OF_RANGE", "value")],
        id="a value of 33 bits",
    ),
]


@pytest.mark.parametrize(("text", "spec", "expected"), SMALL)
def test_the_other_kinds(text, spec, expected):
    specs, diagnostics = read(text)
    assert specs == [spec]
    assert said(diagnostics) == expected


def test_what_is_not_a_promise_is_for_others():
    (job,) = load_documents("{apiVersion: batch/v1, kind: Job, metadata: {name: x}}")
    (foreign,) = load_documents("{apiVersion: example.com/v1, kind: Queue, metadata: {name: x}}")
    assert reader_for(job) is None
    assert reader_for(foreign) is None
    assert set(kueue.READERS) == {
        "ClusterQueue",
        "Cohort",
        "LocalQueue",
        "ResourceFlavor",
        "Topology",
        "WorkloadPriorityClass",
    }
