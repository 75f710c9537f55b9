"""What other work of the same submission makes is taken once: with its owner."""

from typing import Any

import pytest

from tests.scheduling.manifests.public import document, template
from tests.scheduling.manifests.reading import codes, parts_of

POD = template()["spec"]
JOB = {"template": template()}
SETS = {"replicatedJobs": [{"name": "w", "template": {"spec": JOB}}]}
WORKLOAD = {"queueName": "lq", "podSets": [{"name": "main", "template": template()}]}


def owned(kind: str, api: str, spec: dict[str, Any], uid: Any, **more: Any) -> dict[str, Any]:
    row = {"apiVersion": "x/v1", "kind": "X", "name": "x", "uid": uid, "controller": True, **more}
    return document(kind, api, spec, name="child", uid="u-child", ownerReferences=[row])


@pytest.mark.parametrize(
    ("owner", "child"),
    [
        (document("Job", "batch/v1", JOB, uid="u"), owned("Pod", "v1", POD, "u")),
        (
            document("Job", "batch/v1", JOB, uid="u"),
            owned("Workload", "kueue.x-k8s.io/v1beta1", WORKLOAD, "u"),
        ),
        (
            document("JobSet", "jobset.x-k8s.io/v1alpha2", SETS, uid="u"),
            owned("Job", "batch/v1", JOB, "u"),
        ),
    ],
)
def test_an_owner_is_taken_and_what_it_makes_is_not(
    owner: dict[str, Any], child: dict[str, Any]
) -> None:
    for bodies in ((owner, child), (child, owner)):
        parts = {part.document.name: part for part in parts_of(*bodies)}
        made = parts.pop("child")
        (kept,) = parts.values()
        assert (len(kept.specs), made.specs, codes(made)) == (1, [], ["OWNED_BY"])


@pytest.mark.parametrize(
    "child",
    [
        owned("Pod", "v1", POD, "elsewhere"),
        owned("Pod", "v1", POD, "u", controller=False),
        owned("Pod", "v1", POD, "u-child"),
        owned("Pod", "v1", POD, None),
        owned("Pod", "v1", POD, "u-node"),
    ],
    ids=["not here", "no controller", "itself", "no uid", "a node's own pod"],
)
def test_without_its_owner_it_is_work_of_its_own(child: dict[str, Any]) -> None:
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n", "uid": "u-node"}}
    _job, _node, part = parts_of(document("Job", "batch/v1", JOB, uid="u"), node, child)
    assert len(part.specs) == 1
