"""Kubernetes' own kinds that belong to promises: Namespace and PriorityClass."""

from gpuplatform.common.manifests import Document, Reading
from queues.choices import PriorityKind
from queues.manifests.reading import open_document, owner
from queues.rules.words import INT32_MIN
from queues.specs import NamespaceSpec, PriorityClassSpec


def read_namespace(document: Document) -> Reading:
    """Read a Namespace: its labels, and its owner where a label names one."""
    reading = Reading()
    fields = open_document(document, reading)
    spec = fields.child("spec")
    spec.accept("finalizers")
    spec.close()
    fields.close()
    labels = fields.child("metadata").labels("labels")
    reading.specs.append(NamespaceSpec(document.name, labels, owner(fields)))
    return reading


def read_priority_class(document: Document) -> Reading:
    """Read a Kubernetes PriorityClass; ``preemptionPolicy: Never`` is not acted on."""
    reading = Reading()
    fields = open_document(document, reading)
    value = fields.integer("value", minimum=INT32_MIN, required=True)
    reading.specs.append(
        PriorityClassSpec(
            PriorityKind.POD.value,
            document.name,
            value or 0,
            global_default=fields.flag("globalDefault"),
            description=fields.text("description"),
        )
    )
    policies = ("PreemptLowerPriority", "Never")
    if fields.choice("preemptionPolicy", policies, policies[0]) == "Never":
        fields.not_honoured("preemptionPolicy")
    fields.close()
    return reading


READERS = {"Namespace": read_namespace}
SCHEDULING_READERS = {"PriorityClass": read_priority_class}
