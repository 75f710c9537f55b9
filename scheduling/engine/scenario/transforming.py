"""Reading resource transformations, and charging the work of a scenario by them."""

from dataclasses import replace
from fractions import Fraction

from scheduling.engine.scenario.fields import Fields
from scheduling.engine.snapshot import Workload
from scheduling.engine.transformations import (
    Strategy,
    Table,
    Transformation,
    charges_or_none,
)


def read_transformations(settings: Fields) -> Table:
    """Return ``settings.resource_transformations`` by input."""
    rules: dict[str, Transformation] = {}
    for fields in settings.objects("resource_transformations"):
        rule = Transformation(
            fields.name("input"),
            _factors(fields),
            fields.choice("strategy", Strategy, Strategy.RETAIN),
            fields.text("multiply_by", ""),
        )
        if rule.input in rules:
            fields.problem(f"{rule.input!r} is there twice", "input")
        rules[rule.input] = rule
        fields.done()
    return rules


def _factors(fields: Fields) -> dict[str, Fraction]:
    """Return the exact factors; each is a number, as it is written in decimals."""
    outputs = fields.object("outputs")
    return {name: Fraction(str(outputs.number(name))) for name in outputs.keys()}  # noqa: SIM118


def transformed(work: Workload, rules: Table) -> Workload:
    """Return the workload with what its pods are charged; charges of its own stay."""
    if not rules:
        return work
    pod_sets = tuple(
        p if p.charges is not None else replace(p, charges=charges_or_none(p.requests, rules))
        for p in work.pod_sets
    )
    return replace(work, pod_sets=pod_sets)
