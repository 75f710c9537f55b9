"""The file of a backup: a zip of ``manifest.json`` and of the database as its engine writes it."""

import hashlib
import json
import os
import zipfile
import zlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

FORMAT = 1
PRODUCT = "gpuplatform"
MANIFEST, PAYLOAD = "manifest.json", "database"
PIECE = 1024 * 1024  # bytes read at once
Migrations = Mapping[str, list[str]]  # names by application, sorted


class BackupError(Exception):
    """A backup cannot be made or restored; the text says why. Nothing was changed."""


@dataclass(frozen=True, slots=True)
class Manifest:
    """What a backup says about itself.

    ``database`` is ``sqlite`` or ``postgresql``; ``sha256`` and ``bytes`` are those of the payload
    unpacked; ``migrations`` were applied to it; ``audit_head`` is for ``verify_audit --head``.
    """

    version: str
    made_at: str
    database: str
    sha256: str
    bytes: int
    migrations: Migrations
    audit_head: str = ""
    format: int = FORMAT
    product: str = PRODUCT


def digest_of(path: Path) -> str:
    """Return the SHA-256 of a file, in hex."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def pack(payload: Path, manifest: Manifest, to: Path) -> None:
    """Write a backup to ``to``, whole or not at all; it is not there yet.

    Raises:
        BackupError: it is there.
    """
    unready = payload.with_name("backup.zip")
    with zipfile.ZipFile(unready, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(MANIFEST, json.dumps(asdict(manifest), indent=2, sort_keys=True) + "\n")
        archive.write(payload, PAYLOAD)
    unready.chmod(0o600)
    with unready.open("rb") as file:
        os.fsync(file.fileno())
    try:
        os.link(unready, to)  # unlike a rename, it never replaces
    except FileExistsError as error:
        raise BackupError(f"{to} is there already; a backup replaces no file.") from error


def read_manifest(path: Path) -> Manifest:
    """Return what a backup says about itself.

    Raises:
        BackupError: the file is no backup, or one of a later format.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            told: dict[str, Any] = json.loads(archive.read(MANIFEST))
        if told.get("product") != PRODUCT:
            raise BackupError(f"{path} is no backup of {PRODUCT}.")
        if told.get("format") != FORMAT:
            raise BackupError(
                f"{path} has format {told.get('format')}; this version reads {FORMAT}."
            )
        return Manifest(**told)
    except OSError as error:
        raise BackupError(f"{path} cannot be read: {error.strerror}.") from error
    except (zipfile.BadZipFile, zlib.error, KeyError, TypeError, ValueError) as error:
        raise BackupError(f"{path} is no backup, or it is damaged: {error}.") from error


def unpack(path: Path, manifest: Manifest, to: Path) -> None:
    """Write the database of a backup to ``to``.

    Raises:
        BackupError: it is not what the manifest says.
    """
    try:
        with (
            zipfile.ZipFile(path) as archive,
            archive.open(PAYLOAD) as source,
            to.open("wb") as out,
        ):
            while piece := source.read(PIECE):
                out.write(piece)
    except (zipfile.BadZipFile, zlib.error, KeyError, EOFError) as error:
        raise BackupError(f"{path} is damaged: {error}.") from error
    if (to.stat().st_size, digest_of(to)) != (manifest.bytes, manifest.sha256):
        raise BackupError(f"{path} is damaged: its database is not the one of its manifest.")
