"""Manifests of promises: what each sample says, in every spelling, nothing lost in silence."""

from decimal import Decimal

import pytest

from queues.rules import check_cluster_queue
from queues.specs import (
    ClusterQueueSpec,
    CohortSpec,
    FlavorSpec,
    FungibilitySpec,
    LocalQueueSpec,
    PreemptionSpec,
    QuotaSpec,
    TolerationSpec,
    TopologySpec,
)
from tests.queues.promises import GPU
from tests.queues.reading import GIB, read, said, table

BOTH = PreemptionSpec("LowerPriority", "LowerPriority")
TAKES_GPU_TAINT = (TolerationSpec("nvidia.com/gpu", "Exists", effect="NoSchedule"),)


def only(namespace):
    return {"matchLabels": {"kubernetes.io/metadata.name": namespace}}


def big(gpus, borrow, lend, cpus, gib):
    return table(
        "h100-sxm",
        QuotaSpec(GPU, gpus, borrow, lend),
        QuotaSpec("cpu", cpus * 1000),
        QuotaSpec("memory", gib * GIB),
    )


CQ_TEAM_DATOS = ClusterQueueSpec(
    "cq-team-datos",
    big(16, 8, 8, 128, 512),
    cohort="llm-platform",
    namespace_selector=only("ns-datos"),
    preemption=PreemptionSpec("LowerPriority", "LowerPriority", "LowerPriority"),
)
SAMPLES = {
    "kueue-flavor.yaml": [
        FlavorSpec(
            "h100-sxm",
            {"accelerator": "h100-sxm", "node-pool": "gpu-training"},
            tolerations=TAKES_GPU_TAINT,
        )
    ],
    "kueue-clusterqueue-single.yaml": [CQ_TEAM_DATOS],
    "kueue-localqueue.yaml": [LocalQueueSpec("ns-datos", "lq-datos", "cq-team-datos")],
    "kueue-topology-flavor.yaml": [
        TopologySpec(
            "datacenter-topology",
            (
                "topology.kubernetes.io/block",
                "topology.kubernetes.io/rack",
                "kubernetes.io/hostname",
            ),
        ),
        FlavorSpec("h100-sxm", {"accelerator": "h100-sxm"}, topology="datacenter-topology"),
    ],
    "kueue-two-teams-rayjob.yaml": [
        FlavorSpec("h100-sxm", {"accelerator": "h100-sxm"}, tolerations=TAKES_GPU_TAINT),
        CQ_TEAM_DATOS,
        ClusterQueueSpec(
            "cq-team-ia",
            big(8, 8, 4, 64, 256),
            cohort="llm-platform",
            namespace_selector=only("ns-ia"),
            preemption=BOTH,
        ),
        LocalQueueSpec("ns-datos", "lq-datos", "cq-team-datos"),
        LocalQueueSpec("ns-ia", "lq-ia", "cq-team-ia"),
    ],
}


@pytest.mark.parametrize("name", SAMPLES)
def test_the_samples_without_mistakes_are_read_without_a_word(manifests, name):
    specs, diagnostics = read((manifests / name).read_text(encoding="utf-8"))
    assert specs == SAMPLES[name]
    assert diagnostics == []


def test_the_three_teams_are_in_their_cohort_by_its_old_name(manifests):
    specs, diagnostics = read((manifests / "kueue-three-teams.yaml").read_text(encoding="utf-8"))
    queues = {spec.name: spec for spec in specs if isinstance(spec, ClusterQueueSpec)}
    assert queues == {
        "cq-datos": ClusterQueueSpec(
            "cq-datos",
            table("h100-sxm", QuotaSpec(GPU, 2, 2)),
            cohort="llm-platform",
            namespace_selector=only("ns-datos"),
            preemption=BOTH,
        ),
        "cq-ia": ClusterQueueSpec(
            "cq-ia",
            table("h100-sxm", QuotaSpec(GPU, 1, None, 1)),
            cohort="llm-platform",
            namespace_selector=only("ns-ia"),
        ),
        "cq-plataforma": ClusterQueueSpec(
            "cq-plataforma",
            table("h100-sxm", QuotaSpec(GPU, 1, 3)),
            cohort="llm-platform",
            namespace_selector=only("ns-plataforma"),
        ),
    }
    assert said(diagnostics) == [("FIELD_RENAMED", "spec.cohort")] * 3
    assert diagnostics[0].numbers == {"old": "spec.cohort", "new": "spec.cohortName"}
    assert diagnostics[0].severity == "warning"
    assert not [p for spec in queues.values() for p in check_cluster_queue(spec, ())]


