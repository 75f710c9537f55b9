"""Kueue's kinds to specs, in the spellings of v1alpha1, v1beta1 and v1beta2.

A manifest keeps Kueue's defaults (``decisions.md`` 4). Every field is read, carried with the
warning FIELD_NOT_HONOURED, or reported as UNKNOWN_FIELD. What Kueue has no field for stands in
annotations under ``gpuplatform.io/``.
"""

from collections.abc import Mapping
from typing import Any

from gpuplatform.common.fields import Fields
from gpuplatform.common.manifests import Document, Reading
from queues.choices import (
    AdmissionOrder,
    BorrowWithinCohort,
    Fairness,
    FlavorPreference,
    FlavorSearch,
    PlacementPolicy,
    QueueingStrategy,
    QuotaSource,
    ReclaimTo,
    ReclaimWithinCohort,
    StopPolicy,
    Undeclared,
    WithinClusterQueue,
)
from queues.manifests.reading import (
    carried_note,
    carry,
    fair_weight,
    flag_note,
    mapping_or_none,
    note,
    open_document,
    owner,
    renamed,
    seconds_note,
)
from queues.rules.words import INT32_MIN
from queues.specs import (
    ClusterQueueSpec,
    CohortSpec,
    FlavorQuotasSpec,
    FlavorSpec,
    FungibilitySpec,
    LocalQueueSpec,
    PreemptionSpec,
    PriorityClassSpec,
    QuotaSpec,
    ResourceGroupSpec,
    TaintSpec,
    TolerationSpec,
    TopologySpec,
)

GROUP = "kueue.x-k8s.io"
EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
# What v1beta1 calls MayStopSearch.
OLD_SEARCH = {"Borrow": "MayStopSearch", "Preempt": "MayStopSearch"}
# Kueue's spelling of the order among local queues.
ORDERS = {
    "NoAdmissionFairSharing": AdmissionOrder.PRIORITY.value,
    "UsageBasedAdmissionFairSharing": AdmissionOrder.USAGE.value,
}
FAIRNESS = "gpuplatform.io/fairness"
RECLAIM_TO = "gpuplatform.io/reclaim-to"
MINIMUM_RUNTIME = "gpuplatform.io/minimum-runtime-seconds"
YIELDS_TO_OWN = "gpuplatform.io/minimum-runtime-yields-to-own"
PRIORITY_FIRST = "gpuplatform.io/priority-first"
PLACEMENT_POLICY = "gpuplatform.io/placement-policy"
PLAIN, STRATEGY = "admissionChecks", "admissionChecksStrategy"
QUOTA_SOURCE = "gpuplatform.io/quota-source"
RECLAIMABLE = "gpuplatform.io/reclaimable"
OTHER_FIELDS = "gpuplatform.io/volcano-fields"  # JSON: what a Volcano Queue said, kept for it
# What is kept as the manifest has it: what Kueue would act on and we do not, and names of checks.
CARRIED = (PLAIN, STRATEGY, "concurrentAdmissionPolicy")
VOLCANO_CARRIED = ("priority", "dequeueStrategy", "affinity", "type", "extendClusters")


# ---- kinds of nodes --------------------------------------------------------------------------
def read_flavor(document: Document) -> Reading:
    """Read a ResourceFlavor."""
    reading = Reading()
    fields = open_document(document, reading)
    spec = fields.child("spec")
    reading.specs.append(
        FlavorSpec(
            name=document.name,
            node_labels=spec.labels("nodeLabels"),
            node_taints=tuple(_taint(row) for row in spec.children("nodeTaints")),
            tolerations=tuple(_toleration(row) for row in spec.children("tolerations")),
            topology=spec.text("topologyName"),
            policy=note(fields).choice(
                PLACEMENT_POLICY, PlacementPolicy.values, PlacementPolicy.FRAGMENTATION
            ),
        )
    )
    spec.close()
    fields.close()
    return reading


def _taint(row: Fields) -> TaintSpec:
    row.accept("timeAdded")
    taint = TaintSpec(
        key=row.text("key", required=True),
        value=row.text("value"),
        effect=row.choice("effect", EFFECTS, "NoSchedule"),
    )
    row.close()
    return taint


def _toleration(row: Fields) -> TolerationSpec:
    toleration = TolerationSpec(
        key=row.text("key"),
        operator=row.choice("operator", ("Equal", "Exists"), "Equal"),
        value=row.text("value"),
        effect=row.choice("effect", ("", *EFFECTS), ""),
        seconds=row.integer("tolerationSeconds"),
    )
    row.close()
    return toleration


