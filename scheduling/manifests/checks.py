"""Kueue's AdmissionCheck: a question that is asked of admitted work before it starts."""

from scheduling.checks import KINDS, MANUAL
from scheduling.manifests.part import Part
from scheduling.specs import CheckSpec

OURS = "gpuplatform.io/"  # before a kind of check that somebody here answers


def read_check(part: Part) -> None:
    """Read an AdmissionCheck; what no controller of ours answers, people do.

    Which queues ask it stands in the queues.
    """
    fields = part.fields()
    fields.accept("apiVersion", "kind", "status")
    meta = fields.child("metadata", required=True)
    if not part.document.name:
        meta.report("REQUIRED", "name")
    spec = fields.child("spec", required=True)
    controller = spec.text("controllerName", required=True)
    kind = controller.removeprefix(OURS)
    if controller == kind or kind not in KINDS:
        kind = MANUAL
        part.report(
            "CHECK_BY_PEOPLE",
            "spec.controllerName",
            controller=controller[:64],
            check=part.document.name,
        )
    spec.accept("parameters", "retryDelayMinutes")
    spec.close()
    fields.close()
    part.specs.append(CheckSpec(part.document.name, kind))
