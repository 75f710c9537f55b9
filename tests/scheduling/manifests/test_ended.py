"""What a dump tells of work that is over is left out and said, and starts nothing anew."""

from typing import Any

import pytest

from scheduling.manifests.ended import CONDITIONS, WORDS
from tests.scheduling.manifests.public import KINDS, document, template
from tests.scheduling.manifests.reading import codes, only, parts_of, volcano

GROUPS = [
    document("PodGroup", "scheduling.volcano.sh/v1beta1", {"minMember": 1}),
    document("PodGroup", "scheduling.x-k8s.io/v1alpha1", {"minMember": 1}),
]
BODIES: dict[tuple[str, str], dict[str, Any]] = {
    (body["apiVersion"].rpartition("/")[0], body["kind"]): body
    for body in [
        *(body for body, _counts in KINDS.values()),
        *GROUPS,
        volcano(),
        document("Pod", "v1", template()["spec"]),
        document("Job", "batch/v1", {"template": template()}),
        document("Deployment", "apps/v1", {"template": template()}),
        document(
            "Workload",
            "kueue.x-k8s.io/v1beta1",
            {"queueName": "lq", "podSets": [{"name": "main", "template": template()}]},
        ),
    ]
}


def nested(path: str, word: object) -> dict[str, Any]:
    for step in reversed(path.split(".")):
        word = {step: word}
    assert isinstance(word, dict)
    return word


OTHER = {"type": "Other", "status": "True"}
ENDS = [
    *(
        (
            kind,
            {"conditions": [{"type": "Other", "status": "True"}, {"type": t, "status": "True"}]},
        )
        for kind, types in CONDITIONS.items()
        for t in types
    ),
    *((kind, nested(path, word)) for kind, (path, words) in WORDS.items() for word in words),
]


@pytest.mark.parametrize(("kind", "status"), ENDS)
def test_work_that_has_ended_is_not_taken(kind: tuple[str, str], status: dict[str, Any]) -> None:
    (part,) = parts_of({**BODIES[kind], "status": status})
    assert (part.specs, codes(part)) == ([], ["HAS_ENDED"])
    assert not any(found.is_error for found in part.diagnostics)


@pytest.mark.parametrize("kind", BODIES)
def test_work_that_is_being_deleted_is_not_taken(kind: tuple[str, str]) -> None:
    body = BODIES[kind]
    meta = {**body["metadata"], "deletionTimestamp": "2026-06-01T12:00:00Z"}
    (part,) = parts_of({**body, "metadata": meta})
    assert (part.specs, codes(part)) == ([], ["BEING_DELETED"])


LIVE: list[tuple[tuple[str, str], Any]] = [
    (("batch", "Job"), {"conditions": [{"type": "Complete", "status": "False"}]}),
    (("batch", "Job"), {"conditions": [{"type": "Suspended", "status": "True"}], "active": 1}),
    (("batch", "Job"), {"conditions": "Complete"}),
    (("batch", "Job"), ["Complete"]),
    (("", "Pod"), {"phase": "Running"}),
    (("", "Pod"), {"phase": ["Failed"]}),
    (("ray.io", "RayJob"), {"jobStatus": "FAILED", "jobDeploymentStatus": "Retrying"}),
    (("batch.volcano.sh", "Job"), {"state": {"phase": "Restarting"}}),
    (("batch.volcano.sh", "Job"), {"state": "Completed"}),
    (("kubeflow.org", "PyTorchJob"), {"conditions": [{"type": "Running", "status": "True"}]}),
    (("apps", "Deployment"), {"conditions": [{"type": "Failed", "status": "True"}]}),
]


@pytest.mark.parametrize(("kind", "status"), LIVE)
def test_work_that_is_not_over_is_taken(kind: tuple[str, str], status: Any) -> None:
    bodies = BODIES | {
        ("apps", "Deployment"): document("Deployment", "apps/v1", {"template": template()})
    }
    (part,) = parts_of({**bodies[kind], "status": status})
    assert part.specs
    assert "HAS_ENDED" not in codes(part)


def test_an_ended_pod_joins_no_gang() -> None:
    notes = {"scheduling.k8s.io/group-name": "a-podgroup"}
    spec = template()["spec"]
    pods = [document("Pod", "v1", spec, name=f"p{n}", annotations=notes) for n in range(2)]
    pods[1]["status"] = {"phase": "Succeeded"}
    group, live, ended = parts_of(GROUPS[0], *pods)
    assert [pod_set.count for pod_set in only(group).pod_sets] == [1]
    assert (live.member_of, ended.member_of) == ("PodGroup/ns-datos/a-podgroup", "")