def read_topology(document: Document) -> Reading:
    """Read a Topology."""
    reading = Reading()
    fields = open_document(document, reading)
    spec = fields.child("spec", required=True)
    levels = []
    for row in spec.children("levels", required=True):
        levels.append(row.text("nodeLabel", required=True))
        row.close()
    spec.close()
    fields.close()
    reading.specs.append(TopologySpec(document.name, tuple(levels)))
    return reading


# ---- quotas ----------------------------------------------------------------------------------
def _groups(spec: Fields) -> tuple[ResourceGroupSpec, ...]:
    return tuple(_group(row) for row in spec.children("resourceGroups"))


def _group(row: Fields) -> ResourceGroupSpec:
    resources = tuple(row.texts("coveredResources"))
    flavors = tuple(_flavor_quotas(flavor) for flavor in row.children("flavors"))
    row.close()
    return ResourceGroupSpec(resources, flavors)


def _flavor_quotas(row: Fields) -> FlavorQuotasSpec:
    name = row.text("name", required=True)
    quotas = tuple(_quota(cell) for cell in row.children("resources"))
    row.close()
    return FlavorQuotasSpec(name, quotas)


def _quota(row: Fields) -> QuotaSpec:
    resource = row.text("name", required=True)
    quota = QuotaSpec(
        resource=resource,
        nominal=row.quantity("nominalQuota", resource, required=True) or 0,
        borrowing_limit=row.quantity("borrowingLimit", resource),
        lending_limit=row.quantity("lendingLimit", resource),
    )
    row.close()
    return quota


def read_cohort(document: Document) -> Reading:
    """Read a Cohort; v1alpha1 calls ``parentName`` ``parent``."""
    reading = Reading()
    fields = open_document(document, reading)
    spec = fields.child("spec")
    names = ("parent", "parentName") if _version(document) == "v1alpha1" else _PARENT
    reading.specs.append(
        CohortSpec(
            name=document.name,
            parent=renamed(spec, *names),
            groups=_groups(spec),
            fair_weight=fair_weight(spec),
            fairness=note(fields).choice(FAIRNESS, Fairness.values, Fairness.NONE),
            reclaim_to=note(fields).choice(RECLAIM_TO, ReclaimTo.values, ReclaimTo.QUOTA),
            quota_source=note(fields).choice(
                QUOTA_SOURCE, QuotaSource.values, QuotaSource.DECLARED
            ),
        )
    )
    spec.close()
    fields.close()
    return reading


_PARENT = ("parentName", "parent")


def read_cluster_queue(document: Document) -> Reading:
    """Read a ClusterQueue; v1beta1 says ``cohort``, v1beta2 ``cohortName``."""
    reading = Reading()
    fields = open_document(document, reading)
    spec = fields.child("spec", required=True)
    beta1 = _version(document) in {"v1alpha1", "v1beta1"}
    names = ("cohort", "cohortName") if beta1 else ("cohortName", "cohort")
    reading.specs.append(
        ClusterQueueSpec(
            name=document.name,
            groups=_groups(spec),
            team=owner(fields),
            cohort=renamed(spec, *names),
            queueing_strategy=spec.choice(
                "queueingStrategy", QueueingStrategy.values, QueueingStrategy.BEST_EFFORT_FIFO
            ),
            stop_policy=spec.choice("stopPolicy", StopPolicy.values, StopPolicy.NONE),
            fair_weight=fair_weight(spec),
            namespace_selector=mapping_or_none(spec, "namespaceSelector"),
            preemption=_preemption(spec.child("preemption")),
            reclaimable=flag_note(fields, RECLAIMABLE, default=True),
            undeclared=spec.choice("quotaCheckStrategy", Undeclared.values, Undeclared.BLOCK),
            fungibility=_fungibility(spec.child("flavorFungibility")),
            minimum_runtime_s=seconds_note(fields, MINIMUM_RUNTIME),
            yields_to_own=flag_note(fields, YIELDS_TO_OWN),
            admission_order=_order(spec.child("admissionScope")),
            priority_first=flag_note(fields, PRIORITY_FIRST),
            carried=_carried(spec) | carried_note(fields, OTHER_FIELDS, VOLCANO_CARRIED),
        )
    )
    spec.close()
    fields.close()
    return reading


