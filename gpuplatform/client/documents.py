"""Files of manifests as the client needs them: which documents, of which kind.

The server reads them strictly; here only enough is read to send each to the right address.
"""

import sys
from collections.abc import Mapping
from gettext import gettext as _
from pathlib import Path
from typing import Any

import yaml

from gpuplatform.client.failures import Exit, Failed

# How people call what stands under an address of REST.
KINDS: Mapping[str, tuple[str, ...]] = {
    "cluster-queues": ("queue", "queues", "cq", "cluster-queue", "clusterqueue"),
    "local-queues": ("lq", "local-queue", "localqueue"),
    "cohorts": ("cohort",),
    "flavors": ("flavor", "rf"),
    "topologies": ("topology",),
    "nodes": ("node",),
    "teams": ("team",),
    "admission-checks": ("check", "admission-check", "admissioncheck"),
    "workloads": ("workload", "wl"),
}
# Manifests that REST answers with, by kind: the list that each stands in.
MANIFESTS: Mapping[str, str] = {
    "AdmissionCheck": "admission-checks",
    "ClusterQueue": "cluster-queues",
    "Cohort": "cohorts",
    "LocalQueue": "local-queues",
    "Node": "nodes",
    "ResourceFlavor": "flavors",
    "Team": "teams",
    "Topology": "topologies",
    "Workload": "workloads",
}
VERSION_NOTE = "gpuplatform.io/version"  # which version of an object a manifest shows
PUTTABLE = ("cluster-queues", "cohorts", "flavors", "topologies")


def address_of(kind: str) -> str:
    """Return the list of REST that ``kind`` names.

    Raises:
        Failed: there is no such kind.
    """
    plain = kind.lower()
    for address, names in KINDS.items():
        if plain == address or plain in names:
            return address
    known = ", ".join(names[0] for names in KINDS.values())
    words = _("There is no kind {kind}; known are {known}.").format(kind=kind, known=known)
    raise Failed(Exit.USAGE, words)


def read_text(file: str) -> bytes:
    """Return the bytes of a file; ``-`` is standard input.

    Raises:
        Failed: it cannot be read.
    """
    if file == "-":
        return sys.stdin.buffer.read()
    try:
        return Path(file).read_bytes()
    except OSError as error:
        raise Failed(Exit.USAGE, f"{file}: {error.strerror}") from error


def read_documents(text: bytes, file: str) -> list[dict[str, Any]]:
    """Return the documents of a text.

    Raises:
        Failed: it is no YAML, or a document is no mapping.
    """
    try:
        found = [one for one in yaml.safe_load_all(text) if one is not None]
    except (yaml.YAMLError, ValueError) as error:
        raise Failed(Exit.REJECTED, f"{file}: {error}") from error
    if not found or not all(isinstance(one, dict) for one in found):
        raise Failed(Exit.REJECTED, _("{file}: no documents to send.").format(file=file))
    return found


def without_version(manifest: Mapping[str, Any]) -> dict[str, Any]:
    """Return a manifest without the note of the version that it shows."""
    metadata = dict(manifest.get("metadata") or {})
    notes = dict(metadata.pop("annotations", None) or {})
    notes.pop(VERSION_NOTE, None)
    return {**manifest, "metadata": {**metadata, **({"annotations": notes} if notes else {})}}


def is_manifest(document: Mapping[str, Any]) -> bool:
    """Return whether a document is written as for Kubernetes; else it is one of ours."""
    return "apiVersion" in document
