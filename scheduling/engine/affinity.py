"""Node affinity: terms of which one must hold, each a set of expressions that hold together.

Kubernetes' required node affinity: on nodes it is judged by all labels, on flavors by the
flavor's own labels alone (``admission.md`` K32).
"""

from collections.abc import Iterable, Mapping

from scheduling.engine.machines import Node
from scheduling.engine.snapshot import Expression
from scheduling.engine.terms import Operator

NODE_NAME = "metadata.name"  # the one field of a node that Kubernetes lets a term match

Term = tuple[Expression, ...]


def admits_node(terms: tuple[Term, ...], node: Node) -> bool:
    """Return whether the node may take pods with this affinity; without terms every node may.

    A term without expressions matches no node (Kubernetes).
    """
    if not terms:
        return True
    labels = {**node.labels, NODE_NAME: node.name}
    return any(term and _all_hold(term, labels) for term in terms)


def admits_flavor(terms: tuple[Term, ...], labels: Mapping[str, str]) -> bool:
    """Return whether the flavor with these node labels may serve pods with this affinity.

    Expressions on keys that the flavor does not have are left out; a term that loses all of
    them matches any flavor.
    """
    if not terms:
        return True
    own = (tuple(e for e in term if e.key in labels) for term in terms)
    return any(_all_hold(term, labels) for term in own)


def _all_hold(term: Iterable[Expression], labels: Mapping[str, str]) -> bool:
    return all(holds(expression, labels.get(expression.key)) for expression in term)


def holds(expression: Expression, value: str | None) -> bool:
    """Return whether one expression is true of a label's value; None: there is no such label."""
    match expression.operator:
        case Operator.IN:
            return value in expression.values
        case Operator.NOT_IN:
            return value not in expression.values
        case Operator.EXISTS:
            return value is not None
        case Operator.DOES_NOT_EXIST:
            return value is None
        case Operator.GREATER | Operator.LESS:
            return _compares(expression, value)


def _compares(expression: Expression, value: str | None) -> bool:
    """Return the comparison of whole numbers; false where either side is none."""
    mine = whole_number(value or "")
    bound = whole_number(expression.values[0]) if len(expression.values) == 1 else None
    if mine is None or bound is None:
        return False
    return mine > bound if expression.operator is Operator.GREATER else mine < bound


def whole_number(text: str) -> int | None:
    """Return the number that a label's value is to Gt and Lt; None: it is none."""
    digits = text[1:] if text[:1] in ("+", "-") else text
    return int(text) if digits.isascii() and digits.isdigit() and len(digits) < 20 else None  # noqa: PLR2004
