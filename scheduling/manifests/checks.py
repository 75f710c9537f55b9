"""Kueue's AdmissionCheck: who answers, and work of which queues is asked about.

What no controller of ours answers, people do. Kueue lets queues name their checks; here a check
names its queues, in an annotation. What a manifest leaves out stays as it is.
"""

from gpuplatform.common.fields import KEPT, Fields
from gpuplatform.common.manifests import parse_json
from gpuplatform.common.problems import Rejected
from scheduling.checks import KINDS, MANUAL
from scheduling.manifests.part import Part
from scheduling.specs import CheckSpec

CONTROLLER = "gpuplatform.io/"
QUEUES = "gpuplatform.io/queues"
PARAMETERS = "gpuplatform.io/parameters"
DESCRIPTION = "gpuplatform.io/description"


def read_check(part: Part) -> None:
    """Read an AdmissionCheck."""
    fields = part.fields()
    fields.accept("apiVersion", "kind", "metadata", "status")
    metadata = fields.child("metadata", required=True)
    metadata.text("name", required=True)
    notes, spec = metadata.child("annotations"), fields.child("spec", required=True)
    controller = spec.text("controllerName", required=True)
    kind = controller.removeprefix(CONTROLLER)
    if controller and (kind == controller or kind not in KINDS):
        kind = MANUAL
        part.report(
            "CHECK_BY_PEOPLE",
            "spec.controllerName",
            controller=controller[:KEPT],
            check=part.document.name,
        )
    queues = [name.strip() for name in notes.text(QUEUES).split(",")]
    spec.accept("parameters", "retryDelayMinutes")
    spec.close()
    fields.close()
    part.specs.append(
        CheckSpec(
            part.document.name,
            kind,
            tuple(dict.fromkeys(name for name in queues if name)),
            _parameters(notes),
            notes.text(DESCRIPTION),
        )
    )


def _parameters(notes: Fields) -> dict[str, object]:
    text = notes.text(PARAMETERS)
    try:
        found = parse_json(text) if text else {}
    except (ValueError, Rejected):
        found = None
    if isinstance(found, dict):
        return found
    notes.report("BAD_VALUE", PARAMETERS, value=text[:KEPT], allowed="a JSON object")
    return {}
