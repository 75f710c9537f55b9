"""Volcano's kinds of work: Job (``placement.md`` 2.2) and PodGroup (2.1)."""

from collections.abc import Mapping
from dataclasses import replace
from typing import NamedTuple

from gpuplatform.common.fields import Fields
from scheduling.engine.terms import DeviceLocality
from scheduling.manifests.core import MOST_PODS
from scheduling.manifests.part import Part
from scheduling.manifests.pods import read_template
from scheduling.manifests.policies import read_policies
from scheduling.manifests.work import Work, begin
from scheduling.specs import PodSetSpec, SliceSpec, SubgroupSpec, TopologySpec, WorkloadSpec

KEEP = "keep"
NUMA_POLICIES = {
    "none": DeviceLocality.ANY.value,
    "best-effort": DeviceLocality.PREFER.value,
    "restricted": DeviceLocality.RESTRICTED.value,
    "single-numa-node": DeviceLocality.REQUIRE.value,
}

PLUGINS = ("env", "hcclrank", "mpi", "pytorch", "ray", "ssh", "svc", "tensorflow")


def read_volcano_job(part: Part) -> None:
    """Read a Volcano Job: a pod set per task, one gang of ``minAvailable`` pods."""
    work = begin(part)
    work.is_volcano = True
    spec = work.fields.child("spec", required=True)
    topology = read_network_topology(spec)
    for row in spec.children("tasks", required=True):
        _task(work, row)
    work.pod_sets = _together(work.pod_sets, topology, "job")
    pods = sum(pod_set.count for pod_set in work.pod_sets)
    work.min_member = spec.integer("minAvailable", pods, maximum=MOST_PODS)
    work.volcano_queue = spec.text("queue")
    work.own_priority_class = spec.text("priorityClassName")
    work.expected_duration_s = _estimate(spec)
    work.max_retries = spec.integer("maxRetry")
    work.on_failure = KEEP  # Volcano does nothing that no policy asks for
    work.policies += read_policies(spec)
    work.min_success = spec.integer("minSuccess", minimum=1, maximum=max(1, pods))
    work.ttl_s = spec.integer("ttlSecondsAfterFinished")
    _check_plugins(spec)
    spec.accept("schedulerName", "volumes")
    spec.close()
    work.fields.close()
    part.specs.append(work.spec())


def _check_plugins(spec: Fields) -> None:
    """Refuse plugins that Volcano does not know, as it does itself."""
    plugins = spec.child("plugins")
    plugins.accept(*PLUGINS)
    for name in plugins.unread():
        allowed = ", ".join(PLUGINS)
        plugins.report("BAD_VALUE", name[:64], value=name[:64], allowed=allowed)


def _task(work: Work, row: Fields) -> None:
    name = row.text("name", required=True)
    count = row.integer("replicas", 1, maximum=MOST_PODS) or 0
    shape = read_template(row.child("template", required=True))
    least = row.integer("minAvailable", maximum=MOST_PODS)
    if least is not None:
        work.role_minima[name] = least
    work.policies += read_policies(row, name)
    row.accept("maxRetry")
    row.not_honoured("dependsOn", "subGroupPolicy")
    policy = row.choice("topologyPolicy", NUMA_POLICIES, "none")
    work.shapes.append(shape)
    if count:
        pod_set = _partitions(row, shape.as_pod_set(name, count))
        if policy != "none":
            pod_set = replace(pod_set, device_locality=NUMA_POLICIES[policy])
        work.pod_sets.append(pod_set)
    row.accept("partitionPolicy")
    row.close()


def _together(
    pod_sets: list[PodSetSpec], topology: TopologySpec | None, group: str
) -> list[PodSetSpec]:
    """Return the pod sets under the job's topology, unless their pods ask for their own.

    What Volcano asks of a job holds for all its pods at once: several pod sets are a group.
    """
    if topology is None:
        return pod_sets
    under = [p for p in pod_sets if p.topology is None and not p.group]
    grouped = len(under) > 1 and topology.level is not None
    return [
        replace(p, topology=topology, group=group if grouped else "") if p in under else p
        for p in pod_sets
    ]


