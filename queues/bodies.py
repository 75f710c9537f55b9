"""The JSON of ``PUT`` to a spec: the whole wanted state, strictly typed, every problem at once.

Shape only; what a value may be is for ``queues.rules`` to say. To change something, everything
that a ``GET`` answers must be in the body: what is left out would silently become a default. To
create, only what makes the promise must be said.
"""

from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any, TypeVar

from django.utils.translation import gettext as _

from gpuplatform.common.diagnostics import Diagnostic
from gpuplatform.common.fields import KEPT, Fields, type_of
from gpuplatform.common.problems import Problem, Rejected
from gpuplatform.common.reasons import ECHOED, sentence
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
from queues.specs import (
    ClusterQueueSpec,
    CohortSpec,
    FlavorQuotasSpec,
    FlavorSpec,
    FungibilitySpec,
    PreemptionSpec,
    QuotaSpec,
    ResourceGroupSpec,
    TaintSpec,
    TolerationSpec,
    TopologySpec,
)

QUEUE_FIELDS = ["queueing_strategy", "stop_policy", "fair_weight", "preemption"]
QUEUE_FIELDS += ["reclaimable", "undeclared", "fungibility", "minimum_runtime_s"]
QUEUE_FIELDS += ["yields_to_own", "admission_order", "priority_first", "carried"]
FUNGIBILITY_FIELDS = ["when_can_borrow", "when_can_preempt", "preference"]
FLAVOR_FIELDS = ["node_taints", "tolerations", "topology", "policy"]
COHORT_FIELDS = ["fair_weight", "fairness", "reclaim_to", "quota_source"]
PREEMPTION_FIELDS = ["within_cluster_queue", "reclaim_within_cohort", "borrow_within_cohort"]
INT32_MIN = -(2**31)
Spec = TypeVar("Spec", ClusterQueueSpec, CohortSpec, FlavorSpec, TopologySpec)


def read_cluster_queue(name: str, body: Any, *, changes: bool) -> ClusterQueueSpec:
    """Return the spec of the cluster queue ``name``; ``changes`` one that is there already.

    Raises:
        Rejected: wrong types, missing or unknown fields, bad amounts; each with its path.
    """

    def read(fields: Fields) -> ClusterQueueSpec:
        _need(fields, "groups", *(QUEUE_FIELDS if changes else ()))
        _need_word(fields, "cohort", "namespace_selector")
        return ClusterQueueSpec(
            name=name,
            team=_text_or_none(fields, "team"),
            cohort=_text_or_none(fields, "cohort"),
            groups=_groups(fields),
            namespace_selector=_selector(fields),
            queueing_strategy=fields.choice(
                "queueing_strategy", QueueingStrategy.values, QueueingStrategy.BEST_EFFORT_FIFO
            ),
            stop_policy=fields.choice("stop_policy", StopPolicy.values, StopPolicy.NONE),
            fair_weight=_weight(fields),
            preemption=_preemption(fields, changes=changes),
            reclaimable=fields.flag("reclaimable", True),
            undeclared=fields.choice("undeclared", Undeclared.values, Undeclared.BLOCK),
            fungibility=_fungibility(fields, changes=changes),
            minimum_runtime_s=fields.integer("minimum_runtime_s", 0) or 0,
            yields_to_own=fields.flag("yields_to_own"),
            admission_order=fields.choice(
                "admission_order", AdmissionOrder.values, AdmissionOrder.PRIORITY
            ),
            priority_first=fields.flag("priority_first"),
            carried=fields.child("carried").body,
        )

    return _read("ClusterQueue", name, body, read)


def read_cohort(name: str, body: Any, *, changes: bool) -> CohortSpec:
    """Return the spec of the cohort ``name``; ``changes`` one that is there already.

    Raises:
        Rejected: wrong types, missing or unknown fields, bad amounts; each with its path.
    """

    def read(fields: Fields) -> CohortSpec:
        _need(fields, "groups", *(COHORT_FIELDS if changes else ()))
        _need_word(fields, "parent")
        return CohortSpec(
            name=name,
            parent=_text_or_none(fields, "parent"),
            groups=_groups(fields),
            fair_weight=_weight(fields),
            fairness=fields.choice("fairness", Fairness.values, Fairness.NONE),
            reclaim_to=fields.choice("reclaim_to", ReclaimTo.values, ReclaimTo.QUOTA),
            quota_source=fields.choice("quota_source", QuotaSource.values, QuotaSource.DECLARED),
        )

    return _read("Cohort", name, body, read)


def read_flavor(name: str, body: Any, *, changes: bool) -> FlavorSpec:
    """Return the spec of the flavor ``name``; ``changes`` one that is there already.

    Raises:
        Rejected: wrong types, missing or unknown fields; each with its path.
    """

    def read(fields: Fields) -> FlavorSpec:
        _need_word(fields, "node_labels", *(FLAVOR_FIELDS if changes else ()))
        return FlavorSpec(
            name=name,
            node_labels=fields.labels("node_labels"),
            node_taints=tuple(_taint(row) for row in fields.children("node_taints")),
            tolerations=tuple(_toleration(row) for row in fields.children("tolerations")),
            topology=fields.text("topology"),
            policy=fields.choice("policy", PlacementPolicy.values, PlacementPolicy.FRAGMENTATION),
        )

    return _read("ResourceFlavor", name, body, read)


def _taint(row: Fields) -> TaintSpec:
    spec = TaintSpec(
        row.text("key", required=True), row.text("value"), row.text("effect", "NoSchedule")
    )
    row.close()
    return spec


