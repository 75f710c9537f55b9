"""Resource transformations: what a pod is charged in quota, where that is not what it requests.

A GPU may be charged as two units of an older one, a MIG slice by its memory; on nodes nothing
changes. Source: ``admission.md`` K20 and 4.4. Factors are exact and in natural units (cores,
bytes, pieces), requests and charges are integers in canonical units.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from math import ceil

from scheduling.engine.machines import CPU, Amounts

_MILLI = 1000


class Strategy(StrEnum):
    """Whether the input itself is charged as well."""

    RETAIN = "Retain"
    REPLACE = "Replace"


@dataclass(frozen=True, slots=True)
class Transformation:
    """What one natural unit of ``input`` is charged in other resources.

    A negative factor is an allowance. ``multiply_by``: the factors count once for each natural
    unit that the pod requests of this resource; where it requests none, they yield nothing.
    """

    input: str
    outputs: Mapping[str, Fraction]
    strategy: Strategy = Strategy.RETAIN
    multiply_by: str = ""


Table = Mapping[str, Transformation]  # by input


def table(transformations: Iterable[Transformation]) -> dict[str, Transformation]:
    """Return the transformations by input. Raises ValueError where two have the same one."""
    found: dict[str, Transformation] = {}
    for transformation in transformations:
        if transformation.input in found:
            raise ValueError(f"{transformation.input} is transformed twice")
        found[transformation.input] = transformation
    return found


def charges(requests: Amounts, rules: Table) -> dict[str, int]:
    """Return what one pod that requests this is charged, in canonical units; no zeros.

    Each input is transformed once, from the requests alone: no output is an input again, so the
    order of the rules means nothing. The sum of each output is raised to 0 if it is negative,
    and then rounded up.
    """
    total: defaultdict[str, Fraction] = defaultdict(Fraction)
    for resource, amount in requests.items():
        rule = rules.get(resource)
        if rule is None or rule.strategy is Strategy.RETAIN:
            total[resource] += amount
        if rule is not None:
            times = _natural(resource, amount) * _multiplier(rule, requests)
            for output, factor in rule.outputs.items():
                total[output] += times * factor * _unit(output)
    whole = {resource: ceil(max(Fraction(), amount)) for resource, amount in total.items()}
    return {resource: amount for resource, amount in sorted(whole.items()) if amount}


def charges_or_none(requests: Amounts, rules: Table) -> dict[str, int] | None:
    """Return :func:`charges`; None where no rule touches these requests."""
    return charges(requests, rules) if rules.keys() & requests.keys() else None


def _multiplier(rule: Transformation, requests: Amounts) -> Fraction:
    if not rule.multiply_by:
        return Fraction(1)
    return _natural(rule.multiply_by, requests.get(rule.multiply_by, 0))


def _natural(resource: str, amount: int) -> Fraction:
    return Fraction(amount, _unit(resource))


def _unit(resource: str) -> int:
    """Return how many canonical units one natural unit has."""
    return _MILLI if resource == CPU else 1
