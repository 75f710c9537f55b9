"""Files that commands take and give: plain or gzip in, text out, all of it bounded."""

import gzip
import zlib
from pathlib import Path
from typing import Any

from django.core.management.base import CommandError

MOST_BYTES = 256 * 1024 * 1024  # unpacked; the largest recorded file has a few
_GZIP = b"\x1f\x8b"


def read_bytes(file: Path) -> bytes:
    """Return what a file says, unpacked. Raises CommandError with the file's name.

    A small file that unpacks to more than ``MOST_BYTES`` is refused before it fills the memory.
    """
    try:
        with file.open("rb") as packed:
            is_gzip = packed.read(len(_GZIP)) == _GZIP
            packed.seek(0)
            source = gzip.GzipFile(fileobj=packed) if is_gzip else packed
            content = source.read(MOST_BYTES + 1)
    except (OSError, EOFError, zlib.error) as error:
        raise CommandError(f"{file}: {error}") from error
    if len(content) > MOST_BYTES:
        raise CommandError(f"{file}: more than {MOST_BYTES} bytes")
    return content


def read_text(file: Path) -> str:
    """Return the text of a file, unpacked. Raises CommandError with its name and line."""
    content = read_bytes(file)
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise CommandError(f"{file}: line {line}: not UTF-8 text") from error


def each_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return a JSON object's members. Raises ValueError where a name stands twice in it.

    Readers differ in which of the two they take, so a file that says both says neither.
    """
    members = dict(pairs)
    if len(members) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"the name {twice!r} stands twice in one object")
    return members


def write_text(output: Path, text: str) -> None:
    """Write a file whole. Raises CommandError with its name."""
    try:
        output.write_text(text, encoding="utf-8")
    except OSError as error:
        raise CommandError(f"{output}: {error}") from error
