"""The rules of workloads, asked by form, REST, manifest and command alike.

``check_workload`` yields every finding about a spec, errors and warnings, each with the path of
the field in the spec. What can never run is judged by ``engine.diagnostics`` on the empty
cluster. Sources: ``admission.md`` K15, K18; ``placement.md`` 3 (G numbers).
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

from gpuplatform.common.diagnostics import Diagnostic
from gpuplatform.common.problems import Problem
from gpuplatform.common.quantities import INT64_MAX, nearest_resource
from queues import labels
from queues.rules.words import check_amount, check_label_key, check_labels, check_name
from scheduling.charging import charges_of
from scheduling.device_rules import check_devices, with_real_names
from scheduling.engine.diagnostics import Finding
from scheduling.engine.snapshot import PodSet, Workload
from scheduling.engine.terms import BlockerCode, DeviceLocality, StopPolicy
from scheduling.gang_rules import check_gang, roles_of
from scheduling.minima import has_minima, with_minima
from scheduling.readers import (
    affinity_of,
    device_request_of,
    lasts,
    tolerations_of,
    topology_of,
)
from scheduling.routes import blocked, resolve_queue
from scheduling.specs import (
    ON_FAILURE,
    ON_NODE_LOSS,
    REQUEUE,
    PodSetSpec,
    WorkloadSpec,
    subject_of,
)
from scheduling.topology_rules import check_levels, check_together
from scheduling.world import World

MOST_POD_SETS = 18
MOST_PODS = 100_000
LOCALITIES = tuple(locality.value for locality in DeviceLocality)
UNDECLARED = ("UndeclaredResource", "OtherGpus")  # causes: the queue has no quota for it
MOST_GATES = 8
# What a site may accept as blocked: it is well formed, and cannot run as things are.
IMPOSSIBLE = frozenset(
    (
        "NEVER_FITS_QUEUE",
        "NEVER_FITS_CLUSTER",
        "NEVER_FITS_TOPOLOGY",
        "NEVER_FITS_NODE",
        "NEVER_FITS_ISLAND",
        "FLAVOR_MISMATCH",
        "UNCOVERED_RESOURCE",
        "TAINT_NOT_TOLERATED",
        "QUEUE_NOT_FOUND",
        "NAMESPACE_NOT_ALLOWED",
    )
)
WELL_KNOWN = frozenset(
    (
        "cpu",
        "memory",
        "ephemeral-storage",
        "nvidia.com/gpu",
        "volcano.sh/vgpu-number",
        "volcano.sh/vgpu-memory",
        "volcano.sh/vgpu-cores",
    )
)


def resolved(spec: WorkloadSpec, world: World) -> WorkloadSpec:
    """Return the spec with levels and resources spelled as nodes and queues spell them."""
    spec, queue = with_real_names(spec), world.cluster_queue_of(spec)

    def label(level: str) -> str:
        return world.level_of(level, queue) or level

    def spelled(pod_set: PodSetSpec) -> PodSetSpec:
        asked = pod_set.topology
        if asked is None and not pod_set.slices:
            return pod_set
        if asked is not None and asked.level:
            asked = replace(asked, level=label(asked.level))
        slices = tuple(replace(layer, level=label(layer.level)) for layer in pod_set.slices)
        return replace(pod_set, topology=asked, slices=slices)

    pod_sets = tuple(spelled(pod_set) for pod_set in spec.pod_sets)
    return spec if pod_sets == spec.pod_sets else replace(spec, pod_sets=pod_sets)


def check_workload(spec: WorkloadSpec, world: World) -> list[Diagnostic]:
    """Return every finding about ``spec``: first its shape, then whether it can ever run.

    Feasibility is only judged for a spec of sound shape.
    """
    subject, said = subject_of(spec), list(check_devices(spec, world))
    spec = with_real_names(spec)
    shape = [Diagnostic.from_problem(subject, problem) for problem in check_shape(spec)]
    shape += check_gang(spec)
    shape += [*_priority(spec, world), *check_levels(spec, world)]
    shape += _queue(spec, world)
    broken = any(d.is_error and d.code not in IMPOSSIBLE for d in _sizes(shape))
    found = [] if broken else _feasible(spec, world)
    return [*shape, *said, *found, *_resources(spec, world), *_not_honoured(spec)]


def _sizes(shape: Iterable[Diagnostic]) -> list[Diagnostic]:
    """Return the findings that make amounts meaningless; a missing class does not."""
    kept = ("PRIORITY_CLASS_NOT_FOUND", "UNKNOWN_TOPOLOGY_LEVEL", "TOPOLOGY_LEVEL_MISSING")
    return [finding for finding in shape if finding.code not in kept]


# ---- shape -----------------------------------------------------------------------------------
def check_shape(spec: WorkloadSpec) -> Iterator[Problem]:
    """Yield what is wrong with names, counts and amounts, whatever the world is like."""
    yield from check_fields(spec)
    pods = sum(max(0, pod_set.count) for pod_set in spec.pod_sets)
    if spec.min_success is not None and spec.min_success > pods:
        numbers = {"min_success": spec.min_success, "pods": pods}
        yield _problem("min_success", "MIN_SUCCESS_ABOVE_COUNT", **numbers)
    if not spec.pod_sets:
        yield _problem("pod_sets", "NO_POD_SETS")
    if pods > MOST_PODS:
        yield _problem("pod_sets", "POD_COUNT", pod_set=spec.name, pods=pods, limit=MOST_PODS)
    for index, pod_set in enumerate(spec.pod_sets):
        yield from _minima(pod_set, f"pod_sets[{index}]")
    yield from check_together(spec)


def check_fields(spec: WorkloadSpec) -> Iterator[Problem]:
    """Yield what is wrong with single fields: true of each, even where others are missing."""
    yield from check_name(spec.namespace, "namespace")
    yield from check_name(spec.name)
    for path in ("queue", "priority_class", "ceiling_queue"):
        if name := getattr(spec, path):
            yield from check_name(name, path)
    yield from check_labels(spec.labels, "labels")
    for key in spec.annotations:
        yield from check_label_key(key, f"annotations[{key[:64]}]")
    if spec.on_failure not in ON_FAILURE:
        yield _one_of("on_failure", spec.on_failure, ON_FAILURE)
    if spec.on_node_loss not in ON_NODE_LOSS:
        yield _one_of("on_node_loss", spec.on_node_loss, ON_NODE_LOSS)
    yield from _gates(spec)
    if len(spec.pod_sets) > MOST_POD_SETS:
        yield _problem(
            "pod_sets", "TOO_MANY_POD_SETS", pod_sets=len(spec.pod_sets), limit=MOST_POD_SETS
        )
    yield from _pod_sets(spec)


def _gates(spec: WorkloadSpec) -> Iterator[Problem]:
    if len(spec.gates) > MOST_GATES:
        yield _problem(
            "admission_gates", "TOO_MANY_GATES", gates=len(spec.gates), limit=MOST_GATES
        )
    for index, gate in enumerate(spec.gates):
        yield from check_label_key(gate, f"admission_gates[{index}]")


def _problem(path: str, code: str, **numbers: Any) -> Problem:
    return Diagnostic(code, "", path, numbers).as_problem()


def _one_of(path: str, value: str, allowed: Iterable[str]) -> Problem:
    return _problem(path, "BAD_VALUE", value=value[:64], allowed=", ".join(allowed))


def _pod_sets(spec: WorkloadSpec) -> Iterator[Problem]:
    times = Counter(pod_set.name for pod_set in spec.pod_sets)
    for index, pod_set in enumerate(spec.pod_sets):
        path = f"pod_sets[{index}]"
        yield from check_name(pod_set.name, f"{path}.name")
        if times[pod_set.name] > 1:
            yield _problem(f"{path}.name", "POD_SET_TWICE", pod_set=pod_set.name)
        if not 1 <= pod_set.count <= MOST_PODS:
            numbers = {"pod_set": pod_set.name, "pods": pod_set.count, "limit": MOST_PODS}
            yield _problem(f"{path}.count", "POD_COUNT", **numbers)
        yield from _amounts(pod_set, path)
        yield from check_labels(pod_set.node_selector, f"{path}.node_selector")
        if pod_set.device_locality not in LOCALITIES:
            yield _one_of(f"{path}.device_locality", pod_set.device_locality, LOCALITIES)


def _minima(pod_set: PodSetSpec, path: str) -> Iterator[Problem]:
    count, least = pod_set.count, pod_set.min_count
    if least is not None and not 1 <= least <= count:
        numbers = {"pod_set": pod_set.name, "minimum": least, "pods": count}
        yield _problem(f"{path}.min_count", "MIN_COUNT_ABOVE_COUNT", **numbers)
    asked = pod_set.subgroup
    if asked is not None and asked.size * asked.min_subgroups > count:
        numbers = {
            "pod_set": pod_set.name,
            "needed_pods": asked.size * asked.min_subgroups,
            "pods": count,
        }
        yield _problem(f"{path}.subgroup", "SUBGROUP_TOO_LARGE", **numbers)


def _amounts(pod_set: PodSetSpec, path: str) -> Iterator[Problem]:
    for resource, amount in pod_set.requests.items():
        where = f"{path}.requests[{resource[:64]}]"
        yield from check_label_key(resource, where)
        yield from check_amount(amount, where)
        if amount * max(1, pod_set.count) > INT64_MAX >= amount:
            yield _problem(where, "BAD_QUANTITY", value=f"{amount} x {pod_set.count}")
        if resource == "pods":
            yield _problem(where, "RESERVED_RESOURCE", resource="pods")


# ---- the world -------------------------------------------------------------------------------
def _priority(spec: WorkloadSpec, world: World) -> Iterator[Diagnostic]:
    name = spec.priority_class
    if name and world.priority_of(name) is None:
        numbers = {"priority_class": name}
        yield Diagnostic("PRIORITY_CLASS_NOT_FOUND", subject_of(spec), "priority_class", numbers)


def _queue(spec: WorkloadSpec, world: World) -> Iterator[Diagnostic]:
    """Yield why the queue is no place for the workload: missing, foreign, not admitting."""
    subject = subject_of(spec)
    ceiling = world.doors.ceiling(spec.ceiling_queue, world.cluster_queue_of(spec))
    if spec.ceiling_queue and ceiling is None:
        numbers = {"queue": spec.ceiling_queue}
        yield Diagnostic("QUEUE_DEFAULTED", subject, "ceiling_queue", numbers)
    if not spec.queue:
        return
    name = world.cluster_queue_of(spec)
    if name is None:
        numbers = {"queue": spec.queue, "namespace": spec.namespace, **world.hints}
        yield Diagnostic("QUEUE_NOT_FOUND", subject, "queue", numbers)
        return
    selector = world.doors.cluster_queues[name].namespace_selector
    if not labels.matches(selector, world.doors.labels_of(spec.namespace)):
        numbers = {"queue": name, "namespace": spec.namespace}
        yield Diagnostic("NAMESPACE_NOT_ALLOWED", subject, "queue", numbers)
    if cause := world.snapshot.cluster_queues[name].inactive or _stop_of(spec, name, world):
        yield Diagnostic("QUEUE_CANNOT_ADMIT", subject, "queue", {"queue": name, "cause": cause})


def _stop_of(spec: WorkloadSpec, name: str, world: World) -> str:
    """Return the stop policy that keeps new work waiting: the queue's, or its door's (G19)."""
    local = world.doors.local_queues.get((spec.namespace, spec.queue))
    stops = [str(world.snapshot.cluster_queues[name].stop_policy)]
    stops += [str(local.stop_policy)] if local else []
    return next((stop for stop in stops if stop != StopPolicy.NONE), "")


def without_answered(
    found: Iterable[Diagnostic], spec: WorkloadSpec, world: World
) -> Iterator[Diagnostic]:
    """Return what a reader found less what the queue answers with a minimum runtime (G13)."""
    queue = world.snapshot.cluster_queues.get(world.cluster_queue_of(spec) or "")
    is_safe = queue is not None and queue.minimum_runtime.seconds > 0
    return (d for d in found if not (is_safe and d.code == "RESTART_WITHOUT_MIN_RUNTIME"))


def candidate(spec: WorkloadSpec, world: World) -> Workload:
    """Return the workload as the engine would see it, pending: all that its row would say."""
    queue = world.cluster_queue_of(spec)
    route = resolve_queue(spec.namespace, spec.queue, world.doors) if spec.queue else None
    kept_out = BlockerCode.GATED.value if spec.gates else ""
    workload = Workload(
        key=subject_of(spec),
        name=f"{spec.namespace}/{spec.name}",
        queue=queue,
        priority=world.priority_for(spec),
        created_at=world.snapshot.now,
        pod_sets=tuple(_engine_pod_set(p) for p in resolved(spec, world).pod_sets),
        preemptible=spec.preemptible,
        blocked=kept_out or (blocked(spec.namespace, route, world.doors) if spec.queue else ""),
        ceiling_queue=world.doors.ceiling(spec.ceiling_queue, queue),
        local_queue=str(route.local_queue) if route and route.local_queue else "",
        duration_s=lasts(spec.expected_duration_s, spec.max_execution_time_s),
        stateless=spec.stateless,
        checkpoint_interval_s=spec.checkpoint_interval_s,
        mends=spec.on_node_loss != REQUEUE,
    )
    return with_minima(workload, spec.min_member, spec.role_minima, roles_of(spec))


def _engine_pod_set(spec: PodSetSpec) -> PodSet:
    return PodSet(
        name=spec.name,
        count=spec.count,
        requests=spec.requests,
        node_selector=spec.node_selector,
        tolerations=tolerations_of(spec.tolerations),
        topology=topology_of(
            spec.topology.mode if spec.topology else "",
            spec.topology.level if spec.topology else None,
            spec.slices,
            spec.group,
        ),
        affinity=affinity_of(spec.affinity),
        charges=charges_of(spec.requests),
        device=device_request_of(spec.requests, spec.device_locality, spec.device_memory_mib),
    )


def _feasible(spec: WorkloadSpec, world: World) -> list[Diagnostic]:
    """Return what the engine finds on the empty cluster; a level that is unknown is left out."""
    queue = world.cluster_queue_of(spec)

    def known(pod_set: PodSetSpec) -> PodSetSpec:
        asked = pod_set.topology
        levels = [layer.level for layer in pod_set.slices]
        levels += [asked.level] if asked and asked.level else []
        if all(world.level_of(level, queue) for level in levels):
            return pod_set
        return replace(pod_set, topology=None, slices=(), group="")

    plain = tuple(known(pod_set) for pod_set in spec.pod_sets)
    work = candidate(replace(spec, pod_sets=plain), world)
    found = [_diagnostic(finding) for finding in world.checker.check(work)]
    inactive = queue is not None and world.snapshot.cluster_queues[queue].inactive
    return [d for d in found if not inactive or d.code == "NEVER_FITS_QUEUE"]


def _diagnostic(finding: Finding) -> Diagnostic:
    code, numbers = finding.code.value, dict(finding.numbers)
    if numbers.get("cause") in UNDECLARED:
        code = "UNCOVERED_RESOURCE"
    return Diagnostic(code, finding.subject, "pod_sets", numbers)


def _resources(spec: WorkloadSpec, world: World) -> Iterator[Diagnostic]:
    """Yield a warning for each resource that nothing here offers, with the nearest name (G14)."""
    known = world.resources | WELL_KNOWN
    for resource in sorted({r for p in spec.pod_sets for r in p.requests} - known):
        if resource.startswith(("nvidia.com/mig-", "hugepages-")) or resource == "pods":
            continue
        nearest = nearest_resource(resource, sorted(known))
        numbers = {"resource": resource, "nearest": nearest}
        yield Diagnostic("UNKNOWN_RESOURCE", subject_of(spec), "pod_sets", numbers)


def _not_honoured(spec: WorkloadSpec) -> Iterator[Diagnostic]:
    """Yield a warning for each field that is kept and not yet acted on."""
    subject = subject_of(spec)
    paths: list[tuple[str, bool]] = []
    grows = has_minima(spec.min_member, spec.role_minima, roles_of(spec))
    whole = spec.min_member is not None and not grows
    for index, pod_set in enumerate(spec.pod_sets):
        path = f"pod_sets[{index}]"
        paths += [
            (f"{path}.min_count", whole and pod_set.min_count not in (None, pod_set.count)),
        ]
    for path, asked in paths:
        if asked:
            yield Diagnostic("FIELD_NOT_HONOURED", subject, path, {"field": path})
