"""The JSON of promises: how it is answered, and the schema of what may be sent.

``queues.bodies`` reads it. Amounts are Kubernetes quantities (``"16"``, ``"500m"``, ``"512Gi"``),
so that what a GET answers can be PUT back. Integers are taken, too.
"""

from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any, TypeVar

from drf_spectacular.utils import extend_schema, extend_schema_view
from rest_framework import serializers

from gpuplatform.common.decimals import AmountInput
from gpuplatform.common.dry_run import PARAMETER as DRY_RUN
from gpuplatform.common.fields import INT32_MAX
from gpuplatform.common.quantities import format_quantity
from gpuplatform.common.rest_shapes import (
    FINDINGS,
    TEXT,
    or_none,
    page_of,
    record,
    rows_of,
    said,
    shape_of,
    some_of,
    values_of,
)
from gpuplatform.common.why import PARAMETER as REASON
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
from queues.descriptions import as_json
from queues.rules.flavors import EFFECTS
from queues.specs import (
    ClusterQueueSpec,
    CohortSpec,
    FlavorSpec,
    LocalQueueSpec,
    TeamSpec,
    TopologySpec,
)

Kind = TypeVar("Kind", bound=type)
Put = TypeVar("Put", bound=Callable[..., Any])
AMOUNTS = ("nominal", "borrowing_limit", "lending_limit")


class QuotaSerializer(serializers.Serializer[Any]):
    """One cell of a quota table; null limits are none."""

    resource = serializers.CharField(max_length=317)
    nominal = serializers.CharField(max_length=64)
    borrowing_limit = serializers.CharField(max_length=64, allow_null=True, default=None)
    lending_limit = serializers.CharField(max_length=64, allow_null=True, default=None)


class FlavorQuotasSerializer(serializers.Serializer[Any]):
    """One flavor of a group."""

    flavor = serializers.CharField(max_length=253)
    quotas = QuotaSerializer(many=True)


class ResourceGroupSerializer(serializers.Serializer[Any]):
    """Resources that come from one flavor together."""

    resources = serializers.ListField(child=serializers.CharField(max_length=317))
    flavors = FlavorQuotasSerializer(many=True)


class PreemptionSerializer(serializers.Serializer[Any]):
    """A queue's rights to evict."""

    within_cluster_queue = serializers.ChoiceField(
        WithinClusterQueue.choices, default=WithinClusterQueue.NEVER.value
    )
    reclaim_within_cohort = serializers.ChoiceField(
        ReclaimWithinCohort.choices, default=ReclaimWithinCohort.NEVER.value
    )
    borrow_within_cohort = serializers.ChoiceField(
        BorrowWithinCohort.choices, default=BorrowWithinCohort.NEVER.value
    )
    max_priority_threshold = serializers.IntegerField(allow_null=True, default=None)


class FungibilitySerializer(serializers.Serializer[Any]):
    """How a queue searches its flavors."""

    when_can_borrow = serializers.ChoiceField(
        FlavorSearch.choices, default=FlavorSearch.MAY_STOP_SEARCH.value
    )
    when_can_preempt = serializers.ChoiceField(
        FlavorSearch.choices, default=FlavorSearch.TRY_NEXT_FLAVOR.value
    )
    preference = serializers.ChoiceField(
        FlavorPreference.choices, default=FlavorPreference.BORROWING_OVER_PREEMPTION.value
    )


class CohortSerializer(serializers.Serializer[Any]):
    """A cohort as REST clients write it."""

    parent = serializers.CharField(  # type: ignore[assignment]  # DRF moves fields aside
        max_length=253, allow_null=True
    )
    groups = ResourceGroupSerializer(many=True)
    fair_weight = AmountInput(12, 6, default=Decimal(1), min_value=Decimal(0))
    fairness = serializers.ChoiceField(Fairness.choices, default=Fairness.NONE.value)
    reclaim_to = serializers.ChoiceField(ReclaimTo.choices, default=ReclaimTo.QUOTA.value)
    quota_source = serializers.ChoiceField(QuotaSource.choices, default=QuotaSource.DECLARED.value)


class ClusterQueueSerializer(serializers.Serializer[Any]):
    """A cluster queue as REST clients write it; ``team`` null keeps the owner."""

    team = serializers.CharField(max_length=63, allow_null=True, allow_blank=True, default=None)
    cohort = serializers.CharField(max_length=253, allow_null=True)
    groups = ResourceGroupSerializer(many=True)
    queueing_strategy = serializers.ChoiceField(
        QueueingStrategy.choices, default=QueueingStrategy.BEST_EFFORT_FIFO.value
    )
    stop_policy = serializers.ChoiceField(StopPolicy.choices, default=StopPolicy.NONE.value)
    fair_weight = AmountInput(12, 6, default=Decimal(1), min_value=Decimal(0))
    namespace_selector = serializers.DictField(allow_null=True)
    preemption = PreemptionSerializer(default=dict)
    reclaimable = serializers.BooleanField(default=True)
    undeclared = serializers.ChoiceField(Undeclared.choices, default=Undeclared.BLOCK.value)
    fungibility = FungibilitySerializer(default=dict)
    minimum_runtime_s = serializers.IntegerField(default=0, min_value=0, max_value=INT32_MAX)
    yields_to_own = serializers.BooleanField(default=False)
    admission_order = serializers.ChoiceField(
        AdmissionOrder.choices, default=AdmissionOrder.PRIORITY.value
    )
    priority_first = serializers.BooleanField(default=False)
    carried = serializers.DictField(default=dict)


