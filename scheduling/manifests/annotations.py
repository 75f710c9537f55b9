"""Labels and annotations of Kueue, Volcano and ours that say something about scheduling."""

import json
from collections.abc import Mapping

from gpuplatform.common.fields import Fields
from gpuplatform.common.quantities import parse_quantity
from scheduling.devices import MIB
from scheduling.engine.terms import DeviceLocality
from scheduling.specs import ON_NODE_LOSS, SliceSpec, TopologySpec

KUEUE = "kueue.x-k8s.io"
QUEUE_NAME = f"{KUEUE}/queue-name"
PRIORITY_CLASS = f"{KUEUE}/priority-class"
MAX_EXECUTION = f"{KUEUE}/max-exec-time-seconds"
MIN_PARALLELISM = f"{KUEUE}/job-min-parallelism"
ELASTIC = f"{KUEUE}/elastic-job"
REQUIRED = f"{KUEUE}/podset-required-topology"
PREFERRED = f"{KUEUE}/podset-preferred-topology"
UNCONSTRAINED = f"{KUEUE}/podset-unconstrained-topology"
SLICE_LEVEL = f"{KUEUE}/podset-slice-required-topology"
SLICE_SIZE = f"{KUEUE}/podset-slice-size"
SLICE_LAYERS = f"{KUEUE}/podset-slice-required-topology-constraints"
GATES = f"{KUEUE}/admission-gated-by"
GROUP = f"{KUEUE}/podset-group-name"
PREEMPTABLE = "volcano.sh/preemptable"
VOLCANO_QUEUE = "scheduling.volcano.sh/queue-name"
COSCHEDULED = "scheduling.x-k8s.io/pod-group"  # a label
GROUP_NAME = f"{KUEUE}/pod-group-name"  # a label, of pods
GROUP_TOTAL = f"{KUEUE}/pod-group-total-count"
GROUP_FAST = f"{KUEUE}/pod-group-fast-admission"
GROUP_RETRIES = f"{KUEUE}/retriable-in-group"
GROUP_NAMES = ("scheduling.k8s.io/group-name", "scheduling.volcano.sh/group-name")
DURATION = "gpuplatform.io/expected-duration-seconds"
CHECKPOINT = "gpuplatform.io/checkpoint-interval-seconds"
NODE_LOSS = "gpuplatform.io/on-node-loss"
LOCALITY = "gpuplatform.io/device-locality"
DEVICE_MEMORY = "gpuplatform.io/gpu-memory"
LOCALITIES = tuple(locality.value for locality in DeviceLocality)

LONGEST_LAYERS = 4096  # characters
SCHEDULING_NAMESPACES = frozenset(
    ("scheduling.volcano.sh", "scheduling.k8s.io", "scheduling.x-k8s.io", "volcano.sh", KUEUE)
)
READ = frozenset(
    (
        QUEUE_NAME,
        PRIORITY_CLASS,
        MAX_EXECUTION,
        MIN_PARALLELISM,
        ELASTIC,
        GATES,
        REQUIRED,
        PREFERRED,
        UNCONSTRAINED,
        SLICE_LEVEL,
        SLICE_SIZE,
        SLICE_LAYERS,
        GROUP,
        PREEMPTABLE,
        VOLCANO_QUEUE,
        COSCHEDULED,
        *GROUP_NAMES,
        GROUP_NAME,
        GROUP_TOTAL,
        GROUP_FAST,
        GROUP_RETRIES,
    )
)
# Known words of Kueue and Volcano that we keep and do not act on.
NOT_HONOURED = frozenset(
    (
        f"{KUEUE}/job-completions-equal-parallelism",
        f"{KUEUE}/prebuilt-workload-name",
        f"{KUEUE}/priority-boost",
        f"{KUEUE}/pod-group-serving",
        "volcano.sh/revocable-zone",
    )
)


# What controllers write for themselves; a dump of a cluster shows it.
BOOKKEEPING = frozenset(
    (
        *(f"{KUEUE}/{name}" for name in ("managed", "job-uid", "podset", "workload", "role-hash")),
        *(f"{KUEUE}/{name}" for name in ("cluster-queue-name", "local-queue-name")),
        *(f"{KUEUE}/{name}" for name in ("pod-group-pod-index", "pod-group-pod-index-label")),
        *(f"{KUEUE}/{name}" for name in ("pod-suspending-parent", "safe-to-forcefully-delete")),
        *(f"volcano.sh/{name}" for name in ("job-name", "job-namespace", "job-type")),
        *(f"volcano.sh/{name}" for name in ("job-version", "queue-name", "task-index")),
        *("volcano.sh/task-spec", "volcano.sh/template-uid"),
    )
)


