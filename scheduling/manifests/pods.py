"""A pod template in, one pod set out: what a pod asks for, and where it may stand.

What one pod requests (``admission.md`` 4.4): the larger of all app containers with all sidecars,
and each init container with the sidecars started before it; requests that are absent equal the
limits. Pod-level requests rule for what they name, pod-level limits only where no container asks
(KEP-2837). Overhead comes on top of all.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from gpuplatform.common.fields import Fields
from gpuplatform.common.quantities import DIVISIBLE
from scheduling.manifests.affinity import read_affinity
from scheduling.manifests.annotations import (
    GROUP,
    check_keys,
    device_memory_of,
    locality_of,
    slices_of,
    topology_of,
)
from scheduling.specs import MOST_GRACE_S, PodSetSpec

POD_FIELDS = (
    "automountServiceAccountToken dnsConfig dnsPolicy enableServiceLinks "
    "ephemeralContainers hostAliases hostIPC hostPID hostUsers hostname imagePullSecrets os "
    "readinessGates restartPolicy securityContext serviceAccount serviceAccountName "
    "setHostnameAsFQDN shareProcessNamespace subdomain "
    "volumes"
)
POD_NOT_HONOURED = (
    "activeDeadlineSeconds hostNetwork nodeName preemptionPolicy resourceClaims "
    "runtimeClassName schedulingGates topologySpreadConstraints"
)
CONTAINER_FIELDS = (
    "args command env envFrom image imagePullPolicy lifecycle livenessProbe name ports "
    "readinessProbe securityContext startupProbe stdin stdinOnce terminationMessagePath "
    "terminationMessagePolicy tty volumeDevices volumeMounts workingDir"
)


@dataclass(frozen=True, slots=True)
class PodShape:
    """What a pod template says that matters to us."""

    requests: Mapping[str, int]
    node_selector: Mapping[str, str]
    tolerations: tuple[Mapping[str, str], ...]
    scheduler: str
    priority_class: str
    priority: int | None
    labels: Mapping[str, str]
    annotations: Mapping[str, str]
    grace_s: int | None  # it may take so long to stop
    pod_set: PodSetSpec  # of one pod, called "main"

    def as_pod_set(self, name: str, count: int, min_count: int | None = None) -> PodSetSpec:
        """Return ``count`` such pods as a pod set."""
        return replace(self.pod_set, name=name, count=count, min_count=min_count)


def read_template(template: Fields) -> PodShape:
    """Read a pod template: ``metadata`` and ``spec``."""
    meta, spec = template.child("metadata"), template.child("spec", required=True)
    template.close()
    annotations = meta.child("annotations")
    check_keys(annotations)
    requests = read_requests(spec)
    selector, tolerations = spec.labels("nodeSelector"), read_tolerations(spec)
    spec.accept(*POD_FIELDS.split())
    spec.not_honoured(*POD_NOT_HONOURED.split())
    shape = PodShape(
        requests=requests,
        node_selector=selector,
        tolerations=tolerations,
        scheduler=spec.text("schedulerName"),
        priority_class=spec.text("priorityClassName"),
        priority=spec.integer("priority", minimum=-(2**31)),
        labels=meta.labels("labels"),
        annotations=meta.labels("annotations"),
        grace_s=spec.integer("terminationGracePeriodSeconds", maximum=MOST_GRACE_S),
        pod_set=PodSetSpec(
            name="main",
            count=1,
            requests=requests,
            node_selector=selector,
            tolerations=tolerations,
            affinity=read_affinity(spec),
            topology=topology_of(annotations),
            slices=slices_of(annotations),
            group=annotations.text(GROUP),
            device_locality=locality_of(annotations),
            device_memory_mib=device_memory_of(annotations),
        ),
    )
    spec.close()
    return shape


def read_tolerations(spec: Fields) -> tuple[Mapping[str, str], ...]:
    """Return the tolerations; an unknown operator or effect is reported."""
    found = []
    for row in spec.children("tolerations"):
        toleration = {
            "key": row.text("key"),
            "operator": row.choice("operator", ("Equal", "Exists"), "Equal"),
            "value": row.text("value"),
            "effect": row.choice(
                "effect", ("", "NoSchedule", "PreferNoSchedule", "NoExecute"), ""
            ),
        }
        row.accept("tolerationSeconds")
        row.close()
        found.append({key: value for key, value in toleration.items() if value})
    return tuple(found)


def read_requests(spec: Fields) -> dict[str, int]:
    """Return what one pod asks for, in canonical units."""
    apps = [_container(row) for row in spec.children("containers", required=True)]
    total: Counter[str] = Counter()
    for requests in apps:
        total.update(requests)
    sidecars: Counter[str] = Counter()
    peaks: list[Counter[str]] = []
    for row in spec.children("initContainers"):
        always = row.text("restartPolicy") == "Always"
        requests = Counter(_container(row))
        peaks.append(requests + sidecars)
        if always:
            sidecars += requests
    whole = total + sidecars
    for peak in peaks:
        whole |= peak
    asked = {resource for requests in (*apps, *peaks) for resource in requests}
    limits, own = _amounts(spec.child("resources"))
    whole |= Counter({r: amount for r, amount in limits.items() if r not in asked})
    whole = Counter({**whole, **own})
    whole.update(spec.quantities("overhead"))
    return _lawful(spec, {r: amount for r, amount in sorted(whole.items()) if amount})


def _container(row: Fields) -> dict[str, int]:
    row.accept(*CONTAINER_FIELDS.split())
    row.not_honoured("resizePolicy")
    row.accept("restartPolicy")
    requests = resources_of(row.child("resources"))
    row.close()
    return requests


def resources_of(rows: Fields) -> dict[str, int]:
    """Return requests with the limits where they are absent."""
    limits, requests = _amounts(rows)
    return {**limits, **requests}


def _amounts(rows: Fields) -> tuple[dict[str, int], dict[str, int]]:
    """Return limits and requests; those that Kubernetes refuses are reported."""
    limits, requests = rows.quantities("limits"), rows.quantities("requests")
    for resource, amount in requests.items():
        limit = limits.get(resource, amount)
        if amount != limit and resource not in DIVISIBLE:  # Kubernetes overcommits only those
            numbers: dict[str, str | int] = {
                "cause": "LimitDiffers",
                "resource": resource,
                "limit": limit,
            }
            rows.child("requests").report("BAD_VALUE", resource, value=amount, **numbers)
        elif amount > limit:
            rows.report("REQUEST_ABOVE_LIMIT", "requests", resource=resource)
    rows.not_honoured("claims")
    rows.close()
    return limits, requests


def _lawful(spec: Fields, requests: Mapping[str, int]) -> dict[str, int]:
    """Return the requests without those that nobody may ask for."""
    found = dict(requests)
    if "pods" in found:
        spec.report("RESERVED_RESOURCE", "containers", resource="pods")
        del found["pods"]
    return found


def merged(mappings: Iterable[Mapping[str, str]]) -> dict[str, str]:
    """Return several label or annotation mappings as one; the first one to name a key wins."""
    found: dict[str, str] = {}
    for mapping in mappings:
        found = {**mapping, **found}
    return found
