"""Weights in manifests: whether they count depends on the tree around them."""

from typing import Any

import pytest

from gpuplatform.doors.importer import import_documents
from queues.models import Cohort

pytestmark = pytest.mark.django_db

TREE = """
apiVersion: kueue.x-k8s.io/v1beta2
kind: Cohort
metadata: {{name: top, annotations: {{gpuplatform.io/fairness: {fairness}}}}}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: Cohort
metadata: {{name: mid}}
spec: {{parentName: top, fairSharing: {{weight: 2}}}}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: ClusterQueue
metadata: {{name: cq, labels: {{gpuplatform.io/team: datos}}}}
spec:
  cohortName: mid
  namespaceSelector: {{}}
  fairSharing: {{weight: "0.5"}}
  admissionScope: {{admissionMode: {mode}}}
---
apiVersion: kueue.x-k8s.io/v1beta2
kind: LocalQueue
metadata: {{name: lq, namespace: ns}}
spec: {{clusterQueue: cq, fairSharing: {{weight: 3}}}}
"""
BY_USAGE, BY_PRIORITY = "UsageBasedAdmissionFairSharing", "NoAdmissionFairSharing"


def kept_only(text: str) -> list[str]:
    """Return the kinds of which a weight is told to be kept and no more."""
    report = import_documents(text, actor=None)
    assert not report.rejected
    return [result.kind for result in report.results if "FAIR_WEIGHT_KEPT" in result.codes]


@pytest.mark.parametrize(
    ("fairness", "mode", "expected"),
    [
        ("none", BY_PRIORITY, ["Cohort", "ClusterQueue", "LocalQueue"]),
        ("none", BY_USAGE, ["Cohort", "ClusterQueue"]),
        ("share", BY_PRIORITY, ["LocalQueue"]),
        ("history", BY_USAGE, []),
    ],
)
def test_a_weight_that_counts_is_not_told_to_be_kept_only(
    datos: Any, fairness: str, mode: str, expected: list[str]
) -> None:
    assert kept_only(TREE.format(fairness=fairness, mode=mode)) == expected
    assert Cohort.objects.get(name="top").fairness == fairness


def test_a_cohort_below_another_cannot_say_how_the_tree_shares(datos: Any) -> None:
    text = """
    apiVersion: kueue.x-k8s.io/v1beta2
    kind: Cohort
    metadata: {name: mid, annotations: {gpuplatform.io/fairness: share}}
    spec: {parentName: top}
    """
    (result,) = import_documents(text, actor=None).results
    found = [(d.code, d.path) for d in result.diagnostics]
    assert found == [("not_at_the_top", "metadata.annotations[gpuplatform.io/fairness]")]
    assert not Cohort.objects.exists()
