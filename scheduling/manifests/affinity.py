"""Node affinity of a pod template: its required terms in, plain data out.

What only prefers, and what is about other pods, is kept with the template and not followed.
"""

from collections.abc import Mapping
from typing import Any

from gpuplatform.common.fields import KEPT, Fields
from scheduling.engine.affinity import NODE_NAME, whole_number
from scheduling.engine.terms import Operator

Row = Mapping[str, Any]  # {"key", "operator", "values"}
OPERATORS = tuple(operator.value for operator in Operator)
LISTS = (Operator.IN, Operator.NOT_IN)
BARE = (Operator.EXISTS, Operator.DOES_NOT_EXIST)
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def read_affinity(spec: Fields) -> tuple[tuple[Row, ...], ...]:
    """Return the terms of which one must hold, each the expressions that hold together."""
    affinity = spec.child("affinity")
    node = affinity.child("nodeAffinity")
    required = node.child(REQUIRED)
    terms = tuple(
        _term(row) for row in required.children("nodeSelectorTerms", required=bool(required.body))
    )
    node.not_honoured(PREFERRED)
    affinity.not_honoured("podAffinity", "podAntiAffinity")
    for fields in (required, node, affinity):
        fields.close()
    return terms


def _term(row: Fields) -> tuple[Row, ...]:
    labels = [_expression(part) for part in row.children("matchExpressions")]
    names = [_expression(part) for part in row.children("matchFields")]
    for part, expression in zip(row.children("matchFields"), names, strict=True):
        if expression["key"] != NODE_NAME:
            value = str(expression["key"])[:KEPT]
            part.report("BAD_VALUE", "key", value=value, allowed=NODE_NAME)
    row.close()
    return (*labels, *names)


def _expression(row: Fields) -> Row:
    operator = row.choice("operator", OPERATORS, Operator.EXISTS.value)
    if "operator" not in row:
        row.report("REQUIRED", "operator")
    key, values = row.text("key", required=True), row.texts("values")
    known = row.raw("operator") == operator
    if known and (allowed := _lacking(Operator(operator), values)):
        row.report("BAD_VALUE", "values", value=", ".join(values)[:KEPT], allowed=allowed)
    row.close()
    return {"key": key, "operator": operator, "values": values}


def _lacking(operator: Operator, values: list[str]) -> str:
    """Return which values the operator takes (Kubernetes' rules), if these are others."""
    if operator in BARE:
        return "no values" if values else ""
    if operator in LISTS:
        return "" if values else "at least one value"
    one = len(values) == 1 and whole_number(values[0]) is not None
    return "" if one else "one whole number"
