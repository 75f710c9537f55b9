"""Whether a kept world, fed with what was noted, is the world that stands in the tables."""

from dataclasses import replace
from typing import Any

from django.db import connection

from gpuplatform.common import clock, wakeup
from scheduling.engine.snapshot import Memory, Snapshot, Workload
from scheduling.kept import Kept
from scheduling.loader import load_snapshot


def unseen(kept: Kept) -> list[str]:
    """Return what the next cycle of a worker that kept this world would not know."""
    if not kept.feed(kept.news()) or kept.is_outdated():
        return []  # it reads everything anew
    fresh = load_snapshot()
    mine, rows = kept.state.workloads, {work.key: work for work in fresh.workloads}
    works = [
        f"workload {key}: {_plain(mine.get(key))} kept, {_plain(rows.get(key))} in the rows"
        for key in sorted({*mine, *rows})
        if _plain(mine.get(key)) != _plain(rows.get(key))
    ]
    before, after = _platform(kept.platform(clock.now())), _platform(fresh)
    return works + [
        f"{name}: {getattr(before, name)} kept, {getattr(after, name)} in the rows"
        for name in before.__slots__
        if getattr(before, name) != getattr(after, name)
    ]


def has_woken() -> bool:
    """Return whether this transaction wakes the worker once it has committed."""
    return any(func is wakeup._wake for _sids, func, _robust in connection.run_on_commit)  # noqa: SLF001


def _platform(snapshot: Snapshot) -> Snapshot:
    """Return promises and machines, without work, memory and what is only a forecast."""
    return replace(snapshot, workloads=(), memory=Memory(), shapes=(), now=0.0)


def _plain(work: Workload | None) -> Any:
    if work is None or work.admission is None:
        return work and replace(work, version=0)
    parts = tuple(sorted(work.admission.assignments, key=lambda one: one.pod_set))
    return replace(work, version=0, admission=replace(work.admission, assignments=parts))
