"""Kinds of Kubeflow: its v1 jobs, MPIJob and TrainJob (``admission.md`` 4.2)."""

from collections.abc import Callable

from gpuplatform.common.fields import Fields
from scheduling.manifests.core import MOST_PODS
from scheduling.manifests.part import Part
from scheduling.manifests.pods import read_template
from scheduling.manifests.work import Work, begin
from scheduling.specs import PodSetSpec

# Of each kind: the field that holds its replica types, and the types in their order.
TYPES = {
    "PyTorchJob": ("pytorchReplicaSpecs", ("Master", "Worker")),
    "TFJob": ("tfReplicaSpecs", ("Chief", "Master", "PS", "Worker", "Evaluator")),
    "XGBoostJob": ("xgbReplicaSpecs", ("Master", "Worker")),
    "PaddleJob": ("paddleReplicaSpecs", ("Master", "Worker")),
    "JAXJob": ("jaxReplicaSpecs", ("Worker",)),
    "MPIJob": ("mpiReplicaSpecs", ("Launcher", "Worker")),
}
TRAINER = "node"  # what Kubeflow's runtimes call the job that trains


def read_training_job(part: Part) -> None:
    """Read a job of Kubeflow: one pod set per replica type, in the order of the types."""
    work = begin(part)
    field, names = TYPES[part.document.kind]
    spec = work.fields.child("spec", required=True)
    types = spec.child(field, required=True)
    for name in names:
        if name in types:
            _replicas(work, types.child(name), name.lower())
    types.close()
    _run_policy(work, spec.child("runPolicy"))
    spec.accept("nprocPerNode", "slotsPerWorker", "sshAuthMountPath", "mpiImplementation")
    spec.accept("launcherCreationPolicy", "successPolicy", "enableDynamicWorker")
    spec.not_honoured("elasticPolicy", "runLauncherAsWorker")
    spec.close()
    work.fields.close()
    part.specs.append(work.spec())


def _replicas(work: Work, row: Fields, name: str) -> None:
    count = row.integer("replicas", 1, maximum=MOST_PODS)
    shape = read_template(row.child("template", required=True))
    row.accept("restartPolicy")
    row.close()
    work.shapes.append(shape)
    if count:
        work.pod_sets.append(shape.as_pod_set(name, count))


def _run_policy(work: Work, policy: Fields) -> None:
    scheduling = policy.child("schedulingPolicy")
    if work.part.document.kind == "MPIJob":
        scheduling.not_honoured("minAvailable")  # its launcher waits for every worker
    else:
        work.min_member = scheduling.integer("minAvailable")
    work.own_priority_class = scheduling.text("priorityClass")
    work.volcano_queue = scheduling.text("queue")
    scheduling.not_honoured("minResources", "scheduleTimeoutSeconds")
    scheduling.close()
    work.max_retries = policy.integer("backoffLimit")
    work.max_execution_time_s = policy.integer("activeDeadlineSeconds")
    policy.accept("cleanPodPolicy", "ttlSecondsAfterFinished", "suspend")
    policy.not_honoured("managedBy")
    policy.close()


def read_train_job(part: Part) -> None:
    """Read a TrainJob: its nodes, each with what the trainer asks for.

    The runtime that it names stands in another cluster's tables, so what a node asks for must be
    said here; what else the runtime would add is not known, and a warning says so.
    """
    work = begin(part)
    spec = work.fields.child("spec", required=True)
    trainer = spec.child("trainer", required=True)
    count = trainer.integer("numNodes", 1, minimum=1, maximum=MOST_PODS) or 1
    resources = trainer.child("resourcesPerNode", required=True)
    requests = {**resources.quantities("limits"), **resources.quantities("requests")}
    resources.close()
    trainer.accept("image", "command", "args", "env", "numProcPerNode")
    trainer.close()
    work.pod_sets.append(PodSetSpec(TRAINER, count, {r: n for r, n in requests.items() if n}))
    spec.accept("suspend", "labels", "annotations")
    spec.not_honoured("runtimeRef", "initializer", "podTemplateOverrides", "runtimePatches")
    spec.not_honoured("managedBy", "podSpecOverrides")
    spec.close()
    work.fields.close()
    part.specs.append(work.spec())


READERS: dict[tuple[str, str], Callable[[Part], None]] = {
    **{("kubeflow.org", kind): read_training_job for kind in TYPES},
    ("trainer.kubeflow.org", "TrainJob"): read_train_job,
}
