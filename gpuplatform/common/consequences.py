"""What an edit means for rooms above the one that saves it: they register who can tell.

A watch is asked before the edit and remembers what it must; what it returns is asked after the
edit, in the same transaction, and tells what became of it.
"""

from collections.abc import Callable
from typing import Any

from gpuplatform.common.diagnostics import Diagnostic

Told = Callable[[], list[Diagnostic]]
Watch = Callable[[Any], Told]
_watches: list[Watch] = []


def register_watch(watch: Watch) -> None:
    """Register who can tell what a changed spec means; the room calls this when it starts."""
    if watch not in _watches:
        _watches.append(watch)


def watch_change(spec: Any) -> Told:
    """Return what tells, once ``spec`` is saved, what that means; call this before saving."""
    told = [watch(spec) for watch in _watches]
    return lambda: [diagnostic for one in told for diagnostic in one()]
