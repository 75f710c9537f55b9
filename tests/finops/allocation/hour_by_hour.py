"""A second way to meter a month: every hour looked at on its own, straight from the rules.

All windows of ``months`` begin and end on the hour, so hours are instants here.
"""

from collections import defaultdict
from collections.abc import Iterator
from datetime import datetime, timedelta
from fractions import Fraction
from typing import Any

from tests.finops.allocation.months import HOURS, START, Document, exact

Key = tuple[str, str]


def in_force(rows: list[Document], hour: int) -> list[Document]:
    """Return the rows in force during an hour."""
    now = START + timedelta(hours=hour)
    return [
        row
        for row in rows
        if ("from" not in row or datetime.fromisoformat(row["from"]) <= now)
        and ("to" not in row or now < datetime.fromisoformat(row["to"]))
    ]


def meter(document: Document) -> dict[Key, dict[str, Any]]:
    """Return by cluster and flavor the sums of a month in GPU-hours."""
    found: dict[Key, dict[str, Any]] = defaultdict(_sums)
    for hour in range(HOURS):
        groups: dict[Key, dict[str, list[Document]]] = defaultdict(lambda: defaultdict(list))
        for name in ("capacity", "usage", "quotas"):
            for row in in_force(document[name], hour):
                groups[row["cluster"], row["flavor"]][name].append(row)
        for key, rows in groups.items():
            _look(rows, found[key])
    return dict(found)


def _sums() -> dict[str, Any]:
    return {
        "totals": defaultdict(Fraction),
        "queues": defaultdict(lambda: defaultdict(Fraction)),
        "loans": defaultdict(Fraction),
    }


def _look(rows: dict[str, list[Document]], sums: dict[str, Any]) -> None:
    capacity = sum((exact(row["gpus"]) for row in rows["capacity"]), Fraction(0))
    used = sum((exact(row["gpus"]) for row in rows["usage"]), Fraction(0))
    quotas = {row["queue"]: row for row in rows["quotas"]}
    held: dict[str, Fraction] = defaultdict(Fraction)
    for row in rows["usage"]:
        if row["queue"]:
            held[row["queue"]] += exact(row["gpus"])
    names = sorted(quotas.keys() | held.keys())
    nominal = {name: exact(quotas[name]["nominal"]) if name in quotas else 0 for name in names}
    borrowed = {name: max(Fraction(0), held[name] - nominal[name]) for name in names}
    idle = {name: max(Fraction(0), nominal[name] - held[name]) for name in names}
    lent = dict.fromkeys(names, Fraction(0))
    for members in _cohorts(names, quotas):
        for lender, borrower, gpus in _loans(members, quotas, borrowed, idle):
            sums["loans"][lender, borrower] += gpus
            if lender:
                lent[lender] += gpus
    net_idle = {name: idle[name] - lent[name] for name in names}
    room = capacity - used
    promised = sum(net_idle.values(), Fraction(0))
    scale = max(Fraction(0), room) / promised if promised > room and promised else Fraction(1)
    for name in names:
        record = sums["queues"][name]
        record["held"] += held[name]
        record["nominal"] += nominal[name]
        record["borrowed"] += borrowed[name]
        record["lent"] += lent[name]
        record["net_idle"] += net_idle[name] * scale
    totals = sums["totals"]
    totals["capacity"] += capacity
    totals["used"] += used
    totals["net_idle"] += promised * scale
    totals["unquota"] += max(Fraction(0), room - promised * scale)
    totals["over"] += max(Fraction(0), -room)


def _cohorts(names: list[str], quotas: dict[str, Document]) -> Iterator[list[str]]:
    members: dict[str, list[str]] = defaultdict(list)
    for name in names:
        cohort = quotas[name]["cohort"] if name in quotas else None
        if cohort is None:
            yield [name]
        else:
            members[cohort].append(name)
    yield from members.values()


def _loans(
    members: list[str],
    quotas: dict[str, Document],
    borrowed: dict[str, Fraction],
    idle: dict[str, Fraction],
) -> Iterator[tuple[str, str, Fraction]]:
    lendable = {}
    for name in members:
        limit = quotas[name]["lending_limit"] if name in quotas else None
        lendable[name] = idle[name] if limit is None else min(idle[name], exact(limit))
    needed = sum((borrowed[name] for name in members), Fraction(0))
    offered = sum(lendable.values(), Fraction(0))
    for borrower in members:
        if not borrowed[borrower]:
            continue
        part = borrowed[borrower] / needed
        if needed > offered:
            yield "", borrower, (needed - offered) * part
        for lender in members:
            if lendable[lender]:
                lent = lendable[lender] * min(needed, offered) / offered
                yield lender, borrower, lent * part