class TaintSerializer(serializers.Serializer[Any]):
    """A mark on nodes that keeps pods away."""

    key = serializers.CharField(max_length=317)
    value = serializers.CharField(max_length=63, allow_blank=True, default="")
    effect = serializers.ChoiceField(EFFECTS, default="NoSchedule")


class TolerationSerializer(serializers.Serializer[Any]):
    """Permission to use tainted nodes; an empty effect means every effect."""

    key = serializers.CharField(max_length=317, allow_blank=True, default="")
    operator = serializers.ChoiceField(("Equal", "Exists"), default="Equal")
    value = serializers.CharField(max_length=63, allow_blank=True, default="")
    effect = serializers.ChoiceField(("", *EFFECTS), default="")
    seconds = serializers.IntegerField(allow_null=True, default=None)


class FlavorSerializer(serializers.Serializer[Any]):
    """A flavor as REST clients write it."""

    node_labels = serializers.DictField(child=serializers.CharField(max_length=63))
    node_taints = TaintSerializer(many=True, default=list)
    tolerations = TolerationSerializer(many=True, default=list)
    topology = serializers.CharField(max_length=253, allow_blank=True, default="")
    policy = serializers.ChoiceField(
        PlacementPolicy.choices, default=PlacementPolicy.FRAGMENTATION.value
    )


class TopologySerializer(serializers.Serializer[Any]):
    """A topology as REST clients write it: node labels, outermost first."""

    levels = serializers.ListField(child=serializers.CharField(max_length=317))


def as_answer(spec: Any) -> dict[str, Any]:
    """Return a spec as REST answers it: JSON with amounts in Kubernetes notation."""
    answer: dict[str, Any] = as_json(spec)
    for group in answer.get("groups", ()):
        for flavor in group["flavors"]:
            for cell in flavor["quotas"]:
                cell.update(_readable(cell))
    return answer


def _readable(cell: Mapping[str, Any]) -> dict[str, str]:
    given = {key: cell[key] for key in AMOUNTS if cell[key] is not None}
    return {key: format_quantity(cell["resource"], amount) for key, amount in given.items()}


# ---- shapes of answers -----------------------------------------------------------------------
VERSION = {"type": "integer", "minimum": 1}
REQUIREMENT = record("", {"key": TEXT, "operator": TEXT}, {"values": rows_of(TEXT)})
TEAM, LOCAL_QUEUE, FLAVOR, TOPOLOGY, COHORT, CLUSTER_QUEUE = (
    shape_of(spec, AMOUNTS, version=VERSION)
    for spec in (TeamSpec, LocalQueueSpec, FlavorSpec, TopologySpec, CohortSpec, ClusterQueueSpec)
)
CLUSTER_QUEUE["properties"] |= {
    "namespace_selector": or_none(
        said(
            record(
                "", {}, {"matchLabels": values_of(TEXT), "matchExpressions": rows_of(REQUIREMENT)}
            ),
            "A label selector of Kubernetes; empty: all namespaces, null: none.",
        )
    ),
    "carried": values_of({}, "What a manifest said that nothing of ours follows, as it was."),
}
DRY = {"dry_run": {"type": "boolean"}}


def saved(shape: dict[str, Any]) -> dict[int, Any]:
    """Return the answers of a writer; that of a dry run is 200."""
    return dict.fromkeys((200, 201), some_of(shape, warnings=FINDINGS, **DRY))


def pages_of(shape: dict[str, Any]) -> dict[int, Any]:
    """Return the answer of a list; ``fields`` and ``brief`` leave some of each row out."""
    return {200: page_of(some_of(shape))}


WOULD = {"type": "object", "properties": {"name": {"type": "string"}, **DRY}}
DELETED = {200: WOULD, 204: None}


def listed(name: str, shape: dict[str, Any]) -> Callable[[Kind], Kind]:
    """Say of a list what it answers."""
    return extend_schema_view(get=extend_schema(operation_id=name, responses=pages_of(shape)))


def saving(body: type, shape: dict[str, Any]) -> Callable[[Put], Put]:
    """Say of a writer what it takes and answers."""
    return extend_schema(request=body, responses=saved(shape), parameters=[DRY_RUN, REASON])


def shown(shape: dict[str, Any]) -> Callable[[Kind], Kind]:
    """Say of one object what it answers."""
    return extend_schema_view(get=extend_schema(responses={200: shape}))
