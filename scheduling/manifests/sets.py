"""Kinds that hold several jobs or pods of one shape (``admission.md`` 4.2).

JobSet, LeaderWorkerSet, StatefulSet and AppWrapper.
"""

from collections.abc import Callable
from dataclasses import replace

from gpuplatform.common.fields import Fields
from scheduling.manifests.core import MOST_PODS, MOST_REPLICAS
from scheduling.manifests.part import Part
from scheduling.manifests.pods import read_template
from scheduling.manifests.work import Work, begin

TEMPLATE = "template"
USUAL_PATH = "template.spec.template"  # of the pods in what an AppWrapper wraps


def read_job_set(part: Part) -> None:
    """Read a JobSet: a pod set per replicated job, replicas x pods of one job."""
    work = begin(part)
    spec = work.fields.child("spec", required=True)
    for row in spec.children("replicatedJobs", required=True):
        _replicated_job(work, row)
    failure = spec.child("failurePolicy")
    work.max_retries = failure.integer("maxRestarts")
    failure.not_honoured("rules", "restartStrategy")
    failure.close()
    work.ttl_s = spec.integer("ttlSecondsAfterFinished")
    spec.accept("network", "suspend", "coordinator")
    spec.not_honoured("successPolicy", "startupPolicy", "managedBy", "volumeClaimPolicies")
    spec.close()
    work.fields.close()
    part.specs.append(work.spec())


def _replicated_job(work: Work, row: Fields) -> None:
    name = row.text("name", required=True)
    replicas = row.integer("replicas", 1, maximum=MOST_PODS) or 0
    job = row.child("template", required=True)
    job.accept("metadata")
    spec = job.child("spec", required=True)
    parallelism = spec.integer("parallelism", 1, maximum=MOST_PODS)
    completions = spec.integer("completions", parallelism, maximum=2**31 - 1)
    pods = min(n for n in (parallelism, completions) if n is not None)
    shape = read_template(spec.child("template", required=True))
    spec.accept("completionMode", "backoffLimit", "suspend", "podReplacementPolicy")
    spec.not_honoured("activeDeadlineSeconds", "backoffLimitPerIndex", "podFailurePolicy")
    spec.not_honoured("successPolicy", "maxFailedIndexes", "managedBy", "ttlSecondsAfterFinished")
    spec.close()
    job.close()
    row.not_honoured("dependsOn")
    row.accept("groupName")
    row.close()
    work.shapes.append(shape)
    if replicas * pods:
        work.pod_sets.append(shape.as_pod_set(name, replicas * pods))


def read_leader_worker_set(part: Part) -> None:
    """Read a LeaderWorkerSet: every group is a workload of its own, a gang of its pods."""
    work = begin(part)
    spec = work.fields.child("spec", required=True)
    groups = spec.integer("replicas", 1, maximum=MOST_REPLICAS) or 0
    row = spec.child("leaderWorkerTemplate", required=True)
    size = row.integer("size", 1, minimum=1, maximum=MOST_PODS) or 1
    if "leaderTemplate" in row:
        _pods(work, row.child("leaderTemplate"), "leader", 1)
        _pods(work, row.child("workerTemplate", required=True), "worker", size - 1)
    else:
        _pods(work, row.child("workerTemplate", required=True), "main", size)
    row.accept("restartPolicy", "volumeClaimTemplates", "persistentVolumeClaimRetentionPolicy")
    row.not_honoured("subGroupPolicy", "resizePolicy")
    row.close()
    spec.accept("rolloutStrategy", "networkConfig")
    spec.not_honoured("startupPolicy")
    spec.close()
    work.fields.close()
    made = work.spec()
    part.specs.extend(replace(made, name=f"{made.name}-{index}") for index in range(groups))


def _pods(work: Work, template: Fields, name: str, count: int) -> None:
    shape = read_template(template)
    work.shapes.append(shape)
    if count:
        work.pod_sets.append(shape.as_pod_set(name, count))


def read_stateful_set(part: Part) -> None:
    """Read a StatefulSet: all replicas are one gang; none of them is no workload."""
    work = begin(part)
    spec = work.fields.child("spec", required=True)
    replicas = spec.integer("replicas", 1, maximum=MOST_PODS) or 0
    _pods(work, spec.child("template", required=True), "main", replicas)
    spec.accept("selector", "serviceName", "revisionHistoryLimit", "minReadySeconds", "ordinals")
    spec.accept("updateStrategy", "volumeClaimTemplates", "persistentVolumeClaimRetentionPolicy")
    spec.not_honoured("podManagementPolicy")
    spec.close()
    work.fields.close()
    if replicas:
        part.specs.append(work.spec())


# ---- AppWrapper --------------------------------------------------------------------------------
def read_app_wrapper(part: Part) -> None:
    """Read an AppWrapper: the pod sets that its components declare, ``<name>-<number>``.

    A component that declares none has its pods where Jobs, Deployments and StatefulSets have them.
    """
    work = begin(part)
    spec = work.fields.child("spec", required=True)
    for row in spec.children("components", required=True):
        _component(work, row)
    spec.accept("suspend")
    spec.not_honoured("managedBy")
    spec.close()
    work.fields.close()
    part.specs.append(work.spec())


def _component(work: Work, row: Fields) -> None:
    wrapped = row.child(TEMPLATE, required=True)
    declared = row.children("podSets")
    for pods in declared:
        replicas = pods.integer("replicas", 1, maximum=MOST_PODS) or 0
        _declared(work, row, pods, pods.text("path", required=True), replicas)
        pods.accept("annotations")
        pods.close()
    if not declared:
        inner = wrapped.child("spec")
        replicas = inner.integer("replicas", inner.integer("parallelism", 1)) or 0
        _declared(work, row, row, USUAL_PATH, replicas)
    row.accept("podSetInfos", "annotations", "podSets", TEMPLATE)
    row.close()


def _declared(work: Work, row: Fields, said: Fields, path: str, replicas: int) -> None:
    """Read the pod template at a dotted path of the component."""
    name = f"{work.part.document.name}-{len(work.pod_sets)}"
    at = row
    for step in path.split("."):
        at = at.child(step)
    if at.body:
        _pods(work, at, name, replicas)
    else:
        said.report("REQUIRED", "podSets" if said is row else "path")


READERS: dict[tuple[str, str], Callable[[Part], None]] = {
    ("jobset.x-k8s.io", "JobSet"): read_job_set,
    ("leaderworkerset.x-k8s.io", "LeaderWorkerSet"): read_leader_worker_set,
    ("apps", "StatefulSet"): read_stateful_set,
    ("workload.codeflare.dev", "AppWrapper"): read_app_wrapper,
}
