"""Work that leaves its name to the cluster: ``metadata.generateName`` (Kubernetes' rule).

The prefix is cut so that the name has at most 63 characters, and five follow that spell no word.
Kubernetes never tells such a submission apart from one before: each is new work.
"""

import secrets
from collections.abc import Iterable
from dataclasses import replace

from gpuplatform.common.diagnostics import Diagnostic
from gpuplatform.common.manifests import Document
from scheduling import manifests as work
from scheduling.models import Workload

LETTERS = "bcdfghjklmnpqrstvwxz2456789"
LENGTH, LONGEST = 5, 63
NAMED_BY_PEOPLE = ("Node", "AdmissionCheck")  # no work


def with_names(documents: Iterable[Document]) -> tuple[list[Document], dict[int, Diagnostic]]:
    """Return the documents, work that only says how its name begins with a name of its own.

    And what is to be said of each that got one, by its index. No work of the namespace, live or
    ended, has the name, nor has another of these documents.
    """
    named: list[Document] = []
    told: dict[int, Diagnostic] = {}
    for document in documents:
        prefix = _prefix(document)
        if not prefix:
            named.append(document)
            continue
        fresh = _called(document, _free(prefix, document.namespace, named))
        numbers: dict[str, str | int] = {"name": fresh.name, "prefix": prefix}
        told[fresh.index] = Diagnostic(
            "NAME_GENERATED", fresh.subject, "metadata.generateName", numbers
        )
        named.append(fresh)
    return named, told


def _prefix(document: Document) -> str:
    """Return how the name begins; "" where it is named, or is no work."""
    if document.name or document.kind in NAMED_BY_PEOPLE or not work.reads(document):
        return ""
    return document.fields([]).child("metadata").text("generateName")


def _free(prefix: str, namespace: str, named: Iterable[Document]) -> str:
    taken = {document.name for document in named}
    while True:
        ending = "".join(secrets.choice(LETTERS) for _ in range(LENGTH))
        name = f"{prefix[: LONGEST - LENGTH]}{ending}"
        rows = Workload.objects.filter(namespace=namespace, name__startswith=name)  # replicas too
        if name not in taken and not rows.exists():
            return name


def _called(document: Document, name: str) -> Document:
    meta = {**document.body["metadata"], "name": name}
    return replace(document, name=name, body={**document.body, "metadata": meta})
