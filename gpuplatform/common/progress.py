"""How far something is, told by whoever does it to whoever wants to know, if anybody."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

Heed = Callable[[int, int], None]
_heed: ContextVar[Heed | None] = ContextVar("progress", default=None)


def report(come: int, whole: int) -> None:
    """Tell that ``come`` of ``whole`` is done; where nobody listens, this does nothing.

    Whoever listens may raise: then nobody wants the rest.
    """
    if heed := _heed.get():
        heed(come, whole)


@contextmanager
def heeding(heed: Heed) -> Iterator[None]:
    """Listen to what is done inside."""
    token = _heed.set(heed)
    try:
        yield
    finally:
        _heed.reset(token)