def _partitions(row: Fields, pod_set: PodSetSpec) -> PodSetSpec:
    """Return a task in partitions: parts that start whole, each in one domain if it says so."""
    if "partitionPolicy" not in row:
        return pod_set
    policy = row.child("partitionPolicy")
    total = policy.integer("totalPartitions", 1, minimum=1, maximum=MOST_PODS, required=True) or 1
    size = policy.integer("partitionSize", 1, minimum=1, maximum=MOST_PODS, required=True) or 1
    least = policy.integer("minPartitions", total, maximum=total)
    if total * size != pod_set.count:
        numbers = {"partitions": total, "slice_size": size, "pods": pod_set.count}
        policy.report("PARTITIONS_NOT_WHOLE", "totalPartitions", **numbers)
    slices = _slices(policy, size)
    policy.close()
    return replace(
        pod_set, subgroup=SubgroupSpec(size, total if least is None else least), slices=slices
    )


def _slices(policy: Fields, size: int) -> tuple[SliceSpec, ...]:
    """Return the slices of parts that each need a domain, or with a soft tier should have one."""
    topology = read_network_topology(policy)
    if topology is None or topology.level is None:
        return ()
    return (SliceSpec(topology.level, size, topology.mode),)


def read_network_topology(spec: Fields) -> TopologySpec | None:
    """Return Volcano's constraint as a level and a mode (``decisions.md`` 5).

    A tier number becomes the level ``tier:n``: the host is tier 0, the level above it tier 1.
    """
    if "networkTopology" not in spec:
        return None
    row = spec.child("networkTopology")
    hard = row.choice("mode", ("hard", "soft"), "hard") == "hard"
    level = _tier(row)
    named = row.text("highestTierName")
    if level and named:
        row.report("BAD_VALUE", "highestTierName", value=named, allowed="highestTierAllowed alone")
    row.close()
    level = level or named
    if level:
        return TopologySpec("required" if hard else "preferred", level)
    if hard:
        row.report("TOPOLOGY_LEVEL_MISSING")
    return TopologySpec("unconstrained")


def _tier(row: Fields) -> str:
    """Return the level of ``highestTierAllowed``; a name in the number's place is a name."""
    value = row.raw("highestTierAllowed")
    if isinstance(value, str) and value and not value.isdecimal():
        row.report("LEVEL_AS_NAME", "highestTierAllowed", level=value[:64])
        return value
    if isinstance(value, str) and value:
        return f"tier:{int(value[:9])}"
    tier = row.integer("highestTierAllowed", maximum=64)
    return "" if tier is None else f"tier:{tier}"


def _estimate(spec: Fields) -> int | None:
    """Return ``runningEstimate`` (``1h30m``, ``90s``) in seconds."""
    text = spec.text("runningEstimate")
    if not text:
        return None
    scales, total, digits = {"h": 3600, "m": 60, "s": 1}, 0.0, ""
    for character in text:
        if character.isdigit() or character == ".":
            digits += character
        elif character in scales and digits.count(".") <= 1 and digits.strip("."):
            total, digits = total + float(digits) * scales[character], ""
        else:
            break
    else:
        if not digits and 0 < total < 2**31:
            return round(total)
    spec.report("BAD_QUANTITY", "runningEstimate", value=text[:64])
    return None


def read_pod_group(part: Part, members: list[WorkloadSpec], *, owned_elsewhere: bool) -> None:
    """Read a PodGroup: one gang of ``members``, or of what ``minResources`` announce.

    ``owned_elsewhere``: the members are a Job's pods, which makes a gang of its own; they are
    only looked at.
    """
    work = begin(part)
    work.is_volcano = part.document.api_version.startswith("scheduling.volcano.sh/")
    work.member_queue = next((member.queue for member in members if member.queue), "")
    spec = work.fields.child("spec", required=True)
    least = spec.integer("minMember", 0, maximum=MOST_PODS) or 0
    work.min_member = least or None
    work.role_minima = {
        role: int(count) for role, count in spec.quantities("minTaskMember").items()
    }
    work.volcano_queue = spec.text("queue")
    work.own_priority_class = spec.text("priorityClassName")
    declared = spec.quantities("minResources")
    topology = read_network_topology(spec)
    rows = spec.children("subGroupPolicy")
    policies = [policy for row in rows if (policy := _subgroup_policy(row, named=bool(members)))]
    pod_sets = _members([_in_parts(member, policies) for member in members])
    pod_sets = pod_sets or [_parted(p, {}, policies) for p in _announced(declared, least)]
    work.pod_sets = _together(pod_sets, topology, "podgroup")
    spec.not_honoured("scheduleTimeoutSeconds")
    spec.close()
    work.fields.close()
    _check_members(part, members, declared, least)
    made = work.spec()
    if not owned_elsewhere or pod_sets:
        part.specs.append(made)


