"""Ages, sizes and reasons as short as a column is wide."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

MINUTE, HOUR, DAY = 60, 3_600, 86_400
GPU = "nvidia.com/gpu"


def age(since: str | None, until: str | None = None) -> str:
    """Return a span as ``45s``, ``12m``, ``3h20m`` or ``4d``; "" where it has not begun."""
    if not since:
        return ""
    end = datetime.fromisoformat(until) if until else datetime.now(UTC)
    return span(int((end - datetime.fromisoformat(since)).total_seconds()))


def span(seconds: int) -> str:
    """Return seconds in the largest units that matter."""
    seconds = max(0, seconds)
    if seconds < 2 * MINUTE:
        return f"{seconds}s"
    if seconds < 2 * HOUR:
        return f"{seconds // MINUTE}m"
    if seconds < 2 * DAY:
        return f"{seconds // HOUR}h{seconds % HOUR // MINUTE:02}m"
    return f"{seconds // DAY}d"


def waited(row: Mapping[str, Any]) -> str:
    """Return how long a workload has waited since its last eviction, as its page does.

    Of one that was admitted or ended: how long it had waited by then.
    """
    until = row.get("admitted_at") or row.get("finished_at")
    return age(row.get("waiting_since") or row.get("created_at"), until)


def reason(row: Mapping[str, Any]) -> str:
    """Return the code of why it waits, or how it ended."""
    if row.get("status") == "finished":
        return str(row.get("outcome") or "")
    if row.get("status") != "pending":
        return ""
    blockers = row.get("blockers") or []
    return str(blockers[0].get("code") if blockers else row.get("pending_reason") or "")


def gpus(count: object) -> str:
    """Return a number of GPUs."""
    return f"{count} GPU"
