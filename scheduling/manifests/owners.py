"""Work that other work of the same submission makes, as a dump shows both.

A Job's pods, a JobSet's Jobs and the Workload that Kueue writes for either are the owner's own
and are not queued beside it (``admission.md`` 4.1). Owners are known by their uid.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from gpuplatform.common.manifests import Document
from scheduling.manifests.ended import NO_WORK
from scheduling.manifests.part import Part


def owners_among(documents: Iterable[Document]) -> dict[str, str]:
    """Return how findings name each document of work that has a uid, by that."""
    found = {}
    for document in documents:
        uid = _metadata(document).get("uid")
        if isinstance(uid, str) and uid and document.kind not in NO_WORK:
            found[uid] = document.subject
    return found


def is_owned(part: Part, owners: Mapping[str, str]) -> bool:
    """Return whether one of ``owners`` makes this work, and report which."""
    for number, row in _controllers(part.document):
        owner = owners.get(str(row.get("uid")), part.document.subject)
        if owner != part.document.subject:
            part.report("OWNED_BY", f"metadata.ownerReferences[{number}]", owner=owner)
            return True
    return False


def _controllers(document: Document) -> Iterator[tuple[int, Mapping[str, Any]]]:
    rows = _metadata(document).get("ownerReferences")
    for number, row in enumerate(rows if isinstance(rows, list) else []):
        if isinstance(row, Mapping) and row.get("controller") is True:
            yield number, row


def _metadata(document: Document) -> Mapping[str, Any]:
    found = document.body.get("metadata")
    return found if isinstance(found, Mapping) else {}
