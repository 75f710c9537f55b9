"""Documents to nodes, workloads and admission checks: which kinds, and how they join gangs."""

from collections.abc import Callable

from gpuplatform.common.diagnostics import Diagnostic
from gpuplatform.common.manifests import Document
from scheduling.manifests.annotations import COSCHEDULED, group_of
from scheduling.manifests.checks import read_check
from scheduling.manifests.core import read_deployment, read_job, read_node, read_pod
from scheduling.manifests.ended import is_over
from scheduling.manifests.kueue import read_workload
from scheduling.manifests.operators import READERS as RAY
from scheduling.manifests.owners import is_owned, owners_among
from scheduling.manifests.part import Part
from scheduling.manifests.podgroups import join_pods
from scheduling.manifests.sets import READERS as SETS
from scheduling.manifests.spark import READERS as SPARK
from scheduling.manifests.training import READERS as TRAINING
from scheduling.manifests.volcano import read_pod_group, read_volcano_job
from scheduling.specs import WorkloadSpec

__all__ = ["POD_GROUPS", "READERS", "Part", "read", "reads"]

POD_GROUPS = (("scheduling.volcano.sh", "PodGroup"), ("scheduling.x-k8s.io", "PodGroup"))
READERS: dict[tuple[str, str], Callable[[Part], None]] = {
    ("", "Node"): read_node,
    ("", "Pod"): read_pod,
    ("kueue.x-k8s.io", "AdmissionCheck"): read_check,
    ("apps", "Deployment"): read_deployment,
    ("batch", "Job"): read_job,
    ("batch.volcano.sh", "Job"): read_volcano_job,
    ("kueue.x-k8s.io", "Workload"): read_workload,
    **RAY,
    **SETS,
    **SPARK,
    **TRAINING,
}
# Misspellings of the group annotation that people copy from one another (G8).
NEARLY_GROUP = ("scheduling.volcano.sh/pod-group-name", "scheduling.k8s.io/pod-group-name")


def kind_of(document: Document) -> tuple[str, str]:
    """Return the API group and the kind; the version is the readers' business."""
    group, slash, _version = document.api_version.partition("/")
    return (group if slash else "", document.kind)


def reads(document: Document) -> bool:
    """Return whether this room reads the document."""
    return kind_of(document) in READERS or kind_of(document) in POD_GROUPS


def read(documents: list[Document]) -> list[Part]:
    """Return a part per document, in order; pods that name a PodGroup beside them join it.

    Work that is over, or that other work among the documents makes, is left out and said so.
    """
    parts = [Part(document) for document in documents]
    owners = owners_among(documents)
    live = [
        part
        for part in parts
        if not is_over(part, kind_of(part.document)) and not is_owned(part, owners)
    ]
    for part in live:
        reader = READERS.get(kind_of(part.document))
        if reader is not None:
            reader(part)
    for part in live:
        if kind_of(part.document) in POD_GROUPS:
            _read_group(part, parts)
    join_pods(live)
    for part in parts:
        part.diagnostics = _once(part.diagnostics)
    return parts


def _read_group(group: Part, parts: list[Part]) -> None:
    """Read a PodGroup with the pods beside it that join it."""
    owners = [part for part in parts if _makes_the_same_gang(part, group)]
    joining = [part for part in parts if _joins(part, group)]
    members = [s for part in owners or joining for s in part.specs if isinstance(s, WorkloadSpec)]
    read_pod_group(group, members, owned_elsewhere=bool(owners))
    for owner in owners:
        owner.report("DUPLICATE_GANG", other=group.document.subject)
        group.report("DUPLICATE_GANG", other=owner.document.subject)
    for part in [] if owners else joining:
        part.specs, part.member_of = [], group.document.subject
        part.diagnostics = [
            d for d in part.diagnostics if d.code not in ("QUEUE_DEFAULTED", "OUTSIDE_QUOTA")
        ]


def _makes_the_same_gang(part: Part, group: Part) -> bool:
    """Return whether a Volcano Job, a gang by itself, names the group for its pods, too (G8)."""
    if kind_of(part.document) != ("batch.volcano.sh", "Job"):
        return False
    return any(
        spec.annotations.get(key) == group.document.name
        for spec in part.specs
        if isinstance(spec, WorkloadSpec) and spec.namespace == group.document.namespace
        for key in (
            *NEARLY_GROUP,
            "scheduling.k8s.io/group-name",
            "scheduling.volcano.sh/group-name",
        )
    )


def _joins(part: Part, group: Part) -> bool:
    return kind_of(part.document)[1] in ("Pod", "Deployment", "Job") and any(
        isinstance(spec, WorkloadSpec)
        and spec.namespace == group.document.namespace
        and _group_named(spec, group) == group.document.name
        for spec in part.specs
    )


def _group_named(spec: WorkloadSpec, group: Part) -> str:
    """Return the group that a pod joins: Volcano has an annotation, scheduler plugins a label."""
    if kind_of(group.document) == POD_GROUPS[0]:
        return group_of(spec.annotations)
    return str(spec.labels.get(COSCHEDULED, ""))


def _once(diagnostics: list[Diagnostic]) -> list[Diagnostic]:
    """Return each finding once: a Pod is its own template."""
    found: list[Diagnostic] = []
    for diagnostic in diagnostics:
        if diagnostic not in found:
            found.append(diagnostic)
    return found
