"""Kubernetes labels and label selectors: their spelling, and what a selector matches. Pure.

A selector is the JSON of Kubernetes: ``{"matchLabels": {...}, "matchExpressions": [...]}``. Both
parts must hold. ``None`` matches nothing and ``{}`` matches everything (``admission.md`` K9).
"""

import re
from collections.abc import Mapping
from typing import Any

LABEL_LENGTH = 63
NAME_LENGTH = 253
LABEL = re.compile(r"[a-z0-9]([a-z0-9-]*[a-z0-9])?", re.ASCII)
SUBDOMAIN = re.compile(
    r"[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*", re.ASCII
)
_PART = re.compile(r"[A-Za-z0-9]([A-Za-z0-9_.-]*[A-Za-z0-9])?", re.ASCII)
_TIER = re.compile(r"tier-([1-9][0-9]{0,8})\.topology\.gpuplatform\.io/(.+)", re.ASCII)
SET_OPERATORS = frozenset({"In", "NotIn"})
OPERATORS = SET_OPERATORS | {"Exists", "DoesNotExist"}


def tier_label(tier: int, name: str = "") -> str:
    """Return the label of nodes that says in which HyperNode of a tier they are."""
    return f"tier-{tier}.topology.gpuplatform.io/{name or f'tier-{tier}'}"


def tier_of(key: str) -> tuple[int, str] | None:
    """Return the tier that a label is about, and its name or ""; None: it is about none."""
    match = _TIER.fullmatch(key)
    if match is None:
        return None
    return int(match[1]), "" if match[2] == f"tier-{match[1]}" else match[2]


def tier_labels(labels: Mapping[str, str]) -> dict[str, str]:
    """Return what HyperNodes have said of a node, lowest tier first."""
    found = [(tier, key) for key in labels if (tier := tier_of(key)) is not None]
    return {key: labels[key] for _tier, key in sorted(found)}


def is_dns_label(text: str) -> bool:
    """Return whether ``text`` may name a namespace: at most 63 of ``a-z0-9-``."""
    return len(text) <= LABEL_LENGTH and LABEL.fullmatch(text) is not None


def is_dns_subdomain(text: str) -> bool:
    """Return whether ``text`` may name a Kubernetes object: DNS labels joined by dots."""
    return len(text) <= NAME_LENGTH and SUBDOMAIN.fullmatch(text) is not None


def is_label_key(text: str) -> bool:
    """Return whether ``text`` may be a label's key, or a resource's name: ``[prefix/]name``."""
    prefix, slash, name = text.rpartition("/")
    if slash and not is_dns_subdomain(prefix):
        return False
    return len(name) <= LABEL_LENGTH and _PART.fullmatch(name) is not None


def is_label_value(text: str) -> bool:
    """Return whether ``text`` may be a label's value; "" may."""
    return text == "" or (len(text) <= LABEL_LENGTH and _PART.fullmatch(text) is not None)


def matches(selector: Mapping[str, Any] | None, labels: Mapping[str, str]) -> bool:
    """Return whether ``labels`` satisfy ``selector``, which ``queues.rules`` has found sound."""
    if selector is None:
        return False
    wanted = selector.get("matchLabels") or {}
    expressions = selector.get("matchExpressions") or []
    return all(labels.get(key) == value for key, value in wanted.items()) and all(
        _holds(expression, labels) for expression in expressions
    )


def _holds(expression: Mapping[str, Any], labels: Mapping[str, str]) -> bool:
    value = labels.get(str(expression["key"]))
    values = expression.get("values") or []
    match expression["operator"]:
        case "In":
            return value is not None and value in values
        case "NotIn":  # Kubernetes: a label that is absent is not in the set
            return value is None or value not in values
        case "Exists":
            return value is not None
        case _:
            return value is None