@pytest.mark.parametrize(
    ("version", "field", "renamed"),
    [
        ("v1beta1", "cohort", []),
        ("v1beta1", "cohortName", [("FIELD_RENAMED", "spec.cohortName")]),
        ("v1beta2", "cohortName", []),
        ("v1beta2", "cohort", [("FIELD_RENAMED", "spec.cohort")]),
    ],
)
def test_both_names_of_a_cohort_are_read(version, field, renamed):
    text = f"""
    apiVersion: kueue.x-k8s.io/{version}
    kind: ClusterQueue
    metadata: {{name: cq}}
    spec: {{{field}: llm}}
    """
    specs, diagnostics = read(text)
    assert specs == [ClusterQueueSpec("cq", cohort="llm")]
    assert said(diagnostics) == renamed


def test_two_different_cohorts_are_a_contradiction():
    text = """
    apiVersion: kueue.x-k8s.io/v1beta2
    kind: ClusterQueue
    metadata: {name: cq}
    spec: {cohort: one, cohortName: two}
    """
    codes = [code for code, _ in said(read(text)[1])]
    assert codes == ["BAD_VALUE", "FIELD_RENAMED"]


@pytest.mark.parametrize(
    ("written", "expected"),
    [("", None), ("namespaceSelector:", None), ("namespaceSelector: {}", {})],
)
def test_no_selector_and_an_empty_one_are_opposites(written, expected):
    text = f"""
    apiVersion: kueue.x-k8s.io/v1beta2
    kind: ClusterQueue
    metadata: {{name: cq}}
    spec:
      stopPolicy: None
      {written}
    """
    (spec,), diagnostics = read(text)
    assert spec.namespace_selector == expected
    assert diagnostics == []


def test_every_field_of_a_cluster_queue_is_read_carried_or_reported():
    text = """
    apiVersion: kueue.x-k8s.io/v1beta2
    kind: ClusterQueue
    metadata:
      name: cq
      labels: {gpuplatform.io/team: datos}
      annotations:
        gpuplatform.io/minimum-runtime-seconds: "3600"
        gpuplatform.io/minimum-runtime-yields-to-own: "true"
        gpuplatform.io/priority-first: "true"
    spec:
      cohortName: llm
      queueingStrategy: StrictFIFO
      stopPolicy: Hold
      fairSharing: {weight: 500m}
      quotaCheckStrategy: IgnoreUndeclared
      admissionChecksStrategy: {admissionChecks: [{name: budget}]}
      admissionScope: {admissionMode: UsageBasedAdmissionFairSharing}
      flavorFungibility: {whenCanBorrow: TryNextFlavor, whenCanPreempt: TryNextFlavor}
      preemption:
        reclaimWithinCohort: Any
        borrowWithinCohort: {policy: LowerPriority, maxPriorityThreshold: -7}
        withinClusterQueue: LowerOrNewerEqualPriority
      colour: green
      resourceGroups:
      - coveredResources: [cpu]
        flavors:
        - name: f
          resources:
          - {name: cpu, nominalQuota: 1500m, lendingLimit: 1, shade: dark}
    """
    (spec,), diagnostics = read(text)
    assert spec == ClusterQueueSpec(
        "cq",
        table("f", QuotaSpec("cpu", 1500, None, 1000)),
        team="datos",
        cohort="llm",
        queueing_strategy="StrictFIFO",
        stop_policy="Hold",
        fair_weight=Decimal("0.5"),
        preemption=PreemptionSpec("LowerOrNewerEqualPriority", "Any", "LowerPriority", -7),
        undeclared="IgnoreUndeclared",
        fungibility=FungibilitySpec(when_can_borrow="TryNextFlavor"),
        minimum_runtime_s=3600,
        yields_to_own=True,
        admission_order="usage",
        priority_first=True,
        carried={
            "admissionChecksStrategy": {"admissionChecks": [{"name": "budget"}]},
        },
    )
    assert sorted(said(diagnostics)) == [
        ("FAIR_WEIGHT_KEPT", "spec.fairSharing.weight"),
        ("UNKNOWN_FIELD", "spec.colour"),
        ("UNKNOWN_FIELD", "spec.resourceGroups[0].flavors[0].resources[0].shade"),
    ]


