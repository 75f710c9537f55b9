"""Rows of work to specs: what is asked for now, in the words in which it could be asked for."""

from scheduling.engine.terms import Status
from scheduling.models import PodSet, Workload
from scheduling.specs import PodSetSpec, SliceSpec, SubgroupSpec, TopologySpec, WorkloadSpec

SAME_FIELDS = (  # columns that a spec calls as rows do
    "namespace name kind ceiling_queue priority priority_class min_member elastic preemptible"
    " stateless expected_duration_s max_execution_time_s checkpoint_interval_s on_failure"
    " max_retries min_success on_node_loss grace_s ttl_s template labels annotations role_minima"
)


def describe_workload(row: Workload) -> WorkloadSpec:
    """Return what ``row`` asks for, with every change since. One query unless prefetched.

    ``priority`` is the one that counts, the named class's too; ``grace_s`` is never None.
    """
    return WorkloadSpec(
        **{name: getattr(row, name) for name in SAME_FIELDS.split()},
        queue=row.queue_name,
        policies=tuple(row.policies),
        gates=tuple(row.gates),
        active=row.status != Status.INACTIVE.value,
        pod_sets=tuple(
            _pod_set(one) for one in sorted(row.pod_sets.all(), key=lambda p: p.position)
        ),
    )


def _pod_set(row: PodSet) -> PodSetSpec:
    """Return identical pods; of one that waits for more pods, as many as it wants."""
    parts = (row.subgroup_size, row.min_subgroups)
    return PodSetSpec(
        name=row.name,
        count=row.wanted or row.count,
        requests={resource: amount for resource, amount in row.requests.items() if amount},
        min_count=row.min_count,
        node_selector=row.node_selector,
        tolerations=tuple(row.tolerations),
        affinity=tuple(tuple(term) for term in row.affinity),
        topology=TopologySpec(row.topology_mode, row.topology_level or None)
        if row.topology_mode
        else None,
        slices=tuple(SliceSpec(layer["level"], layer["size"]) for layer in row.slices),
        group=row.group,
        subgroup=SubgroupSpec(parts[0], parts[1] or 0) if parts[0] else None,
        device_locality=row.device_locality,
        device_memory_mib=row.device_memory_mib,
    )
