"""SparkApplication of Spark's operator: one driver and its executors (``admission.md`` 4.2).

What a pod asks for is built as Spark builds it: cores, memory with its overhead, GPUs.
"""

import re
from decimal import ROUND_CEILING, Decimal

from gpuplatform.common.fields import KEPT, Fields
from scheduling.manifests.core import MOST_PODS
from scheduling.manifests.part import Part
from scheduling.manifests.pods import read_tolerations
from scheduling.manifests.work import Work, begin
from scheduling.specs import PodSetSpec

MIB = 2**20
LEAST_OVERHEAD = 384 * MIB
JVM, OTHERS = Decimal("0.1"), Decimal("0.4")  # of the memory, beside it
SCALES = {"": 1, "b": 1, "k": 2**10, "m": MIB, "g": 2**30, "t": 2**40}
SPEC_FIELDS = (
    "mode image imagePullPolicy imagePullSecrets mainClass mainApplicationFile arguments "
    "sparkVersion sparkConf sparkConfigMap hadoopConf hadoopConfigMap volumes deps pythonVersion "
    "monitoring suspend batchScheduler proxyUser restartPolicy sparkUIOptions timeToLiveSeconds"
)
ROLE_FIELDS = (
    "coreLimit javaOptions labels annotations env envFrom serviceAccount image volumeMounts "
    "configMaps secrets securityContext ports instances hostAliases serviceAnnotations "
    "terminationGracePeriodSeconds deleteOnTermination"
)
_MEMORY = re.compile(r"(\d{1,12})([bkmgt]?)i?b?", re.ASCII | re.IGNORECASE)


def read_spark_application(part: Part) -> None:
    """Read a SparkApplication: ``driver`` and ``executor``."""
    work = begin(part)
    spec = work.fields.child("spec", required=True)
    is_jvm = spec.text("type", "Java") in ("Java", "Scala")
    text = spec.raw("memoryOverheadFactor")
    factor = Decimal(str(text)) if _is_decimal(text) else (JVM if is_jvm else OTHERS)
    driver, executor = spec.child("driver", required=True), spec.child("executor", required=True)
    _role(work, driver, "driver", 1, factor)
    instances = executor.integer("instances", 1, maximum=MOST_PODS) or 0
    _role(work, executor, "executor", instances, factor)
    batch = spec.child("batchSchedulerOptions")
    work.volcano_queue = batch.text("queue")
    work.own_priority_class = batch.text("priorityClassName")
    batch.not_honoured("resources")
    batch.close()
    spec.accept(*SPEC_FIELDS.split())
    spec.not_honoured("dynamicAllocation", "nodeSelector", "failureRetries")
    spec.close()
    work.fields.close()
    part.specs.append(work.spec())


def _is_decimal(value: object) -> bool:
    return bool(re.fullmatch(r"\d(\.\d{1,6})?", str(value), re.ASCII))


def _role(work: Work, row: Fields, name: str, count: int, factor: Decimal) -> None:
    cpu = row.quantity("coreRequest", "cpu")
    cores = row.integer("cores", 1, minimum=1) or 1
    memory = _memory(row, "memory") or 2**30
    beside = _memory(row, "memoryOverhead")
    usual = max(LEAST_OVERHEAD, int((memory * factor).to_integral_value(ROUND_CEILING)))
    requests = {
        "cpu": cores * 1000 if cpu is None else cpu,
        "memory": memory + (usual if beside is None else beside),
    }
    gpu = row.child("gpu")
    if gpus := gpu.integer("quantity", 0):
        requests[gpu.text("name", "nvidia.com/gpu")] = gpus
    gpu.close()
    selector, tolerations = row.labels("nodeSelector"), read_tolerations(row)
    row.accept(*ROLE_FIELDS.split())
    row.not_honoured("affinity", "sidecars", "initContainers", "template", "schedulerName")
    row.close()
    if count:
        pods = PodSetSpec(name, count, requests, node_selector=selector, tolerations=tolerations)
        work.pod_sets.append(pods)


def _memory(row: Fields, key: str) -> int | None:
    """Return an amount as the JVM writes it: ``512m`` is 512 MiB; bytes."""
    text = row.text(key)
    if not text:
        return None
    match = _MEMORY.fullmatch(text)
    if match is None:
        row.report("BAD_QUANTITY", key, value=text[:KEPT])
        return None
    return int(match[1]) * SCALES[match[2].lower()]


READERS = {("sparkoperator.k8s.io", "SparkApplication"): read_spark_application}
