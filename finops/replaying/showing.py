"""What pages, files and REST show of replays under other quotas."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any
from uuid import UUID

from django.db.models import Max

from finops.models import QuotaReplay
from finops.replaying.costing import CENTRAL
from finops.replaying.telling import SIDES
from gpuplatform.common import reasons
from gpuplatform.common.live import Feed
from queues.access import Actor

SHOWN = 50
TOPIC = "replays"
MICROSECONDS = 1_000_000
WAITS = ("workloads", "mean_s", "p50_s", "p90_s", "p99_s")
TEAM_COLUMNS = (
    "team",
    *(f"{name}_{side}" for side in SIDES for name in WAITS),
    *(f"cost_{side}" for side in SIDES),
    "currency",
)


@dataclass(frozen=True, slots=True)
class TeamRow:
    """One team's waits and cost, by side; what a side does not know is not in it."""

    team: str
    waits: Mapping[str, Mapping[str, Any]]
    cost: Mapping[str, Decimal]

    @property
    def difference(self) -> Decimal | None:
        """Return by how much it pays more under the edited quotas."""
        return self.cost["after"] - self.cost["before"] if self.cost else None


def replay_rows(actor: Actor) -> list[QuotaReplay]:
    """Return the newest replays, without what they played on. 1 query."""
    if not actor.sees_everything:
        return []
    rows = QuotaReplay.objects.defer("site", "promised", "result").order_by("-asked_at", "uid")
    return list(rows[:SHOWN])


def replay_of(actor: Actor, uid: UUID) -> QuotaReplay | None:
    """Return one replay; it shows the waits of all teams, so it is for readers of all."""
    if not actor.sees_everything:
        return None
    return QuotaReplay.objects.defer("site", "promised").filter(pk=uid).first()


def team_rows(row: QuotaReplay, actor: Actor) -> list[TeamRow]:
    """Return the teams of a result; money only to those who see all bills."""
    result = row.result or {}
    if not result:
        return []
    costs = result["cost"]["teams"] if actor.may_see_bills else {}
    waits = {side: result[side]["teams"] for side in SIDES}
    names = {name for side in waits.values() for name in side} | costs.keys()
    return [
        TeamRow(
            name,
            {side: teams[name] for side, teams in waits.items() if name in teams},
            {side: Decimal(amount) for side, amount in costs.get(name, {}).items()},
        )
        for name in sorted(names, key=lambda one: (one == CENTRAL, one))
    ]


def total_row(rows: list[TeamRow]) -> dict[str, Decimal]:
    """Return what all of them pay, by side."""
    return {
        side: sum((row.cost[side] for row in rows if row.cost), Decimal("0.00")) for side in SIDES
    }


def team_cells(row: QuotaReplay, actor: Actor) -> Iterator[dict[str, Any]]:
    """Yield the teams as rows of a file."""
    currency = row.result["cost"]["currency"] if row.result else ""
    for team in team_rows(row, actor):
        cells: dict[str, Any] = {"team": team.team, "currency": currency if team.cost else ""}
        for side, waits in team.waits.items():
            cells |= {f"{name}_{side}": waits[name] for name in WAITS}
        yield cells | {f"cost_{side}": amount for side, amount in team.cost.items()}


def as_json(row: QuotaReplay, actor: Actor, *, whole: bool = True) -> dict[str, Any]:
    """Return a replay as REST tells it; ``whole`` False leaves the result out."""
    told: dict[str, Any] = {
        "uid": str(row.uid),
        "from": row.starts_at,
        "to": row.ends_at,
        "note": row.note,
        "asked_by": row.asked_name,
        "asked_at": row.asked_at,
        "state": row.state,
        "stage": row.stage or None,
        "progress": {"done": row.come, "of": row.whole},
        "finished_at": row.finished_at,
        "cells": row.cells,
        "problem": _problem(row),
    }
    if whole:
        told["result"] = _result(row, actor)
    return told


def problem_words(row: QuotaReplay) -> str:
    """Return why it broke off, in a sentence."""
    return str(problem["detail"]) if (problem := _problem(row)) else ""


def _problem(row: QuotaReplay) -> dict[str, Any] | None:
    if not row.problem:
        return None
    code, numbers = row.problem["code"], row.problem["numbers"]
    return {"code": code, "detail": reasons.sentence(code, numbers), "numbers": numbers}


def _result(row: QuotaReplay, actor: Actor) -> dict[str, Any] | None:
    if row.result is None or actor.may_see_bills:
        return row.result
    return {name: value for name, value in row.result.items() if name != "cost"}


def replay_feed() -> Feed:
    """Return what tells open pages that a replay has gone on: microseconds of the last step."""

    def read(since: int | None) -> tuple[int, frozenset[str]]:
        last = QuotaReplay.objects.aggregate(at=Max("changed_at"))["at"]
        newest = round(last.timestamp() * MICROSECONDS) if last else 0
        moved = since is not None and newest > since
        return newest, frozenset({TOPIC}) if moved else frozenset()

    return read
