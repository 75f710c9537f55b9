"""How tests read manifests."""

from gpuplatform.common import reasons
from gpuplatform.common.manifests import load_documents
from queues.manifests import reader_for
from queues.specs import FlavorQuotasSpec, ResourceGroupSpec

GIB = 1024**3


def read(text):
    """Return specs and (code, path) of every document that is a promise."""
    specs, diagnostics = [], []
    for document in load_documents(text):
        reader = reader_for(document)
        if reader is not None:
            reading = reader(document)
            specs += reading.specs
            diagnostics += reading.diagnostics
    assert all(d.code in reasons.REGISTRY for d in diagnostics)
    return specs, diagnostics


def said(diagnostics):
    return [(d.code, d.path) for d in diagnostics]


def table(flavor, *quotas):
    resources = tuple(quota.resource for quota in quotas)
    return (ResourceGroupSpec(resources, (FlavorQuotasSpec(flavor, quotas),)),)
