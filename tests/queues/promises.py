"""Small promises that tests start from."""

from queues.specs import (
    ClusterQueueSpec,
    FlavorQuotasSpec,
    PreemptionSpec,
    QuotaSpec,
    ResourceGroupSpec,
)

GPU = "nvidia.com/gpu"


def group(*quotas: QuotaSpec, flavor: str = "h100-sxm") -> ResourceGroupSpec:
    """Return a group of one flavor with ``quotas``."""
    resources = tuple(quota.resource for quota in quotas)
    return ResourceGroupSpec(resources, (FlavorQuotasSpec(flavor, quotas),))


def queue(nominal: int = 16, borrowing=8, lending=8, **fields) -> ClusterQueueSpec:
    """Return cq-datos in llm-platform with GPUs of one flavor."""
    fields.setdefault("cohort", "llm-platform")
    fields.setdefault("groups", (group(QuotaSpec(GPU, nominal, borrowing, lending)),))
    fields.setdefault("preemption", PreemptionSpec(reclaim_within_cohort="LowerPriority"))
    return ClusterQueueSpec(fields.pop("name", "cq-datos"), **fields)
