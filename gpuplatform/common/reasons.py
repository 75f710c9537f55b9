"""The one registry of reasons: what a code means, in a sentence, and what helps.

Three families share it: summary reasons of pending work, blockers (why exactly), diagnostics of
what somebody submitted or edited. A sentence is a template over the numbers that travel with the
code; amounts come with a ``resource`` and are written the way people say them.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from gpuplatform.common.quantities import format_quantity

ERROR, WARNING, INFO = "error", "warning", "info"
AMOUNTS = (
    "needed",
    "available",
    "need",
    "have",
    "ceiling",
    "largest",
    "sum",
    "capacity",
    "amount",
)


@dataclass(frozen=True, slots=True)
class Reason:
    """What a code says and how serious it is. ``next_step`` is what would help, or ""."""

    severity: str
    sentence: str | Promise
    next_step: str | Promise = ""


def describe_amount(resource: str, amount: int) -> str:
    """Return an amount in the words of people: ``32 GPUs``, ``1 GPU``, ``128 CPU``, ``512Gi memory``."""
    number = format_quantity(resource, amount)
    if resource.endswith("/gpu"):
        return f"{number} GPU" if amount == 1 else f"{number} GPUs"
    names = {"cpu": "CPU", "memory": "memory", "pods": "pods"}
    return f"{number} {names.get(resource, resource)}"


class _Numbers(dict[str, Any]):
    """Numbers of a sentence; what is missing shows as a question mark, never as an error."""

    def __missing__(self, key: str) -> str:
        return "?"


def sentence(code: str, numbers: Mapping[str, Any]) -> str:
    """Return the sentence of ``code`` with its numbers filled in; the bare code if unknown."""
    reason = REGISTRY.get(code)
    return _fill(reason.sentence, numbers) if reason else code


def next_step(code: str, numbers: Mapping[str, Any]) -> str:
    """Return what would help, or "" where nothing general can be said."""
    reason = REGISTRY.get(code)
    return _fill(reason.next_step, numbers) if reason else ""


def severity(code: str) -> str:
    """Return how serious ``code`` is; an unknown code is an error."""
    reason = REGISTRY.get(code)
    return reason.severity if reason else ERROR


def _fill(template: str | Promise, numbers: Mapping[str, Any]) -> str:
    words = _Numbers(numbers)
    resource = str(numbers.get("resource") or "nvidia.com/gpu")
    for key in AMOUNTS:
        if isinstance(numbers.get(key), int):
            words[key] = describe_amount(resource, numbers[key])
    return str(template).format_map(words)


REGISTRY: dict[str, Reason] = {
    # ---- diagnostics of a workload ------------------------------------------------------------
    "NEVER_FITS_QUEUE": Reason(
        ERROR,
        _("{queue} can never give {need}: its ceiling is {ceiling}."),
        _("Ask for at most {ceiling}, or ask an admin for a higher limit."),
    ),
}