@pytest.mark.parametrize(
    ("quota", "expected"),
    [
        ("{name: cpu}", ("REQUIRED", "nominalQuota")),
        ("{name: cpu, nominalQuota: -1}", ("NEGATIVE", "nominalQuota")),
        ("{name: cpu, nominalQuota: lots}", ("BAD_QUANTITY", "nominalQuota")),
        ("{name: cpu, nominalQuota: [1]}", ("BAD_QUANTITY", "nominalQuota")),
        ("{name: cpu, nominalQuota: 1e30}", ("BAD_QUANTITY", "nominalQuota")),
        ("{name: 7, nominalQuota: 1}", ("BAD_TYPE", "name")),
    ],
)
def test_bad_amounts_are_errors_at_their_place(quota, expected):
    text = f"""
    apiVersion: kueue.x-k8s.io/v1beta1
    kind: Cohort
    metadata: {{name: llm}}
    spec:
      resourceGroups:
      - coveredResources: [cpu]
        flavors: [{{name: f, resources: [{quota}]}}]
    """
    _, (diagnostic,) = read(text)
    code, field = expected
    assert diagnostic.code == code
    assert diagnostic.path == f"spec.resourceGroups[0].flavors[0].resources[0].{field}"
    assert diagnostic.is_error


@pytest.mark.parametrize(
    ("weight", "expected", "codes"),
    [
        ("1", Decimal(1), []),
        ("1000m", Decimal(1), []),
        ("2", Decimal(2), ["FAIR_WEIGHT_KEPT"]),
        ('"0.25"', Decimal("0.25"), ["FAIR_WEIGHT_KEPT"]),
        ("500m", Decimal("0.5"), ["FAIR_WEIGHT_KEPT"]),
        ("-1", Decimal(1), ["NEGATIVE"]),
        ("true", Decimal(1), ["BAD_QUANTITY"]),
        ("[1]", Decimal(1), ["BAD_QUANTITY"]),
        ("heavy", Decimal(1), ["BAD_QUANTITY"]),
    ],
)
def test_weights_are_quantities(weight, expected, codes):
    text = f"""
    apiVersion: kueue.x-k8s.io/v1beta2
    kind: LocalQueue
    metadata: {{name: lq, namespace: ns}}
    spec: {{clusterQueue: cq, stopPolicy: HoldAndDrain, fairSharing: {{weight: {weight}}}}}
    """
    (spec,), diagnostics = read(text)
    assert spec == LocalQueueSpec("ns", "lq", "cq", "HoldAndDrain", expected)
    assert [d.code for d in diagnostics] == codes
    assert not any(d.severity == "warning" for d in diagnostics)


@pytest.mark.parametrize("kind", ["ClusterQueue", "Cohort"])
def test_the_weight_of_a_queue_and_of_a_cohort_is_kept_and_told(kind):
    text = f"""
    apiVersion: kueue.x-k8s.io/v1beta2
    kind: {kind}
    metadata: {{name: shared}}
    spec: {{fairSharing: {{weight: 3}}}}
    """
    (spec,), (diagnostic,) = read(text)
    assert spec.fair_weight == 3
    assert (diagnostic.code, diagnostic.severity) == ("FAIR_WEIGHT_KEPT", "info")