class _Subgroups(NamedTuple):
    """What a subgroup policy asks of the pods that carry the labels."""

    labels: dict[str, str]
    subgroup: SubgroupSpec
    slices: tuple[SliceSpec, ...]


def _subgroup_policy(row: Fields, *, named: bool) -> _Subgroups | None:
    """Read one subgroup policy.

    The size of a subgroup says which members form one; by which label values they are told
    apart (``matchLabelKeys``) changes nothing then. Pods that are only announced (``named``
    false) carry no labels, so none of them can be selected.
    """
    size = row.integer("subGroupSize", 1, minimum=1, maximum=MOST_PODS) or 1
    least = row.integer("minSubGroups", 0, maximum=MOST_PODS) or 0
    found = _Subgroups(_selector(row), SubgroupSpec(size, least), _slices(row, size))
    row.accept("name", "matchLabelKeys")
    if found.labels and not named:
        row.not_honoured("labelSelector", "subGroupSize")
    row.close()
    return found if named or not found.labels else None


def _selector(policy: Fields) -> dict[str, str]:
    if "labelSelector" not in policy:
        return {}
    selector = policy.child("labelSelector")
    chosen = dict(selector.labels("matchLabels"))
    selector.not_honoured("matchExpressions")
    selector.close()
    return chosen


def _in_parts(member: WorkloadSpec, policies: list[_Subgroups]) -> WorkloadSpec:
    pod_sets = tuple(_parted(p, member.labels, policies) for p in member.pod_sets)
    return replace(member, pod_sets=pod_sets)


def _parted(
    pod_set: PodSetSpec, labels: Mapping[str, str], policies: list[_Subgroups]
) -> PodSetSpec:
    for policy in policies:
        if policy.labels.items() <= labels.items():
            slices = policy.slices or pod_set.slices
            pod_set = replace(pod_set, subgroup=policy.subgroup, slices=slices)
    return pod_set


def _members(members: list[WorkloadSpec]) -> list[PodSetSpec]:
    """Return the members' pod sets, equal pods together, each under a name of its own."""
    found: list[PodSetSpec] = []
    for member in members:
        for pod_set in member.pod_sets:
            alike = next((n for n, p in enumerate(found) if _alike(p, pod_set)), None)
            if alike is None:
                name = pod_set.name if len(members) == 1 else f"pods-{len(found)}"
                found.append(_counted(pod_set, name, pod_set.count))
            else:
                kept = found[alike]
                found[alike] = _counted(kept, kept.name, kept.count + pod_set.count)
    return found


def _alike(one: PodSetSpec, other: PodSetSpec) -> bool:
    return replace(one, name="", count=1) == replace(other, name="", count=1)


def _counted(pod_set: PodSetSpec, name: str, count: int) -> PodSetSpec:
    return replace(pod_set, name=name, count=count)


def _announced(declared: dict[str, int], least: int) -> list[PodSetSpec]:
    """Return pods that ask together for exactly what a PodGroup without pods announces."""
    if not declared or not least:
        return []
    each = {resource: amount // least for resource, amount in declared.items()}
    odd = {resource: amount - each[resource] * least for resource, amount in declared.items()}
    if not any(odd.values()):
        return [PodSetSpec("members", least, each)]
    last = {resource: each[resource] + odd[resource] for resource in declared}
    rest = [PodSetSpec("members", least - 1, each)] if least > 1 else []
    return [*rest, PodSetSpec("last", 1, last)]


def _check_members(
    part: Part, members: list[WorkloadSpec], declared: dict[str, int], least: int
) -> None:
    """Compare what the group says with the pods that came with it (G10, G17)."""
    pods = sum(pod_set.count for member in members for pod_set in member.pod_sets)
    if not pods and least:  # with some pods, the rules compare the two
        part.report("GANG_LARGER_THAN_POD_COUNT", "spec.minMember", min_member=least, pods=pods)
    asked = {r for member in members for pod_set in member.pod_sets for r in pod_set.requests}
    missing = sorted(asked - declared.keys())
    if declared and missing:
        part.report("DEMAND_MISMATCH", "spec.minResources", missing=", ".join(missing))
