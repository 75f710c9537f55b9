"""Comparing an outcome with what was recorded, in three levels (``FORMAT.md`` 2)."""

import math
from collections.abc import Iterator, Mapping
from typing import Any

TOLERANCE = 1e-5
_MISSING = object()


def differences(expected: Mapping[str, Any], found: Mapping[str, Any], level: int) -> list[str]:
    """Return what differs at exactly this level, 1 to 3, as "path: expected ..., found ..."."""
    return list(_differ(_view(expected, level), _view(found, level, like=expected), ""))


def _view(outcome: Mapping[str, Any], level: int, like: Any = None) -> dict[str, Any]:
    final = outcome["final"]
    if level == 1:
        return {
            "cycles": [_cycle(cycle) for cycle in outcome["cycles"]],
            "final": {
                "admitted": sorted(final["admitted"]),
                "finished": sorted(final.get("finished", [])),
                "usage": final["usage"],
            },
        }
    if level == 2:  # noqa: PLR2004
        return {
            "borrows": [
                {one["workload"]: one["borrows"] for one in cycle.get("admitted", [])}
                for cycle in outcome["cycles"]
            ],
            **{
                name: final.get(name, {})
                for name in ("cohort_usage", "fair_shares", "local_queue_usage")
            },
        }
    return {
        "not_admitted": [
            {one["workload"]: _said(one) for one in cycle.get("not_admitted", [])}
            for cycle in outcome["cycles"]
        ],
        "pending": {name: _said(one) for name, one in final["pending"].items()},
        "order": _orders(outcome, like or outcome),
    }


def _cycle(cycle: Mapping[str, Any]) -> dict[str, Any]:
    admitted = [
        {name: value for name, value in one.items() if name != "borrows"}
        for one in cycle.get("admitted", [])
    ]
    return {
        "cycle": cycle["cycle"],
        "admitted": admitted,
        "preemptions": cycle.get("preemptions", []),
    }


def _said(one: Mapping[str, Any]) -> list[Any]:
    return [one["outcome"], one.get("reason")]


def _orders(outcome: Mapping[str, Any], like: Mapping[str, Any]) -> list[Any]:
    """Return the orders of the cycles for which one was recorded."""
    recorded = {cycle["cycle"] for cycle in like["cycles"] if "order" in cycle}
    return [cycle.get("order", []) for cycle in outcome["cycles"] if cycle["cycle"] in recorded]


def _differ(expected: Any, found: Any, path: str) -> Iterator[str]:
    if isinstance(expected, dict) and isinstance(found, dict):
        for key in sorted({*expected, *found}):
            below = f"{path}.{key}" if path else key
            yield from _differ(expected.get(key, _MISSING), found.get(key, _MISSING), below)
    elif isinstance(expected, list) and isinstance(found, list):
        for i in range(max(len(expected), len(found))):
            left = expected[i] if i < len(expected) else _MISSING
            yield from _differ(left, found[i] if i < len(found) else _MISSING, f"{path}[{i}]")
    elif not _equal(expected, found):
        yield f"{path}: expected {_shown(expected)}, found {_shown(found)}"


def _equal(expected: Any, found: Any) -> bool:
    if isinstance(expected, bool) or isinstance(found, bool):
        return expected is found
    numbers = isinstance(expected, int | float) and isinstance(found, int | float)
    if numbers and (isinstance(expected, float) or isinstance(found, float)):
        return math.isclose(expected, found, rel_tol=TOLERANCE, abs_tol=TOLERANCE)
    return bool(expected == found)


def _shown(value: Any) -> str:
    return "nothing" if value is _MISSING else repr(value)
