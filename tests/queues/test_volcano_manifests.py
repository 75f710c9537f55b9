"""Volcano's queues as cluster queues: guarantees, ceilings, weights, and contradictions."""

from decimal import Decimal

import pytest

from gpuplatform.common.manifests import load_documents
from queues.manifests import volcano
from queues.manifests.weights import Claim, nominal_by_weight
from queues.specs import ClusterQueueSpec, CohortSpec, FlavorSpec, PreemptionSpec, QuotaSpec
from tests.queues.promises import GPU
from tests.queues.reading import GIB, read, said, table


def volcano_queue(name, weight, *quotas):
    return ClusterQueueSpec(
        name,
        table("default", *quotas),
        cohort="volcano",
        fair_weight=Decimal(weight),
        namespace_selector={},
        preemption=PreemptionSpec("LowerPriority", "Any"),
        undeclared="IgnoreUndeclared",
    )


ONE_QUEUE = """
apiVersion: scheduling.volcano.sh/v1beta1
kind: Queue
metadata: {{name: {name}}}
spec: {spec}
"""


def one(spec, name="team"):
    return read(ONE_QUEUE.format(name=name, spec=spec))


def test_the_article_s_queues_get_their_guarantee_as_nominal(manifests):
    specs, diagnostics = read((manifests / "volcano-queues.yaml").read_text(encoding="utf-8"))
    assert specs == [
        FlavorSpec("default"),
        CohortSpec("volcano", quota_source="residual"),
        volcano_queue("team-datos", 4, QuotaSpec(GPU, 8, 8, 0)),
        FlavorSpec("default"),
        CohortSpec("volcano", quota_source="residual"),
        volcano_queue("team-ia", 2, QuotaSpec(GPU, 4, 4, 0)),
    ]
    told = [("FAIR_WEIGHT_KEPT", "spec.weight"), ("DESERVED_DEFAULTED", "spec.deserved")]
    assert said(diagnostics) == told * 2
    assert [d.numbers["amount"] for d in diagnostics if "amount" in d.numbers] == [8, 4]
    assert {d.severity for d in diagnostics} == {"info"}
    assert not any(d.is_error for d in diagnostics)


def test_resources_with_a_capability_only_are_borrowed(manifests):
    text = (manifests / "volcano-queues-podgroup-job.yaml").read_text(encoding="utf-8")
    specs = [spec for spec in read(text)[0] if isinstance(spec, ClusterQueueSpec)]
    assert specs == [
        volcano_queue(
            "team-datos",
            4,
            QuotaSpec(GPU, 16, 8, 0),
            QuotaSpec("cpu", 0, 192_000, 0),
            QuotaSpec("memory", 0, 768 * GIB, 0),
        ),
        volcano_queue(
            "team-ia",
            2,
            QuotaSpec(GPU, 8, 8, 0),
            QuotaSpec("cpu", 0, 64_000, 0),
            QuotaSpec("memory", 0, 256 * GIB, 0),
        ),
    ]


@pytest.mark.parametrize(
    ("spec", "codes"),
    [
        ("{weight: 3, capability: {cpu: 2}}", []),  # shared by weight: the weight counts
        ("{weight: 3, deserved: {cpu: 2}}", ["FAIR_WEIGHT_KEPT"]),
        ("{weight: 1, deserved: {cpu: 2}}", []),
    ],
)
def test_a_weight_beside_stated_amounts_is_kept_and_told(spec, codes):
    assert [d.code for d in one(spec)[1]] == codes


def test_what_is_deserved_above_the_guarantee_can_be_lent():
    specs, diagnostics = one(
        "{deserved: {nvidia.com/gpu: 8}, guarantee: {resource: {nvidia.com/gpu: 3}}}"
    )
    assert specs[-1] == volcano_queue("team", 1, QuotaSpec(GPU, 8, None, 5))
    assert diagnostics == []


@pytest.mark.parametrize(
    ("spec", "code", "path"),
    [
        pytest.param(
            "{capability: {cpu: 1}, guarantee: {resource: {cpu: 2}}, deserved: {cpu: 2}}",
            "GUARANTEE_ABOVE_CAPABILITY",
            "spec.guarantee.resource.cpu",
            id="a guarantee above the ceiling",
        ),
        pytest.param(
            "{guarantee: {resource: {cpu: 2}}, deserved: {cpu: 1}}",
            "DESERVED_BELOW_GUARANTEE",
            "spec.deserved.cpu",
            id="less deserved than guaranteed",
        ),
        pytest.param(
            "{capability: {cpu: 1}, deserved: {cpu: 2}}",
            "OUT_OF_RANGE",
            "spec.deserved.cpu",
            id="more deserved than possible",
        ),
        pytest.param("{weight: 0}", "OUT_OF_RANGE", "spec.weight", id="no weight"),
        pytest.param("{weight: 65536}", "OUT_OF_RANGE", "spec.weight", id="too much weight"),
        pytest.param("{reclaimable: 1}", "BAD_TYPE", "spec.reclaimable", id="no flag"),
        pytest.param("{capability: {cpu: -1}}", "NEGATIVE", "spec.capability.cpu", id="negative"),
    ],
)
def test_contradictions_of_a_volcano_queue_are_errors(spec, code, path):
    diagnostics = [d for d in one(spec)[1] if d.is_error]
    assert (code, path) in said(diagnostics)


