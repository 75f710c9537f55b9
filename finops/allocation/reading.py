"""The strict reader of facts: JSON in, ``Facts`` out, or every problem by its path.

Source: FORMAT.md 1. First each field alone; only where that finds nothing, the cross checks.
A null and an absent field are the same.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from finops.allocation import facts as known
from finops.allocation import fields
from finops.allocation.checks import contradictions
from finops.allocation.facts import Facts
from finops.allocation.fields import BadField, Reader
from finops.allocation.problems import BadFacts, Problem

REQUIRED = "required"


class Field(NamedTuple):
    """One field of a row: its reader, whether it must be there, its name among the facts."""

    read: Reader
    is_required: bool = False
    attribute: str = ""


@dataclass(frozen=True, slots=True)
class Shape:
    """What a row is made of; an absent field takes the default of ``row``."""

    row: type[Any]
    fields: Mapping[str, Field]


def _must(read: Reader, attribute: str = "") -> Field:
    return Field(read, is_required=True, attribute=attribute)


_TEXT, _NUMBER = Field(fields.text), Field(fields.number)
_FROM, _TO = Field(fields.at, attribute="start"), Field(fields.at, attribute="end")
_DATED = {"from": _FROM, "to": _TO}
_WINDOW = {"from": _must(fields.at, "start"), "to": _must(fields.at, "end")}
_SIGNED = Field(fields.signed_number)

PERIOD = Shape(
    known.Period,
    {
        "start": _must(fields.at),
        "end": _must(fields.at),
        "time_zone": Field(fields.time_zone),
        "currency": _TEXT,
    },
)
POLICY = Shape(
    known.Policy,
    {
        "usage_source": Field(fields.choice(known.UsageSource)),
        "idle": Field(fields.choice(known.IdlePolicy)),
        "idle_scope": Field(fields.choice(known.FileIdleScope)),
        "idle_basis": Field(fields.choice(known.IdleBasis)),
        "preempted": Field(fields.choice(known.PreemptedPolicy)),
        "borrow_surcharge": _NUMBER,
        "lender_credit": _NUMBER,
        "token_weight": Field(fields.choice(known.TokenWeight)),
        "tokens_without_team": Field(fields.choice(known.TokensWithoutTeam)),
        "detail": Field(fields.choice(known.Detail)),
    },
)
LISTS: Mapping[str, Shape] = {
    "teams": Shape(
        known.Team,
        {
            "id": _must(fields.text),
            "name": _TEXT,
            "cost_center": _TEXT,
            "accounting_mode": Field(fields.choice(known.AccountingMode)),
        },
    ),
    "mappings": Shape(
        known.Mapping,
        {
            "kind": _must(fields.choice(known.MappingKind)),
            "cluster": _TEXT,
            "key": _TEXT,
            "value": _must(fields.text),
            "team": _must(fields.text),
            **_DATED,
        },
    ),
    "namespaces": Shape(
        known.NamespaceMode,
        {
            "cluster": _TEXT,
            "namespace": _must(fields.text),
            "mode": _must(fields.choice(known.NamespaceBilling)),
            **_DATED,
        },
    ),
    "deployments": Shape(
        known.Deployment,
        {
            "model_group": _must(fields.text),
            "cluster": _must(fields.text),
            "namespace": _must(fields.text),
            "tokens_per_second": _NUMBER,
            "gpus": _NUMBER,
            **_DATED,
        },
    ),
    "prices": Shape(
        known.Price,
        {
            "flavor": _must(fields.text),
            "gpu_hour": _must(fields.number),
            "cpu_hour": _NUMBER,
            "gib_hour": _NUMBER,
            "currency": _TEXT,
            **_DATED,
        },
    ),
    "resolved_prices": Shape(
        known.ResolvedPrice,
        {
            "cluster": _must(fields.text),
            "node": _must(fields.text),
            "flavor": _must(fields.text),
            "gpu_hour": _must(fields.number),
            "cpu_hour": _NUMBER,
            "gib_hour": _NUMBER,
        },
    ),
    "capacity": Shape(
        known.Capacity,
        {
            "cluster": _must(fields.text),
            "node": _must(fields.text),
            "flavor": _must(fields.text),
            "gpus": _must(fields.number),
            "cpus": _NUMBER,
            "memory_gib": _NUMBER,
            "from": _must(fields.at, "start"),
            "to": _TO,
        },
    ),
    "usage": Shape(
        known.Usage,
        {
            "workload": _must(fields.text),
            "cluster": _must(fields.text),
            "queue": _TEXT,
            "namespace": _TEXT,
            "labels": Field(fields.texts),
            "annotations": Field(fields.texts),
            "node": _TEXT,
            "flavor": _must(fields.text),
            "gpus": _must(fields.number),
            "cpus": _NUMBER,
            "memory_gib": _NUMBER,
            "from": _must(fields.at, "start"),
            "to": _TO,
            "admitted": Field(fields.at),
            "preempted": Field(fields.flag),
            "reclaimed_by": _TEXT,
        },
    ),
    "quotas": Shape(
        known.Quota,
        {
            "cluster": _must(fields.text),
            "queue": _must(fields.text),
            "cohort": _TEXT,
            "flavor": _must(fields.text),
            "nominal": _must(fields.number),
            "borrowing_limit": _NUMBER,
            "lending_limit": _NUMBER,
            **_DATED,
        },
    ),
    "iron": Shape(
        known.Iron,
        {
            "cluster": _must(fields.text),
            "node": _TEXT,
            "namespace": _TEXT,
            "labels": Field(fields.texts),
            "annotations": Field(fields.texts),
            **_WINDOW,
            "gpu_hours": _NUMBER,
            "gpu_cost": _SIGNED,
            "cpu_cost": _SIGNED,
            "ram_cost": _SIGNED,
            "pv_cost": _SIGNED,
            "network_cost": _SIGNED,
            "lb_cost": _SIGNED,
            "currency": _TEXT,
        },
    ),
    "tokens": Shape(
        known.TokenUse,
        {
            "request_id": _TEXT,
            "at": Field(fields.at),
            "day": Field(fields.day),
            "team_id": Field(fields.text_or_empty),
            "model_group": _must(fields.text),
            "key_alias": _TEXT,
            "tags": Field(fields.tags),
            "prompt_tokens": Field(fields.count),
            "completion_tokens": Field(fields.count),
            "spend": _NUMBER,
            "cache_hit": Field(fields.flag),
            "status": Field(fields.choice(known.TokenStatus)),
            "currency": _TEXT,
        },
    ),
    "token_prices": Shape(
        known.TokenPrice,
        {
            "model_group": _must(fields.text),
            "input_per_million": _must(fields.number),
            "output_per_million": _must(fields.number),
            "currency": _TEXT,
            **_DATED,
        },
    ),
    "loads": Shape(
        known.Load,
        {"source": _must(fields.choice(known.LoadSource)), "cluster": _TEXT, **_WINDOW},
    ),
    "shared": Shape(
        known.SharedItem,
        {
            "id": _must(fields.text),
            "amount": _NUMBER,
            "namespace": _TEXT,
            "cluster": _TEXT,
            "method": _must(fields.choice(known.SharingMethod)),
            "percentages": Field(fields.percentages),
            "currency": _TEXT,
            **_DATED,
        },
    ),
    "adjustments": Shape(
        known.Adjustment,
        {
            "id": _must(fields.text),
            "team": _must(fields.text),
            "amount": _must(fields.signed_number),
            "currency": _TEXT,
            "original_line": _TEXT,
            "reason": _must(fields.text),
        },
    ),
}


def read_facts(document: object) -> Facts:
    """Return the facts of a JSON document.

    Raises:
        BadFacts: every problem of the fields, else every contradiction, sorted by path.
    """
    problems: set[Problem] = set()
    found = _sections(document, problems)
    if problems:
        raise BadFacts(problems)
    facts = Facts(**found)
    problems.update(contradictions(facts))
    if problems:
        raise BadFacts(problems)
    return facts


def _sections(document: object, problems: set[Problem]) -> dict[str, Any]:
    if not isinstance(document, dict):
        problems.add(Problem("", "bad_type"))
        return {}
    given = {name: value for name, value in document.items() if value is not None}
    for name in given.keys() - {"period", "policy", *LISTS}:
        problems.add(Problem(name, "unknown_field"))
    found: dict[str, Any] = {}
    if "period" not in given:
        problems.add(Problem("period", REQUIRED))
    else:
        found["period"] = _row(PERIOD, given["period"], "period", problems)
    if "policy" in given:
        found["policy"] = _row(POLICY, given["policy"], "policy", problems)
    for name, shape in LISTS.items():
        if name in given:
            found[name] = _rows(shape, given[name], name, problems)
    if "teams" not in given or given["teams"] == []:
        problems.add(Problem("teams", REQUIRED))
    return found


def _rows(shape: Shape, value: object, path: str, problems: set[Problem]) -> tuple[Any, ...]:
    if not isinstance(value, list):
        problems.add(Problem(path, "bad_type"))
        return ()
    return tuple(
        _row(shape, entry, f"{path}[{index}]", problems) for index, entry in enumerate(value)
    )


def _row(shape: Shape, value: object, path: str, problems: set[Problem]) -> Any:
    """Return the row, or None where something is wrong with it, which is then in ``problems``."""
    if not isinstance(value, dict):
        problems.add(Problem(path, "bad_type"))
        return None
    before = len(problems)
    given = {name: entry for name, entry in value.items() if entry is not None}
    found: dict[str, Any] = {}
    for name, entry in given.items():
        field = shape.fields.get(name)
        if field is None:
            problems.add(Problem(f"{path}.{name}", "unknown_field"))
            continue
        try:
            found[field.attribute or name] = field.read(entry)
        except BadField as error:
            problems.update(Problem(f"{path}.{name}", code) for code in error.codes)
    for name, field in shape.fields.items():
        if field.is_required and name not in given:
            problems.add(Problem(f"{path}.{name}", REQUIRED))
    _check_window(found, f"{path}.end" if shape is PERIOD else f"{path}.to", problems)
    return shape.row(**found) if len(problems) == before else None


def _check_window(found: Mapping[str, Any], path: str, problems: set[Problem]) -> None:
    start, end = found.get("start"), found.get("end")
    if start is not None and end is not None and end <= start:
        problems.add(Problem(path, "empty_window"))
