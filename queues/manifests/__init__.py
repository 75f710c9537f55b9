"""Manifests of promises to specs: Kueue's kinds, Volcano's Queue, Kubernetes' own, ours.

``reader_for`` says who reads a document; a reader takes the document and returns a ``Reading``:
specs in the order in which they are to be saved, and every diagnostic.
"""

from collections.abc import Callable

from gpuplatform.common.manifests import Document, Reading
from queues.manifests import core, kueue, own, volcano

Reader = Callable[[Document], Reading]
READERS: dict[tuple[str, str], Reader] = {
    **{(kueue.GROUP, kind): reader for kind, reader in kueue.READERS.items()},
    **{(volcano.GROUP, kind): reader for kind, reader in volcano.READERS.items()},
    **{(own.GROUP, kind): reader for kind, reader in own.READERS.items()},
    **{("", kind): reader for kind, reader in core.READERS.items()},
    **{("scheduling.k8s.io", kind): reader for kind, reader in core.SCHEDULING_READERS.items()},
}


def reader_for(document: Document) -> Reader | None:
    """Return the reader of the document's API group and kind; None: not one of ours."""
    group = document.api_version.rpartition("/")[0]
    return READERS.get((group, document.kind))