def _toleration(row: Fields) -> TolerationSpec:
    spec = TolerationSpec(
        key=row.text("key"),
        operator=row.text("operator", "Equal"),
        value=row.text("value"),
        effect=row.text("effect"),
        seconds=row.integer("seconds"),
    )
    row.close()
    return spec


def read_topology(name: str, body: Any, *, changes: bool) -> TopologySpec:
    """Return the spec of the topology ``name``; its levels are its whole promise.

    Raises:
        Rejected: wrong types, missing or unknown fields; each with its path.
    """
    del changes

    def read(fields: Fields) -> TopologySpec:
        _need(fields, "levels")
        return TopologySpec(name, tuple(fields.texts("levels")))

    return _read("Topology", name, body, read)


def _read(kind: str, name: str, body: Any, read: Callable[[Fields], Spec]) -> Spec:
    if not isinstance(body, Mapping):
        numbers = {"path": "body", "expected": "a mapping", "found": type_of(body)}
        raise Rejected([Problem("", "BAD_TYPE", sentence("BAD_TYPE", numbers))])
    found: list[Diagnostic] = []
    fields = Fields(body, f"{kind}/{name}", found)
    said = fields.text("name", name)
    if said != name:
        fields.report("NAME_DIFFERS", "name", value=said[:KEPT], name=name)
    fields.integer("version")  # an answer has both; If-Match says which version counts
    fields.accept("warnings")
    spec = read(fields)
    fields.close()
    problems = [_problem(finding) for finding in found]
    if problems:
        raise Rejected(problems)
    return spec


def no_such_field(finding: Diagnostic) -> Problem:
    """Return an UNKNOWN_FIELD as something to correct: what REST does not know it refuses."""
    numbers = {"path": finding.path[:ECHOED], "nearest": finding.numbers.get("nearest", "")}
    words = _("There is no field {path} here.")
    if numbers["nearest"]:
        words = _("There is no field {path} here; did you mean {nearest}?")
    return Problem(finding.path, finding.code, words.format(**numbers), finding.numbers)


def _problem(finding: Diagnostic) -> Problem:
    return no_such_field(finding) if finding.code == "UNKNOWN_FIELD" else finding.as_problem()


def _need(fields: Fields, *keys: str) -> None:
    """Report keys without a value."""
    for key in keys:
        if key not in fields:
            fields.report("REQUIRED", key)


def _need_word(fields: Fields, *keys: str) -> None:
    """Report keys that are absent; null is a statement here."""
    for key in keys:
        if key not in fields.body:
            fields.report("REQUIRED", key)


def _text_or_none(fields: Fields, key: str) -> str | None:
    return fields.text(key) if key in fields else fields.raw(key)


def _weight(fields: Fields) -> Decimal:
    weight = fields.decimal("fair_weight")
    return Decimal(1) if weight is None else weight


def _selector(fields: Fields) -> Mapping[str, Any] | None:
    """Return the selector as it stands: null opens the queue to nobody, {} to everybody."""
    if "namespace_selector" not in fields:
        fields.accept("namespace_selector")
        return None
    selector = fields.child("namespace_selector")
    selector.labels("matchLabels")
    for row in selector.children("matchExpressions"):
        row.text("key", required=True)
        row.text("operator", required=True)
        row.texts("values")
        row.close()
    selector.close()
    return selector.body


def _preemption(fields: Fields, *, changes: bool) -> PreemptionSpec:
    row = fields.child("preemption")
    if "preemption" in fields and changes:
        _need(row, *PREEMPTION_FIELDS)
        _need_word(row, "max_priority_threshold")
    spec = PreemptionSpec(
        row.choice("within_cluster_queue", WithinClusterQueue.values, WithinClusterQueue.NEVER),
        row.choice("reclaim_within_cohort", ReclaimWithinCohort.values, ReclaimWithinCohort.NEVER),
        row.choice("borrow_within_cohort", BorrowWithinCohort.values, BorrowWithinCohort.NEVER),
        row.integer("max_priority_threshold", minimum=INT32_MIN),
    )
    row.close()
    return spec


def _fungibility(fields: Fields, *, changes: bool) -> FungibilitySpec:
    row, usual = fields.child("fungibility"), FungibilitySpec()
    if "fungibility" in fields and changes:
        _need(row, *FUNGIBILITY_FIELDS)
    spec = FungibilitySpec(
        row.choice("when_can_borrow", FlavorSearch.values, usual.when_can_borrow),
        row.choice("when_can_preempt", FlavorSearch.values, usual.when_can_preempt),
        row.choice("preference", FlavorPreference.values, usual.preference),
    )
    row.close()
    return spec


def _groups(fields: Fields) -> tuple[ResourceGroupSpec, ...]:
    return tuple(_group(row) for row in fields.children("groups"))


def _group(row: Fields) -> ResourceGroupSpec:
    _need(row, "resources", "flavors")
    resources = tuple(row.texts("resources"))
    flavors = tuple(_flavor(flavor) for flavor in row.children("flavors"))
    row.close()
    return ResourceGroupSpec(resources, flavors)


def _flavor(row: Fields) -> FlavorQuotasSpec:
    _need(row, "quotas")
    name = row.text("flavor", required=True)
    quotas = tuple(_quota(cell) for cell in row.children("quotas"))
    row.close()
    return FlavorQuotasSpec(name, quotas)


def _quota(cell: Fields) -> QuotaSpec:
    """Return one cell; a limit that is null or absent is none, as in Kueue."""
    resource = cell.text("resource", required=True)
    spec = QuotaSpec(
        resource,
        cell.quantity("nominal", resource, required=True) or 0,
        cell.quantity("borrowing_limit", resource),
        cell.quantity("lending_limit", resource),
    )
    cell.close()
    return spec