def check_keys(rows: Fields) -> None:
    """Warn about annotations or labels in scheduling namespaces that nothing reads."""
    for key in rows.body:
        namespace, slash, _name = key.rpartition("/")
        if key in NOT_HONOURED:
            rows.report("FIELD_NOT_HONOURED", key, field=key)
        elif key in READ or key in BOOKKEEPING:
            continue
        elif slash and namespace in SCHEDULING_NAMESPACES:
            rows.report("UNKNOWN_ANNOTATION", key, annotation=key)


def group_of(annotations: Mapping[str, str]) -> str:
    """Return the PodGroup that a pod joins, or ""."""
    return next((annotations[name] for name in GROUP_NAMES if name in annotations), "")


def seconds(rows: Fields, key: str) -> int | None:
    """Return a positive number of seconds written as text or number."""
    value = rows.body.get(key)
    if value is None:
        return None
    if str(value).isascii() and str(value).isdecimal() and 0 < len(str(value)) <= len("999999999"):
        return int(value) or None
    rows.report("BAD_QUANTITY", key, value=str(value)[:64])
    return None


def gates_of(rows: Fields) -> tuple[str, ...]:
    """Return the gates that keep work out until each is opened (K51): names with commas."""
    text = str(rows.body.get(GATES) or "")
    return tuple(dict.fromkeys(name.strip() for name in text.split(",") if name.strip()))


def on_node_loss_of(rows: Fields) -> str:
    """Return whether pods that go with a node are replaced, or the whole gang waits again."""
    text = str(rows.body.get(NODE_LOSS) or ON_NODE_LOSS[0])
    if text in ON_NODE_LOSS:
        return text
    rows.report("BAD_VALUE", NODE_LOSS, value=text[:64], allowed=", ".join(ON_NODE_LOSS))
    return ON_NODE_LOSS[0]


def topology_of(rows: Fields) -> TopologySpec | None:
    """Return the topology request among a pod template's annotations (``admission.md`` K61)."""
    asked = [key for key in (REQUIRED, PREFERRED, UNCONSTRAINED) if key in rows.body]
    if not asked:
        return None
    if len(asked) > 1:
        rows.report("BAD_VALUE", asked[1], value=asked[1], allowed=asked[0])
    if asked[0] == UNCONSTRAINED:
        return TopologySpec("unconstrained")
    mode = "required" if asked[0] == REQUIRED else "preferred"
    return TopologySpec(mode, str(rows.body[asked[0]]))


def locality_of(rows: Fields) -> str:
    """Return how near the devices of one pod must be, among its annotations."""
    text = str(rows.body.get(LOCALITY) or DeviceLocality.ANY.value)
    if text in LOCALITIES:
        return text
    rows.report("BAD_VALUE", LOCALITY, value=text[:64], allowed=", ".join(LOCALITIES))
    return DeviceLocality.ANY.value


def device_memory_of(rows: Fields) -> int:
    """Return the MiB that each whole GPU of a pod must have for it; 0: it does not say."""
    text = rows.body.get(DEVICE_MEMORY)
    if text is None:
        return 0
    try:
        return -(-parse_quantity("memory", text) // MIB)
    except ValueError:
        rows.report("BAD_QUANTITY", DEVICE_MEMORY, value=str(text)[:64])
        return 0


def slices_of(rows: Fields) -> tuple[SliceSpec, ...]:
    """Return the slices among a pod template's annotations (K62), outer ones first.

    One is written as a level and a size, both or neither; several as a list in JSON.
    """
    level, size = rows.body.get(SLICE_LEVEL), seconds(rows, SLICE_SIZE)
    if SLICE_LAYERS in rows.body:
        if level is not None or size is not None:
            rows.report("BAD_VALUE", SLICE_LAYERS, value=SLICE_LAYERS, allowed=SLICE_LEVEL)
        return _layers(rows)
    if level is None and size is None:
        return ()
    if level is None or size is None:
        rows.report("REQUIRED", SLICE_LEVEL if level is None else SLICE_SIZE)
        return ()
    return (SliceSpec(str(level), size),)


def _layers(rows: Fields) -> tuple[SliceSpec, ...]:
    text = str(rows.body[SLICE_LAYERS])
    try:
        found = _parsed(text)
    except (ValueError, TypeError, KeyError, RecursionError):
        found = ()
    if not found:
        allowed = '[{"topology": "...", "size": 8}, ...]'
        rows.report("BAD_VALUE", SLICE_LAYERS, value=text[:64], allowed=allowed)
    return found


def _parsed(text: str) -> tuple[SliceSpec, ...]:
    layers = json.loads(text) if len(text) <= LONGEST_LAYERS else []
    return tuple(SliceSpec(str(one["topology"]), int(str(one["size"])[:9])) for one in layers)
