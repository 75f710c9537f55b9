"""The figures of replays as plain data and as a table: one shape for JSON, CSV, pages and REST."""

from collections.abc import Iterable
from dataclasses import asdict
from typing import Any

from scheduling.replay.figures import SIZES, Figures

HEAD = ("", "mean wait s", "p50 s", "p90 s", "p99 s", *(f"wait {size} GPUs" for size in SIZES))
HEAD = (*HEAD, "used %", "borrowed GPUh", "evictions", "lost GPUh", "never ran")


def as_shape(found: Figures) -> dict[str, Any]:
    """Return the figures as plain data."""
    return asdict(found)


def as_rows(found: Iterable[Figures]) -> list[tuple[str, ...]]:
    """Return one row of texts for each replay, under :data:`HEAD`."""
    return [_row(one) for one in found]


def _row(one: Figures) -> tuple[str, ...]:
    waits, use = one.waits, one.use
    seconds = (waits.mean_s, waits.p50_s, waits.p90_s, waits.p99_s)
    sizes = (one.by_size[size].mean_s for size in SIZES)
    share = one.utilisation_while_coming
    used = "-" if share is None else f"{100 * share:.1f}"
    others = (use.borrowed_gpu_hours, use.evictions, use.lost_gpu_hours, one.unfinished)
    return (
        one.name,
        *(f"{value:,.0f}" for value in (*seconds, *sizes)),
        used,
        *(f"{value:,.0f}" for value in others),
    )