def _preemption(row: Fields) -> PreemptionSpec:
    borrow = row.child("borrowWithinCohort")
    never = WithinClusterQueue.NEVER.value
    preemption = PreemptionSpec(
        within_cluster_queue=row.choice("withinClusterQueue", WithinClusterQueue.values, never),
        reclaim_within_cohort=row.choice("reclaimWithinCohort", ReclaimWithinCohort.values, never),
        borrow_within_cohort=borrow.choice("policy", BorrowWithinCohort.values, never),
        max_priority_threshold=borrow.integer("maxPriorityThreshold", minimum=INT32_MIN),
    )
    borrow.close()
    row.close()
    return preemption


def _carried(spec: Fields) -> dict[str, Any]:
    """Keep what Kueue would act on and we do not, each with its warning; and names of checks.

    The checks themselves are objects of another room, which takes the names from here.
    """
    return {**carry(spec, "concurrentAdmissionPolicy"), **_checks(spec)}


def _checks(spec: Fields) -> dict[str, Any]:
    """Return the admission checks as the manifest names them, if their shape is right."""
    plain, strategy = spec.texts(PLAIN), spec.child(STRATEGY)
    rules = []
    for row in strategy.children(PLAIN):
        name = row.text("name", required=True)
        if flavors := row.texts("onFlavors"):
            row.report("CHECK_FOR_ALL_FLAVORS", "onFlavors", check=name[:64])
        rules.append({"name": name} | ({"onFlavors": list(flavors)} if flavors else {}))
        row.close()
    strategy.close()
    found: dict[str, Any] = {PLAIN: list(plain)} if plain else {}
    return found | ({STRATEGY: {PLAIN: rules}} if rules else {})


def check_names(carried: Mapping[str, Any]) -> frozenset[str]:
    """Return the admission checks that a queue's manifest named (``ClusterQueueSpec.carried``)."""
    rules = carried.get(STRATEGY, {}).get(PLAIN, ())
    return frozenset([*carried.get(PLAIN, ()), *(rule["name"] for rule in rules)])


def _fungibility(row: Fields) -> FungibilitySpec:
    usual = FungibilitySpec()
    spec = FungibilitySpec(
        _search(row, "whenCanBorrow", "Borrow", usual.when_can_borrow),
        _search(row, "whenCanPreempt", "Preempt", usual.when_can_preempt),
        row.choice("preference", FlavorPreference.values, usual.preference),
    )
    row.close()
    return spec


def _search(row: Fields, key: str, old: str, usual: str) -> str:
    said = row.choice(key, (*FlavorSearch.values, old), usual)
    return OLD_SEARCH.get(said, said)


def _order(row: Fields) -> str:
    """Return in which order the queue looks at its work (``admission.md`` K40)."""
    said = row.choice("admissionMode", ORDERS, "NoAdmissionFairSharing")
    row.close()
    return ORDERS[said]


# ---- doors and priorities --------------------------------------------------------------------
def read_local_queue(document: Document) -> Reading:
    """Read a LocalQueue."""
    reading = Reading()
    fields = open_document(document, reading)
    spec = fields.child("spec", required=True)
    reading.specs.append(
        LocalQueueSpec(
            namespace=document.namespace,
            name=document.name,
            cluster_queue=spec.text("clusterQueue", required=True),
            stop_policy=spec.choice("stopPolicy", StopPolicy.values, StopPolicy.NONE),
            fair_weight=fair_weight(spec),
        )
    )
    spec.close()
    fields.close()
    return reading


def read_priority_class(document: Document) -> Reading:
    """Read a WorkloadPriorityClass; its fields stand beside ``metadata``, not in ``spec``."""
    reading = Reading()
    fields = open_document(document, reading)
    value = fields.integer("value", minimum=INT32_MIN, required=True)
    reading.specs.append(
        PriorityClassSpec(
            "workload", document.name, value or 0, description=fields.text("description")
        )
    )
    fields.close()
    return reading


def _version(document: Document) -> str:
    return document.api_version.rpartition("/")[2]


READERS = {
    "ClusterQueue": read_cluster_queue,
    "Cohort": read_cohort,
    "LocalQueue": read_local_queue,
    "ResourceFlavor": read_flavor,
    "Topology": read_topology,
    "WorkloadPriorityClass": read_priority_class,
}
