"""The JSON of promises: shape only, in both directions; what a value may be is for the rules.

Amounts are Kubernetes quantities (``"16"``, ``"500m"``, ``"512Gi"``), so that what a GET answers
can be PUT back. Integers are taken, too.
"""

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from django.utils.translation import gettext as _
from rest_framework import serializers
from rest_framework.exceptions import ErrorDetail

from gpuplatform.common.problems import Problem, Rejected
from gpuplatform.common.quantities import format_quantity, parse_quantity
from queues.choices import (
    BorrowWithinCohort,
    Fairness,
    QueueingStrategy,
    QuotaSource,
    ReclaimWithinCohort,
    StopPolicy,
    Undeclared,
    WithinClusterQueue,
)
from queues.descriptions import as_json
from queues.specs import (
    ClusterQueueSpec,
    CohortSpec,
    FlavorQuotasSpec,
    PreemptionSpec,
    QuotaSpec,
    ResourceGroupSpec,
)

AMOUNTS = ("nominal", "borrowing_limit", "lending_limit")
IN_THE_ADDRESS = frozenset({"name", "version"})  # a GET answers them; the URL and ETag carry them


class Shape(serializers.Serializer[Any]):
    """A mapping in which every key is known: nothing is ignored in silence."""

    def to_internal_value(self, data: Any) -> Any:
        """Return the checked mapping.

        Raises:
            ValidationError: a value has the wrong shape, or a key is unknown.
        """
        read = super().to_internal_value(data)
        allowed = set(self.fields) | (IN_THE_ADDRESS if self.root is self else frozenset())
        if unknown := sorted(set(data) - allowed):
            raise serializers.ValidationError(
                {key: [ErrorDetail(_("unknown field"), "unknown")] for key in unknown}
            )
        return read


class QuotaSerializer(Shape):
    """One cell of a quota table; null limits are none."""

    resource = serializers.CharField(max_length=317)
    nominal = serializers.CharField(max_length=64)
    borrowing_limit = serializers.CharField(max_length=64, allow_null=True, default=None)
    lending_limit = serializers.CharField(max_length=64, allow_null=True, default=None)


class FlavorQuotasSerializer(Shape):
    """One flavor of a group."""

    flavor = serializers.CharField(max_length=253)
    quotas = QuotaSerializer(many=True)


class ResourceGroupSerializer(Shape):
    """Resources that come from one flavor together."""

    resources = serializers.ListField(child=serializers.CharField(max_length=317))
    flavors = FlavorQuotasSerializer(many=True)


class PreemptionSerializer(Shape):
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


class CohortSerializer(Shape):
    """A cohort as REST clients write it."""

    parent = serializers.CharField(  # type: ignore[assignment]  # DRF moves fields aside
        max_length=253, allow_null=True, default=None
    )
    groups = ResourceGroupSerializer(many=True, default=list)
    fair_weight = serializers.DecimalField(12, 6, default=Decimal(1), min_value=Decimal(0))
    fairness = serializers.ChoiceField(Fairness.choices, default=Fairness.NONE.value)
    quota_source = serializers.ChoiceField(QuotaSource.choices, default=QuotaSource.DECLARED.value)

    def to_spec(self, name: str) -> CohortSpec:
        """Return the checked body as a spec.

        Raises:
            Rejected: an amount is not a quantity.
        """
        body = dict(self.validated_data)
        return CohortSpec(name=name, groups=_groups(body.pop("groups")), **body)


class ClusterQueueSerializer(Shape):
    """A cluster queue as REST clients write it; ``team`` null keeps the owner."""

    team = serializers.CharField(max_length=63, allow_null=True, allow_blank=True, default=None)
    cohort = serializers.CharField(max_length=253, allow_null=True, default=None)
    groups = ResourceGroupSerializer(many=True, default=list)
    queueing_strategy = serializers.ChoiceField(
        QueueingStrategy.choices, default=QueueingStrategy.BEST_EFFORT_FIFO.value
    )
    stop_policy = serializers.ChoiceField(StopPolicy.choices, default=StopPolicy.NONE.value)
    fair_weight = serializers.DecimalField(12, 6, default=Decimal(1), min_value=Decimal(0))
    namespace_selector = serializers.DictField(allow_null=True, default=None)
    preemption = PreemptionSerializer(default=dict)
    reclaimable = serializers.BooleanField(default=True)
    undeclared = serializers.ChoiceField(Undeclared.choices, default=Undeclared.BLOCK.value)
    carried = serializers.DictField(default=dict)

    def to_spec(self, name: str) -> ClusterQueueSpec:
        """Return the checked body as a spec.

        Raises:
            Rejected: an amount is not a quantity.
        """
        body = dict(self.validated_data)
        return ClusterQueueSpec(
            name=name,
            groups=_groups(body.pop("groups")),
            preemption=PreemptionSpec(**body.pop("preemption")),
            **body,
        )


def _groups(rows: list[Mapping[str, Any]]) -> tuple[ResourceGroupSpec, ...]:
    problems: list[Problem] = []
    groups = tuple(
        ResourceGroupSpec(
            tuple(row["resources"]),
            tuple(
                _flavor(flavor, f"groups[{g}].flavors[{f}]", problems)
                for f, flavor in enumerate(row["flavors"])
            ),
        )
        for g, row in enumerate(rows)
    )
    if problems:
        raise Rejected(problems)
    return groups


def _flavor(row: Mapping[str, Any], path: str, problems: list[Problem]) -> FlavorQuotasSpec:
    cells = enumerate(row["quotas"])
    quotas = tuple(_quota(cell, f"{path}.quotas[{q}]", problems) for q, cell in cells)
    return FlavorQuotasSpec(row["flavor"], quotas)


def _quota(cell: Mapping[str, Any], path: str, problems: list[Problem]) -> QuotaSpec:
    amounts: dict[str, int | None] = dict.fromkeys(AMOUNTS)
    for key in AMOUNTS:
        if (text := cell[key]) is None:
            continue
        try:
            amounts[key] = parse_quantity(cell["resource"], text)
        except ValueError as error:
            code = "negative" if text.startswith("-") else "bad_quantity"
            problems.append(Problem(f"{path}.{key}", code, str(error)))
    nominal = amounts.pop("nominal") or 0
    return QuotaSpec(resource=cell["resource"], nominal=nominal, **amounts)


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
