"""Kueue's pod groups: pods that carry one group's name are one gang (``admission.md`` 4.2).

Pods of one shape are a pod set; the first pod speaks for the group. It starts with all pods that
the group counts, so a group whose pods are not all here could never start.
"""

from collections.abc import Iterable
from dataclasses import replace

from gpuplatform.common.fields import Fields
from scheduling.manifests.annotations import GROUP_FAST, GROUP_NAME, GROUP_RETRIES, GROUP_TOTAL
from scheduling.manifests.core import MOST_PODS
from scheduling.manifests.part import Part
from scheduling.specs import PodSetSpec, WorkloadSpec

KIND = "PodGroup"
LEFT_TO_GROUP = ("QUEUE_DEFAULTED", "OUTSIDE_QUOTA")  # findings that the first pod repeats


def join_pods(parts: Iterable[Part]) -> None:
    """Let the pods of each group be one workload, of the first of them; the others follow it."""
    groups: dict[tuple[str, str], list[Part]] = {}
    for part in parts:
        if part.document.kind != "Pod" or not part.specs:
            continue
        spec = part.specs[0]
        if isinstance(spec, WorkloadSpec) and (name := str(spec.labels.get(GROUP_NAME, ""))):
            groups.setdefault((spec.namespace, name), []).append(part)
    for (_namespace, name), members in groups.items():
        _join(name, members)


def _join(name: str, members: list[Part]) -> None:
    leader, specs = members[0], [_spec_of(part) for part in members]
    total, is_fast = _total(leader), _notes(leader).get(GROUP_FAST) == "true"
    for part, spec in zip(members[1:], specs[1:], strict=True):
        _check_alike(leader, specs[0], part, spec)
    pod_sets = _roles(specs)
    if total and is_fast and len(members) < total:
        missing = total - len(members)  # of the first pod's shape
        pod_sets[0] = replace(pod_sets[0], count=pod_sets[0].count + missing)
    elif total and len(members) != total:
        where = f"metadata.annotations[{GROUP_TOTAL}]"
        numbers = {"pods": len(members), "total": total}
        leader.report("POD_GROUP_INCOMPLETE", where, group=name[:64], **numbers)
    ends = any(_notes(part).get(GROUP_RETRIES) == "false" for part in members)
    bodies = [part.document.body for part in members]
    leader.specs[:] = [
        replace(
            specs[0],
            name=name,
            kind=KIND,
            pod_sets=tuple(pod_sets),
            on_failure="fail" if ends else specs[0].on_failure,
            template={"apiVersion": "v1", "kind": "List", "items": bodies},
        )
    ]
    for part in members[1:]:
        part.specs, part.member_of = [], leader.document.subject
        part.diagnostics = [d for d in part.diagnostics if d.code not in LEFT_TO_GROUP]


def _spec_of(part: Part) -> WorkloadSpec:
    spec = part.specs[0]
    assert isinstance(spec, WorkloadSpec), "a pod is work"
    return spec


def _notes(part: Part) -> dict[str, object]:
    metadata = part.document.body.get("metadata")
    found = metadata.get("annotations") if isinstance(metadata, dict) else None
    return found if isinstance(found, dict) else {}


def _total(part: Part) -> int:
    """Return how many pods the group counts; 0 where it does not say, or not as a number."""
    text = str(_notes(part).get(GROUP_TOTAL) or "")
    where = Fields(_notes(part), part.document.subject, part.diagnostics, "metadata.annotations")
    if not text:
        where.report("REQUIRED", GROUP_TOTAL)
    elif not (text.isascii() and text.isdecimal() and 0 < int(text[:9]) <= MOST_PODS):
        where.report("OUT_OF_RANGE", GROUP_TOTAL, value=text[:64], low=1, high=MOST_PODS)
    elif len(text) <= len(str(MOST_PODS)):
        return int(text)
    return 0


def _check_alike(leader: Part, first: WorkloadSpec, part: Part, spec: WorkloadSpec) -> None:
    """Report where a pod says otherwise than the first one: all share queue, class and count."""
    said = {
        "queue": (first.queue, spec.queue),
        "priority class": (first.priority_class, spec.priority_class),
        GROUP_TOTAL: (_notes(leader).get(GROUP_TOTAL), _notes(part).get(GROUP_TOTAL)),
    }
    for field, (one, other) in said.items():
        if one != other:
            numbers = {"field": field, "other": leader.document.subject}
            leader.report("POD_GROUP_DIFFERS", "", member=part.document.name[:64], **numbers)


def _roles(specs: Iterable[WorkloadSpec]) -> list[PodSetSpec]:
    """Return the pods by shape, in the order in which the shapes first come."""
    found: list[PodSetSpec] = []
    for spec in specs:
        (pod,) = spec.pod_sets
        for number, role in enumerate(found):
            if replace(role, name="", count=1) == replace(pod, name="", count=1):
                found[number] = replace(role, count=role.count + 1)
                break
        else:
            found.append(replace(pod, name=f"pods-{len(found)}", count=1))
    return found
