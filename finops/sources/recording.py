"""What a source really answered, kept compressed with its hash. Pure.

A recording is one JSON object a line, in the order of asking, so that it can be read again with
the source away: ``{"request": "GET /allocation?...", "body": "..."}``. The bodies are whole; a
request never holds a secret. Equal answers give equal bytes.
"""

import gzip
import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from hashlib import sha256

from finops.sources.failures import SourceError

LARGEST = 256 * 1024 * 1024  # bytes of all bodies of one load
LEVEL = 6
LOSSLESS = ("utf-8", "surrogateescape")  # an error page may be in any encoding


@dataclass(frozen=True, slots=True)
class Exchange:
    """One question and the body that answered it."""

    request: str
    body: bytes


@dataclass(slots=True)
class Recording:
    """The exchanges of one load, in order."""

    exchanges: list[Exchange] = field(default_factory=list)
    size: int = 0

    def add(self, request: str, body: bytes) -> None:
        """Keep one exchange.

        Raises:
            SourceError: the load is larger than any may be.
        """
        self.size += len(body)
        if self.size > LARGEST:
            raise SourceError("SOURCE_TOO_LARGE", limit=LARGEST)
        self.exchanges.append(Exchange(request, body))

    def packed(self) -> bytes:
        """Return the recording as compressed bytes; the same exchanges give the same bytes."""
        lines = (
            json.dumps({"request": one.request, "body": one.body.decode(*LOSSLESS)})
            for one in self.exchanges
        )
        return gzip.compress("\n".join(lines).encode(), LEVEL, mtime=0)

    def fingerprint(self) -> str:
        """Return the SHA-256 of everything that was asked and answered."""
        found = sha256()
        for one in self.exchanges:
            for part in (one.request.encode(), one.body):
                found.update(len(part).to_bytes(8, "big"))
                found.update(part)
        return found.hexdigest()


def unpacked(packed: bytes) -> Recording:
    """Return a recording from its compressed bytes."""
    text = gzip.decompress(packed).decode()
    return recorded(
        Exchange(one["request"], one["body"].encode(*LOSSLESS))
        for one in map(json.loads, text.split("\n"))
    )


def recorded(exchanges: Iterable[Exchange]) -> Recording:
    """Return a recording of exchanges that were made before."""
    found = Recording()
    for one in exchanges:
        found.add(one.request, one.body)
    return found
