"""What pods are charged in quota: the platform's resource transformations, from its settings."""

import json
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured

from gpuplatform.common.quantities import parse_factor
from scheduling.engine.transformations import (
    Strategy,
    Table,
    Transformation,
    charges_or_none,
    table,
)

KEYS = {"input", "strategy", "outputs", "multiplyBy"}


def charges_of(requests: Mapping[str, int]) -> dict[str, int] | None:
    """Return what one pod with these requests is charged; None: what it requests."""
    return charges_or_none(requests, read_rules(settings.RESOURCE_TRANSFORMATIONS))


@lru_cache(maxsize=4)
def read_rules(text: str) -> Table:
    """Return transformations as Kueue writes them, a JSON list. Equal texts are read once.

    Raises:
        ImproperlyConfigured: it is no such list, a factor is no quantity, an input comes twice.
    """
    try:
        return table(_transformation(document) for document in _documents(text))
    except (ValueError, TypeError, KeyError, AttributeError) as problem:
        raise ImproperlyConfigured(f"RESOURCE_TRANSFORMATIONS: {problem!r}") from problem


def _documents(text: str) -> list[Mapping[str, Any]]:
    found = json.loads(text or "[]")
    if not isinstance(found, list):
        raise TypeError("must be a list")
    return found


def _transformation(document: Mapping[str, Any]) -> Transformation:
    if unknown := sorted(document.keys() - KEYS):
        raise ValueError(f"unknown {', '.join(unknown)}")
    outputs = {name: parse_factor(factor) for name, factor in document.get("outputs", {}).items()}
    strategy = Strategy(document.get("strategy", Strategy.RETAIN))
    return Transformation(document["input"], outputs, strategy, document.get("multiplyBy", ""))
