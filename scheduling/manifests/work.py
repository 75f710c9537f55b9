"""What every kind of workload shares: the queue, the priority, the declared times."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from gpuplatform.common.fields import Fields
from scheduling.manifests import annotations as words
from scheduling.manifests.part import Part
from scheduling.manifests.pods import PodShape, merged
from scheduling.specs import PodSetSpec, WorkloadSpec

VOLCANO = "volcano"
VOLCANO_DEFAULT = "default"  # the queue that Volcano takes where nobody names one


@dataclass(slots=True)
class Work:
    """A workload on its way from a document to a spec.

    ``volcano_queue`` is a queue that a Volcano kind names in its own field;
    ``own_priority_class`` one that the kind has a field for; ``member_queue`` is the queue of a
    group's pods, where the group itself names none.
    """

    part: Part
    fields: Fields
    pod_sets: list[PodSetSpec] = field(default_factory=list)
    shapes: list[PodShape] = field(default_factory=list)
    volcano_queue: str = ""
    own_priority_class: str = ""
    member_queue: str = ""
    is_volcano: bool = False
    min_member: int | None = None
    role_minima: dict[str, int] = field(default_factory=dict)
    max_execution_time_s: int | None = None
    expected_duration_s: int | None = None
    max_retries: int | None = None
    on_failure: str = "restart"
    policies: list[dict[str, Any]] = field(default_factory=list)
    min_success: int | None = None
    ttl_s: int | None = None

    def spec(self) -> WorkloadSpec:
        """Return the spec; called once all fields of the kind were read."""
        meta = self.fields.child("metadata")
        labels, notes = meta.child("labels"), meta.child("annotations")
        queue, ceiling = self._queues(labels.body, notes.body)
        document = self.part.document
        made = WorkloadSpec(
            namespace=document.namespace,
            name=document.name,
            pod_sets=tuple(self.pod_sets),
            queue=queue,
            kind=document.kind,
            priority_class=self._priority_class(labels.body),
            priority=next((s.priority for s in self.shapes if s.priority is not None), None),
            labels=merged([meta.labels("labels"), *(s.labels for s in self.shapes)]),
            annotations=merged(
                [meta.labels("annotations"), *(s.annotations for s in self.shapes)]
            ),
            ceiling_queue=ceiling,
            min_member=self.min_member,
            role_minima=self.role_minima,
            elastic=notes.body.get(words.ELASTIC) == "true",
            preemptible=self._preemptible(labels.body, notes.body),
            expected_duration_s=words.seconds(notes, words.DURATION) or self.expected_duration_s,
            max_execution_time_s=self._longest(words.seconds(labels, words.MAX_EXECUTION)),
            checkpoint_interval_s=words.seconds(notes, words.CHECKPOINT),
            max_retries=self.max_retries,
            on_failure=self.on_failure,
            policies=tuple(self.policies),
            min_success=self.min_success,
            ttl_s=self.ttl_s,
            grace_s=max((s.grace_s for s in self.shapes if s.grace_s is not None), default=None),
            gates=words.gates_of(notes),
            on_node_loss=words.on_node_loss_of(notes),
            template=document.body,
        )
        words.check_keys(notes)
        words.check_keys(labels)
        return made

    def _longest(self, labelled: int | None) -> int | None:
        """Return when it is stopped: Kueue's label and the kind's own deadline both hold."""
        known = [n for n in (labelled, self.max_execution_time_s) if n is not None]
        return min(known, default=None)

    def _queues(self, labels: Mapping[str, str], notes: Mapping[str, str]) -> tuple[str, str]:
        """Return the queue that is charged, and the one that only bounds (``decisions.md`` 5)."""
        local = str(labels.get(words.QUEUE_NAME) or notes.get(words.QUEUE_NAME) or "")
        volcano = self.volcano_queue or self._noted_volcano_queue(notes)
        if not self.is_volcano:
            local = local or self.member_queue
        if local:
            return local, volcano
        if not volcano and self._uses_volcano():
            self.part.report("QUEUE_DEFAULTED", queue=VOLCANO_DEFAULT)
        elif not volcano:
            self.part.report("OUTSIDE_QUOTA")
        return volcano, ""

    def _noted_volcano_queue(self, notes: Mapping[str, str]) -> str:
        noted = [notes, *(shape.annotations for shape in self.shapes)]
        return next((str(n[words.VOLCANO_QUEUE]) for n in noted if n.get(words.VOLCANO_QUEUE)), "")

    def _preemptible(self, labels: Mapping[str, str], notes: Mapping[str, str]) -> bool:
        """Return whether others may evict it: yes, unless Volcano's word says no."""
        said = [labels, notes]
        said += [found for shape in self.shapes for found in (shape.labels, shape.annotations)]
        return all(str(found.get(words.PREEMPTABLE, "true")) != "false" for found in said)

    def _uses_volcano(self) -> bool:
        return self.is_volcano or any(shape.scheduler == VOLCANO for shape in self.shapes)

    def _priority_class(self, labels: Mapping[str, str]) -> str:
        """Return the class that counts (``admission.md`` K11): label, kind's field, first pod."""
        named = [labels.get(words.PRIORITY_CLASS), self.own_priority_class]
        named += [shape.priority_class for shape in self.shapes]
        return next((str(name) for name in named if name), "")


def begin(part: Part) -> Work:
    """Start reading a document of work; what Kubernetes adds to every object is known."""
    fields = part.fields()
    fields.accept("apiVersion", "kind", "metadata", "status")
    meta = fields.child("metadata", required=True)
    if not part.document.name:
        meta.report("REQUIRED", "name")
    return Work(part, fields)


def total(pod_sets: Sequence[PodSetSpec]) -> dict[str, int]:
    """Return what all pods of the pod sets ask for together."""
    found: dict[str, int] = {}
    for pod_set in pod_sets:
        for resource, amount in pod_set.requests.items():
            found[resource] = found.get(resource, 0) + amount * pod_set.count
    return found
