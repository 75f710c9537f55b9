"""What time it is. One seam, so that a history can be played through the real product."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import datetime

from django.utils import timezone

_virtual: ContextVar[datetime | None] = ContextVar("virtual_now", default=None)


def now() -> datetime:
    """Return the present: the virtual one inside :func:`at`, else the machine's, in UTC."""
    return _virtual.get() or timezone.now()


@contextmanager
def at(instant: datetime) -> Iterator[None]:
    """Let it be ``instant`` for whatever runs inside."""
    token = _virtual.set(instant)
    try:
        yield
    finally:
        _virtual.reset(token)
