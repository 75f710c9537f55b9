"""The result of a replay as plain data: one shape for row, page, file and REST.

``{"workloads", "left_out", "was" | "before" | "after": {"waits", "teams": {team: waits}, "use"},
"cost": {"currency", "idle_policy", "unpriced", "teams": {team: {"was", "before", "after"}}}}``.
Waits are seconds, use GPU-hours, money plain texts; the team "" of costs is what no team pays.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from decimal import Decimal
from typing import Any

from finops.replaying.costing import Costs
from gpuplatform.common.money import digits
from scheduling.replay.figures import Figures, waits_of
from scheduling.replay.tape import Stay

SIDES = ("was", "before", "after")


def played(found: Figures) -> dict[str, Any]:
    """Return what came out under one set of quotas."""
    return {
        "waits": asdict(found.waits),
        "teams": {team: asdict(waits) for team, waits in found.by_team.items()},
        "queues": {queue: asdict(use) for queue, use in found.use_by_queue.items()},
        "use": asdict(found.use),
        "utilisation": found.utilisation,
        "held_idle_gpu_hours": found.held_idle_gpu_hours,
        "most_waiting": found.most_waiting,
        "unfinished": found.unfinished,
    }


def really(stays: Iterable[Stay]) -> dict[str, Any]:
    """Return how long work really waited, as far as the rows say."""
    stays = list(stays)
    by_team: dict[str, list[Stay]] = defaultdict(list)
    for stay in stays:
        by_team[stay.team].append(stay)
    teams = {team: asdict(waits_of(own)) for team, own in sorted(by_team.items())}
    return {"waits": asdict(waits_of(stays)), "teams": teams}


def costs(sides: Mapping[str, Costs], **facts: Any) -> dict[str, Any]:
    """Return what each team pays on each side."""
    names = sorted({name for side in sides.values() for name in side})
    nothing = Decimal("0.00")
    teams = {
        name: {side: digits(found.get(name, nothing)) for side, found in sides.items()}
        for name in names
    }
    return {**facts, "teams": teams}