def test_fields_that_change_nothing_here_are_kept_with_a_warning():
    specs, diagnostics = one("{priority: 5, dequeueStrategy: fifo, reclaimable: false, x: 1}")
    assert specs[-1].reclaimable is False
    assert specs[-1].carried == {"priority": 5, "dequeueStrategy": "fifo"}
    assert sorted(said(diagnostics)) == [
        ("FIELD_NOT_HONOURED", "spec.dequeueStrategy"),
        ("FIELD_NOT_HONOURED", "spec.priority"),
        ("UNKNOWN_FIELD", "spec.x"),
    ]
    assert one("{priority: 0, dequeueStrategy: traverse}")[1] == []


def test_a_parent_is_a_cohort_and_root_is_none():
    specs, _ = one("{parent: eng}")
    assert [type(spec).__name__ for spec in specs] == ["FlavorSpec", "ClusterQueueSpec"]
    assert specs[-1].cohort == "eng"
    assert one("{parent: root}")[0][-1].cohort == "volcano"


def test_a_queue_that_others_name_as_parent_becomes_the_cohort():
    text = "---".join(
        ONE_QUEUE.format(name=name, spec=spec)
        for name, spec in (("eng", "{weight: 3, parent: org}"), ("a", "{parent: eng}"))
    )
    documents = load_documents(text)
    parents = volcano.parents_of(documents)
    assert parents == {"eng", "org"}
    readings = [volcano.read_queue(document, parents) for document in documents]
    assert readings[0].specs == [CohortSpec("eng", "org", fair_weight=Decimal(3))]
    assert readings[1].specs[-1].cohort == "eng"


@pytest.mark.parametrize(
    ("queues", "capacity", "expected"),
    [
        pytest.param(
            [Claim("datos", 4, 16), Claim("ia", 2, 8)],
            32,
            {"datos": 16, "ia": 8},
            id="ceilings strand the rest",
        ),
        pytest.param(
            [Claim("datos", 4), Claim("ia", 2)],
            32,
            {"datos": 21, "ia": 11},
            id="largest remainder",
        ),
        pytest.param(
            [Claim("a", 1, 2), Claim("b", 1), Claim("c", 1)],
            32,
            {"a": 2, "b": 15, "c": 15},
            id="what a full one leaves is shared again",
        ),
        pytest.param(
            [Claim("a", 1, guarantee=6), Claim("b", 1)], 8, {"a": 7, "b": 1}, id="guarantee first"
        ),
        pytest.param([Claim("a", 1, guarantee=6)], 4, {"a": 6}, id="guarantees above capacity"),
        pytest.param([Claim("b", 1), Claim("a", 1)], 1, {"a": 1, "b": 0}, id="ties by name"),
        pytest.param([], 8, {}, id="nobody"),
        pytest.param([Claim("a", 1)], 0, {"a": 0}, id="nothing"),
    ],
)
def test_nominal_by_weight(queues, capacity, expected):
    assert nominal_by_weight(queues, capacity) == expected


def test_queues_that_state_nothing_share_by_weight():
    datos = one("{weight: 4, capability: {nvidia.com/gpu: 16}}", "datos")[0][-1]
    ia = one("{weight: 2, capability: {nvidia.com/gpu: 8}}", "ia")[0][-1]
    assert volcano.share_by_weight([datos, ia], {GPU: 32}) == [
        volcano_queue("datos", 4, QuotaSpec(GPU, 16, 0, 16)),
        volcano_queue("ia", 2, QuotaSpec(GPU, 8, 0, 8)),
    ]


def test_a_queue_that_states_its_nominal_keeps_it():
    stated = one("{weight: 9, deserved: {nvidia.com/gpu: 10}}", "stated")[0][-1]
    open_ended = one("{weight: 1}", "open")[0][-1]
    assert volcano.share_by_weight([stated, open_ended], {GPU: 16}) == [
        stated,
        volcano_queue("open", 1, QuotaSpec(GPU, 6, None, 6)),
    ]
