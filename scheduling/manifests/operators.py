"""Kinds of Ray's operator: RayJob, RayCluster, RayService (``admission.md`` 4.2)."""

from collections.abc import Callable
from dataclasses import replace

from gpuplatform.common.fields import Fields
from scheduling.manifests.core import MOST_PODS
from scheduling.manifests.part import Part
from scheduling.manifests.pods import read_template
from scheduling.manifests.work import Work, begin
from scheduling.specs import PodSetSpec, SubgroupSpec

SUBMITTER = {"cpu": 500, "memory": 200 * 2**20}  # what Ray's operator gives its submitter pod


def read_ray_job(part: Part) -> None:
    """Read a RayJob: a head, the worker groups, and the submitter pod without GPU."""
    work = begin(part)
    spec = work.fields.child("spec", required=True)
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
    _group(work, head, "head", 1)
    scales = cluster.raw("enableInTreeAutoscaling") is True
    for row in cluster.children("workerGroupSpecs"):
        _worker_group(work, row, scales=scales)
    cluster.accept("rayVersion", "headServiceAnnotations", "suspend")
    cluster.not_honoured(
        "enableInTreeAutoscaling", "autoscalerOptions", "gcsFaultToleranceOptions"
    )
    cluster.close()


def _worker_group(work: Work, row: Fields, *, scales: bool) -> None:
    """Read a group of workers; a worker of several hosts is a subgroup.

    ``minReplicas`` of them start together, the others as room allows. More than ``replicas``
    come only where Ray scales by itself: else ``maxReplicas`` is a bound that it never reaches.
    """
    hosts = row.integer("numOfHosts", 1, minimum=1, maximum=MOST_PODS) or 1
    replicas = row.integer("replicas", 1, maximum=MOST_PODS) or 0
    least = row.integer("minReplicas", replicas, maximum=MOST_PODS) or 0
    most = row.integer("maxReplicas", replicas, maximum=2**31 - 1) or 0
    if scales:
        replicas = min(max(replicas, most), MOST_PODS)
    row.accept("rayStartParams", "groupName")
    row.not_honoured("suspend", "idleTimeoutSeconds", "scaleStrategy")
    name = row.text("groupName", "worker")
    _group(work, row, name, replicas * hosts)
    if replicas and least < replicas:
        work.role_minima[name] = least * hosts
        if hosts > 1:
            work.pod_sets[-1] = replace(work.pod_sets[-1], subgroup=SubgroupSpec(hosts, least))


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
    spec.not_honoured("clusterSelector", "deletionStrategy", "managedBy")
    spec.close()


READERS: dict[tuple[str, str], Callable[[Part], None]] = {
    ("ray.io", "RayJob"): read_ray_job,
    ("ray.io", "RayCluster"): read_ray_cluster,
    ("ray.io", "RayService"): read_ray_service,
}
