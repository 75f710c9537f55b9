"""What an edit means for rooms above the one that saves it: they register who can tell.

A watch is asked before the edit and remembers what it must; what it returns is asked after the
edit, in the same transaction, and tells what became of it.
"""

from collections.abc import Callable
from typing import Any, TypeVar

from django.db import transaction

from gpuplatform.common.diagnostics import Diagnostic

Done = TypeVar("Done")
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


def carry_out(
    spec: Any, act: Callable[[], Done], *, keep: bool | Callable[[list[Diagnostic]], bool]
) -> tuple[Done, list[Diagnostic]]:
    """Make ``spec`` so, and return what ``act`` returned and what that means.

    ``keep`` False, or saying so of what it means: as if it had never been; what ``act`` returned
    must hold all that is needed.
    """
    with transaction.atomic():
        told = watch_change(spec)
        done, found = act(), told()
        transaction.set_rollback(not (keep(found) if callable(keep) else keep))
    return done, found
