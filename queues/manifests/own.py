"""Kinds of our own, for what neither Kueue nor Kubernetes has: Team."""

from gpuplatform.common.manifests import Document, Reading
from queues.choices import AccountingMode
from queues.manifests.reading import open_document
from queues.specs import TeamSpec

GROUP = "gpuplatform.io"
VERSION = f"{GROUP}/v1"


def read_team(document: Document) -> Reading:
    """Read a Team."""
    reading = Reading()
    fields = open_document(document, reading)
    spec = fields.child("spec")
    usual = TeamSpec(document.name)
    reading.specs.append(
        TeamSpec(
            document.name,
            display_name=spec.text("displayName"),
            cost_center=spec.text("costCenter"),
            accounting_mode=spec.choice(
                "accountingMode", AccountingMode.values, usual.accounting_mode
            ),
            description=spec.text("description"),
        )
    )
    spec.close()
    fields.close()
    return reading


READERS = {"Team": read_team}
