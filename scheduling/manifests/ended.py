"""Whether a document tells of work that is over: a dump of a cluster holds much of it.

Such work is left out and said so: to take it in would start it anew.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from gpuplatform.common.fields import KEPT
from gpuplatform.common.manifests import Document
from scheduling.manifests.part import Part

TRAINING = ("PyTorchJob", "TFJob", "XGBoostJob", "PaddleJob", "JAXJob", "MPIJob")
NO_WORK = ("Node", "AdmissionCheck")
# By group and kind: the conditions that hold once it is over.
CONDITIONS: Mapping[tuple[str, str], tuple[str, ...]] = {
    ("batch", "Job"): ("Complete", "Failed"),
    ("jobset.x-k8s.io", "JobSet"): ("Completed", "Failed"),
    ("kueue.x-k8s.io", "Workload"): ("Finished",),
    ("trainer.kubeflow.org", "TrainJob"): ("Complete", "Failed"),
    **{("kubeflow.org", kind): ("Succeeded", "Failed") for kind in TRAINING},
}
# And where a word of the status says so, and which words.
WORDS: Mapping[tuple[str, str], tuple[str, tuple[str, ...]]] = {
    ("", "Pod"): ("phase", ("Succeeded", "Failed")),
    ("batch.volcano.sh", "Job"): (
        "state.phase",
        ("Completed", "Failed", "Aborted", "Terminated"),
    ),
    ("ray.io", "RayJob"): ("jobDeploymentStatus", ("Complete", "Failed")),
    ("scheduling.volcano.sh", "PodGroup"): ("phase", ("Completed",)),
    ("scheduling.x-k8s.io", "PodGroup"): ("phase", ("Finished", "Failed")),
    ("sparkoperator.k8s.io", "SparkApplication"): (
        "applicationState.state",
        ("COMPLETED", "FAILED"),
    ),
    ("workload.codeflare.dev", "AppWrapper"): ("phase", ("Succeeded", "Failed")),
}


def is_over(part: Part, kind: tuple[str, str]) -> bool:
    """Return whether the work of a document has ended or is being deleted, and report it.

    ``kind``: API group and kind. A status that cannot be read says nothing.
    """
    document = part.document
    if document.kind in NO_WORK:
        return False
    deleted = _mapping(document.body.get("metadata")).get("deletionTimestamp")
    if deleted:
        part.report("BEING_DELETED", "metadata.deletionTimestamp", since=str(deleted)[:KEPT])
        return True
    for path, state in _ends(document, kind):
        part.report("HAS_ENDED", path, state=state)
        return True
    return False


def _ends(document: Document, kind: tuple[str, str]) -> Iterator[tuple[str, str]]:
    """Yield each place of the status that says that it is over, and what stands there."""
    status = _mapping(document.body.get("status"))
    rows = status.get("conditions")
    for number, row in enumerate(rows if isinstance(rows, list) else []):
        said = _mapping(row)
        if said.get("type") in CONDITIONS.get(kind, ()) and said.get("status") == "True":
            yield f"status.conditions[{number}]", str(said["type"])
    path, words = WORDS.get(kind, ("", ()))
    word: Any = status
    for step in path.split(".") if path else []:
        word = _mapping(word).get(step)
    if isinstance(word, str) and word in words:
        yield f"status.{path}", word


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
