"""Two people edited one object: what each of them changed, and what the form then holds.

Three states are compared: the one that the form was opened on, the one that is stored now, and
the one that was typed. What the second editor did not touch takes the newer value.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any

from queues.descriptions import as_json
from queues.specs import FlavorQuotasSpec, QuotaSpec, ResourceGroupSpec

Cell = tuple[str, str]  # flavor, resource
AMOUNTS = ("nominal", "borrowing_limit", "lending_limit")
_BROKEN = (ValueError, TypeError, KeyError, AttributeError)


def read_seen(text: str) -> dict[str, Any]:
    """Return the state that an edit form carried along; {} where it is not readable."""
    try:
        seen = json.loads(text) if text else {}
        _cells_of_json(seen.get("groups", ()))
    except _BROKEN:
        return {}
    return dict(seen)


def as_it_was(seen: Mapping[str, Any], now: Any) -> Any:
    """Return the spec that the form was opened on; its quota table stays that of ``now``."""
    changes = {}
    for column in fields(now):
        if column.name == "groups" or column.name not in seen:
            continue
        value, before = getattr(now, column.name), seen[column.name]
        if not is_dataclass(value):
            changes[column.name] = before
        elif isinstance(before, Mapping):
            changes[column.name] = as_it_was(before, value)
    return replace(now, **changes)


def merge(seen: Mapping[str, Any], theirs: Any, yours: Any) -> Any:
    """Return ``yours`` with the newer value wherever it says the same as ``seen``."""
    changes = {}
    for column in fields(yours):
        before = seen.get(column.name)
        mine, now = getattr(yours, column.name), getattr(theirs, column.name)
        if column.name == "groups":
            changes["groups"] = _merge_groups(before or (), now, mine)
        elif is_dataclass(mine):
            changes[column.name] = merge(before or {}, now, mine)
        elif as_json(mine) == before:
            changes[column.name] = now
    return replace(yours, **changes)


def _merge_groups(
    seen: Iterable[Mapping[str, Any]],
    theirs: tuple[ResourceGroupSpec, ...],
    yours: tuple[ResourceGroupSpec, ...],
) -> tuple[ResourceGroupSpec, ...]:
    """Merge tables cell by cell; the answer has a group for each cell, as a form shows it."""
    base, now, mine = _cells_of_json(seen), _cells(theirs), _cells(yours)
    if mine == base:
        return theirs
    merged = {cell: _merge_cell(base.get(cell), now.get(cell), mine.get(cell)) for cell in mine}
    merged |= {cell: quota for cell, quota in now.items() if cell not in {*mine, *base}}
    return tuple(
        ResourceGroupSpec((resource,), (FlavorQuotasSpec(flavor, (quota,)),))
        for (flavor, resource), quota in merged.items()
        if quota is not None
    )


def _merge_cell(
    seen: QuotaSpec | None, theirs: QuotaSpec | None, yours: QuotaSpec | None
) -> QuotaSpec | None:
    if yours == seen:
        return theirs
    if yours is None or theirs is None or seen is None:
        return yours
    newer = {
        name: getattr(theirs, name)
        for name in AMOUNTS
        if getattr(yours, name) == getattr(seen, name)
    }
    return replace(yours, **newer)


def _cells(groups: Iterable[ResourceGroupSpec]) -> dict[Cell, QuotaSpec]:
    return {
        (flavor.flavor, quota.resource): quota
        for group in groups
        for flavor in group.flavors
        for quota in flavor.quotas
    }


def _cells_of_json(groups: Iterable[Mapping[str, Any]]) -> dict[Cell, QuotaSpec]:
    return {
        (flavor["flavor"], quota["resource"]): QuotaSpec(
            quota["resource"], *(quota[name] for name in AMOUNTS)
        )
        for group in groups
        for flavor in group["flavors"]
        for quota in flavor["quotas"]
    }
