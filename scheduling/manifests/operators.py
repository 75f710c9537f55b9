"""Kinds of Ray's operator: RayJob, RayCluster, RayService (``admission.md`` 4.2)."""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace

from gpuplatform.common.fields import Fields
from scheduling.manifests.core import MOST_PODS
from scheduling.manifests.part import Part
from scheduling.manifests.pods import read_template, resources_of
from scheduling.manifests.work import Work, begin
from scheduling.specs import PodSetSpec

HEAD = "head"
# What Ray's operator gives the containers and pods that it adds by itself.
SUBMITTER = {"cpu": 500, "memory": 200 * 2**20}
AUTOSCALER = {"cpu": 500, "memory": 512 * 2**20}
CLEANUP = {"cpu": 200, "memory": 256 * 2**20}  # takes the head's place once the cluster is gone
AUTOSCALER_FIELDS = (
    "env envFrom idleTimeoutSeconds image imagePullPolicy securityContext upscalingMode version "
    "volumeMounts"
)


def read_ray_job(part: Part) -> None:
    """Read a RayJob: a head, the worker groups, and the submitter pod without GPU."""
    work = begin(part)
    spec = work.fields.child("spec", required=True)
    if spec.raw("clusterSelector"):
        part.report("CLUSTER_SELECTED", "spec.clusterSelector")
        return
    _cluster(work, spec.child("rayClusterSpec", required=True))
    _submitter(work, spec)
    _job_fields(work, spec)
    work.fields.close()
    part.specs.append(work.spec())


def read_ray_cluster(part: Part) -> None:
    """Read a RayCluster: a head and the worker groups, until somebody ends it."""
    work = begin(part)
    _cluster(work, work.fields.child("spec", required=True))
    work.fields.close()
    part.specs.append(work.spec())


def read_ray_service(part: Part) -> None:
    """Read a RayService: the cluster that serves."""
    work = begin(part)
    spec = work.fields.child("spec", required=True)
    _cluster(work, spec.child("rayClusterConfig", required=True))
    spec.accept("serveConfigV2", "serveService", "excludeHeadPodFromServeSvc")
    spec.accept("serviceUnhealthySecondThreshold", "deploymentUnhealthySecondThreshold")
    spec.not_honoured("upgradeStrategy", "rayClusterDeletionDelaySeconds")
    spec.close()
    work.fields.close()
    part.specs.append(work.spec())


def _cluster(work: Work, cluster: Fields) -> None:
    head = cluster.child("headGroupSpec", required=True)
    head.accept("rayStartParams", "serviceType", "enableIngress", "headService")
    _group(work, head, HEAD, 1)
    _beside_head(work, cluster)
    for row in cluster.children("workerGroupSpecs"):
        _worker_group(work, row)
    cluster.accept("rayVersion", "headServiceAnnotations", "suspend")
    cluster.close()


def _beside_head(work: Work, cluster: Fields) -> None:
    """Count what Ray's operator puts into the head's pod, and say that its scaling is its own."""
    options = cluster.child("autoscalerOptions")
    own = options.child("resources")
    sidecar = resources_of(own) if own.body else AUTOSCALER
    options.accept(*AUTOSCALER_FIELDS.split())
    options.close()
    if cluster.flag("enableInTreeAutoscaling"):
        _change_head(work, lambda head: Counter(head) + Counter(sidecar))
        cluster.report("AUTOSCALER_NOT_FOLLOWED", "enableInTreeAutoscaling")
    if "gcsFaultToleranceOptions" in cluster:
        _change_head(work, lambda head: Counter(head) | Counter(CLEANUP))
    cluster.not_honoured("gcsFaultToleranceOptions")


def _change_head(work: Work, change: Callable[[Mapping[str, int]], Mapping[str, int]]) -> None:
    work.pod_sets = [
        replace(p, requests=dict(sorted(change(p.requests).items()))) if p.name == HEAD else p
        for p in work.pod_sets
    ]


def _worker_group(work: Work, row: Fields) -> None:
    """Read a group of workers: ``replicas`` of them, each of ``numOfHosts`` pods.

    They start together. ``minReplicas`` and ``maxReplicas`` bound Ray's own scaling, not what is
    asked for; another size of elastic work is asked for as a change of it.
    """
    hosts = row.integer("numOfHosts", 1, minimum=1, maximum=MOST_PODS) or 1
    replicas = row.integer("replicas", 1, maximum=MOST_PODS) or 0
    row.accept("rayStartParams", "groupName", "minReplicas", "maxReplicas")
    row.not_honoured("suspend", "idleTimeoutSeconds", "scaleStrategy")
    _group(work, row, row.text("groupName", "worker"), replicas * hosts)


def _group(work: Work, row: Fields, name: str, count: int) -> None:
    shape = read_template(row.child("template", required=True))
    row.close()
    work.shapes.append(shape)
    if count:
        work.pod_sets.append(shape.as_pod_set(name, count))


def _submitter(work: Work, spec: Fields) -> None:
    mode = spec.choice(
        "submissionMode",
        ("K8sJobMode", "HTTPMode", "InteractiveMode", "SidecarMode"),
        "K8sJobMode",
    )
    if mode == "SidecarMode":
        _change_head(work, lambda head: Counter(head) + Counter(SUBMITTER))
    if mode != "K8sJobMode":
        spec.accept("submitterPodTemplate")
        return
    if "submitterPodTemplate" in spec:
        shape = read_template(spec.child("submitterPodTemplate"))
        work.pod_sets.append(shape.as_pod_set("submitter", 1))
    else:
        work.pod_sets.append(PodSetSpec("submitter", 1, SUBMITTER))


def _job_fields(work: Work, spec: Fields) -> None:
    work.max_execution_time_s = spec.integer("activeDeadlineSeconds")
    work.max_retries = spec.integer("backoffLimit")
    spec.accept(
        "entrypoint", "jobId", "metadata", "runtimeEnvYAML", "shutdownAfterJobFinishes", "suspend"
    )
    spec.accept("submitterConfig", "ttlSecondsAfterFinished", "entrypointResources")
    spec.accept("entrypointNumCpus", "entrypointNumGpus")
    spec.not_honoured("deletionStrategy", "managedBy")
    spec.close()


READERS: dict[tuple[str, str], Callable[[Part], None]] = {
    ("ray.io", "RayJob"): read_ray_job,
    ("ray.io", "RayCluster"): read_ray_cluster,
    ("ray.io", "RayService"): read_ray_service,
}