@pytest.mark.parametrize(
    ("field", "path"),
    [
        ("concurrentAdmissionPolicy: {a: b}", "spec.concurrentAdmissionPolicy"),
    ],
)
def test_what_kueue_would_act_on_and_we_do_not_is_a_warning(field, path):
    text = f"""
    apiVersion: kueue.x-k8s.io/v1beta2
    kind: ClusterQueue
    metadata: {{name: cq}}
    spec: {{{field}}}
    """
    assert said(read(text)[1]) == [("FIELD_NOT_HONOURED", path)]


@pytest.mark.parametrize(
    ("field", "expected"),
    [
        ("{whenCanBorrow: Borrow, whenCanPreempt: Preempt}", ("MayStopSearch", "MayStopSearch")),
        ("{whenCanBorrow: MayStopSearch}", ("MayStopSearch", "TryNextFlavor")),
        ("{whenCanPreempt: MayStopSearch}", ("MayStopSearch", "MayStopSearch")),
    ],
)
def test_the_search_of_flavors_is_read_in_both_spellings(field, expected):
    text = f"""
    apiVersion: kueue.x-k8s.io/v1beta1
    kind: ClusterQueue
    metadata: {{name: cq}}
    spec: {{flavorFungibility: {field}}}
    """
    (spec,), diagnostics = read(text)
    assert (spec.fungibility, diagnostics) == (FungibilitySpec(*expected), [])


@pytest.mark.parametrize(
    ("part", "code", "path"),
    [
        ("spec: {admissionScope: {admissionMode: x}}", "BAD_VALUE", "spec.admissionScope"),
        ("spec: {admissionScope: {by: x}}", "UNKNOWN_FIELD", "spec.admissionScope"),
        ("spec: {flavorFungibility: {preference: Luck}}", "BAD_VALUE", "spec.flavorFungibility"),
        ("spec: {flavorFungibility: {whenCanBorrow: Preempt}}", "BAD_VALUE", "spec.flavorFung"),
        *(
            (f'annotations: {{gpuplatform.io/{key}: "{value}"}}', code, "metadata.annotations")
            for key, value, code in (
                ("minimum-runtime-seconds", "an hour", "BAD_QUANTITY"),
                ("minimum-runtime-seconds", "-5", "BAD_QUANTITY"),
                ("minimum-runtime-seconds", "99999999999", "BAD_QUANTITY"),
                ("minimum-runtime-yields-to-own", "yes", "BAD_VALUE"),
                ("priority-first", "1", "BAD_VALUE"),
            )
        ),
    ],
)
def test_what_order_and_safety_cannot_be_is_said_at_its_place(part, code, path):
    meta, spec = ("", part) if part.startswith("spec") else (part, "spec: {}")
    text = f"""
    apiVersion: kueue.x-k8s.io/v1beta2
    kind: ClusterQueue
    metadata: {{name: cq, {meta}}}
    {spec}
    """
    _, (diagnostic,) = read(text)
    assert (diagnostic.code, diagnostic.path.startswith(path)) == (code, True)


@pytest.mark.parametrize("fairness", ["none", "share", "history"])
def test_a_cohort_is_fair_where_an_annotation_says_so(fairness):
    text = f"""
    apiVersion: kueue.x-k8s.io/v1beta2
    kind: Cohort
    metadata: {{name: llm, annotations: {{gpuplatform.io/fairness: {fairness}}}}}
    """
    assert read(text) == ([CohortSpec("llm", fairness=fairness)], [])


def test_an_annotation_says_how_far_running_gangs_take_back() -> None:
    text = """
    apiVersion: kueue.x-k8s.io/v1beta1
    kind: Cohort
    metadata:
      name: llm
      annotations: {gpuplatform.io/fairness: share, gpuplatform.io/reclaim-to: fair_share}
    """
    assert read(text) == ([CohortSpec("llm", fairness="share", reclaim_to="fair_share")], [])


def test_a_fairness_that_nobody_knows_is_refused():
    text = """
    apiVersion: kueue.x-k8s.io/v1beta2
    kind: Cohort
    metadata: {name: llm, annotations: {gpuplatform.io/fairness: luck}}
    """
    _, (diagnostic,) = read(text)
    where = "metadata.annotations[gpuplatform.io/fairness]"
    assert (diagnostic.code, diagnostic.path, diagnostic.is_error) == ("BAD_VALUE", where, True)
