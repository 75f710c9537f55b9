"""One document of each kind of work that people submit to Kueue, as its project shows it."""

from typing import Any

GPU = "nvidia.com/gpu"
QUEUE = {"kueue.x-k8s.io/queue-name": "lq-datos"}


def template(gpus: int = 1, **spec: Any) -> dict[str, Any]:
    containers = [{"name": "c", "image": "x", "resources": {"limits": {GPU: gpus}}}]
    return {"spec": {"containers": containers if gpus else [{"name": "c"}], **spec}}


def document(kind: str, api: str, spec: dict[str, Any], **meta: Any) -> dict[str, Any]:
    metadata = {"name": f"a-{kind.lower()}", "namespace": "ns-datos", "labels": QUEUE, **meta}
    return {"apiVersion": api, "kind": kind, "metadata": metadata, "spec": spec}


def replicas(**counts: int) -> dict[str, Any]:
    return {
        role: {"replicas": n, "restartPolicy": "OnFailure", "template": template()}
        for role, n in counts.items()
    }


JOB = {"parallelism": 2, "completions": 2, "template": template()}
CLUSTER = {
    "rayVersion": "2.46.0",
    "headGroupSpec": {"rayStartParams": {"dashboard-host": "0.0.0.0"}, "template": template(0)},
    "workerGroupSpecs": [
        {
            "groupName": "small",
            "replicas": 2,
            "minReplicas": 2,
            "maxReplicas": 5,
            "rayStartParams": {},
            "template": template(),
        }
    ],
}
TRAINING = "kubeflow.org/v1"
KINDS: dict[str, tuple[dict[str, Any], dict[str, int]]] = {
    "JobSet": (
        document(
            "JobSet",
            "jobset.x-k8s.io/v1alpha2",
            {
                "failurePolicy": {"maxRestarts": 2},
                "network": {"enableDNSHostnames": True},
                "replicatedJobs": [
                    {"name": "leader", "template": {"spec": {"template": template(0)}}},
                    {"name": "workers", "replicas": 2, "template": {"spec": JOB}},
                ],
            },
        ),
        {"leader": 1, "workers": 4},
    ),
    "RayCluster": (document("RayCluster", "ray.io/v1", CLUSTER), {"head": 1, "small": 2}),
    "RayService": (
        document("RayService", "ray.io/v1", {"serveConfigV2": "", "rayClusterConfig": CLUSTER}),
        {"head": 1, "small": 2},
    ),
    "RayJob": (
        document("RayJob", "ray.io/v1", {"entrypoint": "python x.py", "rayClusterSpec": CLUSTER}),
        {"head": 1, "small": 2, "submitter": 1},
    ),
    "PyTorchJob": (
        document("PyTorchJob", TRAINING, {"pytorchReplicaSpecs": replicas(Worker=3, Master=1)}),
        {"master": 1, "worker": 3},
    ),
    "TFJob": (
        document("TFJob", TRAINING, {"tfReplicaSpecs": replicas(Worker=2, PS=1, Chief=1)}),
        {"chief": 1, "ps": 1, "worker": 2},
    ),
    "XGBoostJob": (
        document("XGBoostJob", TRAINING, {"xgbReplicaSpecs": replicas(Master=1, Worker=2)}),
        {"master": 1, "worker": 2},
    ),
    "PaddleJob": (
        document("PaddleJob", TRAINING, {"paddleReplicaSpecs": replicas(Worker=2)}),
        {"worker": 2},
    ),
    "JAXJob": (
        document("JAXJob", TRAINING, {"jaxReplicaSpecs": replicas(Worker=2)}),
        {"worker": 2},
    ),
    "MPIJob": (
        document(
            "MPIJob",
            "kubeflow.org/v2beta1",
            {
                "slotsPerWorker": 1,
                "runPolicy": {"cleanPodPolicy": "Running"},
                "mpiReplicaSpecs": {
                    "Launcher": {"replicas": 1, "template": template(0)},
                    **replicas(Worker=2),
                },
            },
        ),
        {"launcher": 1, "worker": 2},
    ),
    "TrainJob": (
        document(
            "TrainJob",
            "trainer.kubeflow.org/v1alpha1",
            {
                "runtimeRef": {"name": "torch-distributed"},
                "trainer": {"numNodes": 2, "resourcesPerNode": {"requests": {GPU: 1}}},
            },
        ),
        {"node": 2},
    ),
    "StatefulSet": (
        document(
            "StatefulSet",
            "apps/v1",
            {"replicas": 3, "serviceName": "s", "selector": {}, "template": template()},
        ),
        {"main": 3},
    ),
    "AppWrapper": (
        document(
            "AppWrapper",
            "workload.codeflare.dev/v1beta2",
            {
                "components": [
                    {"template": {"apiVersion": "batch/v1", "kind": "Job", "spec": JOB}},
                    {
                        "template": {"kind": "PyTorchJob", "spec": {"Master": {"t": template()}}},
                        "podSets": [{"replicas": 1, "path": "template.spec.Master.t"}],
                    },
                ]
            },
        ),
        {"a-appwrapper-0": 2, "a-appwrapper-1": 1},
    ),
    "SparkApplication": (
        document(
            "SparkApplication",
            "sparkoperator.k8s.io/v1beta2",
            {
                "type": "Scala",
                "mode": "cluster",
                "image": "spark:3.5.5",
                "driver": {"cores": 1, "memory": "512m", "serviceAccount": "spark"},
                "executor": {
                    "instances": 2,
                    "cores": 2,
                    "memory": "8g",
                    "gpu": {"name": GPU, "quantity": 1},
                },
            },
        ),
        {"driver": 1, "executor": 2},
    ),
    "Job": (document("Job", "batch/v1", JOB), {"main": 2}),
    "Pod": (document("Pod", "v1", template()["spec"]), {"main": 1}),
}
LEADERS = document(
    "LeaderWorkerSet",
    "leaderworkerset.x-k8s.io/v1",
    {
        "replicas": 2,
        "leaderWorkerTemplate": {
            "size": 4,
            "leaderTemplate": template(0),
            "workerTemplate": template(),
        },
    },
)
