"""The one registry of reasons: what a code means, in a sentence, and what helps.

Three families share it: summary reasons of pending work, blockers (why exactly), diagnostics of
what somebody submitted or edited. A sentence is a template over the numbers that travel with the
code; amounts come with a ``resource`` and are written the way people say them.
"""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from functools import partial
from string import Formatter
from typing import Any

from django.utils.translation import gettext, ngettext

from gpuplatform.common.locales import by_locale
from gpuplatform.common.quantities import format_quantity
from gpuplatform.common.reason import ERROR, INFO, WARNING, Reason
from gpuplatform.common.reasons_agents import AGENTS
from gpuplatform.common.reasons_checks import PRICES, WORKLOADS
from gpuplatform.common.reasons_codes import PROTOCOL, RULES
from gpuplatform.common.reasons_cost import COST
from gpuplatform.common.reasons_devices import DEVICES
from gpuplatform.common.reasons_facts import FACTS
from gpuplatform.common.reasons_hypernodes import HYPERNODES
from gpuplatform.common.reasons_input import DOUBTFUL, UNREADABLE
from gpuplatform.common.reasons_life import LIFE
from gpuplatform.common.reasons_promises import PROMISES
from gpuplatform.common.reasons_replays import OPERATIONS, REPLAYS
from gpuplatform.common.reasons_routes import ROUTES
from gpuplatform.common.reasons_sources import SOURCES
from gpuplatform.common.reasons_waiting import BLOCKERS, EVICTIONS, INACTIVE_QUEUES, PENDING

__all__ = ["ERROR", "INFO", "REGISTRY", "WARNING", "Reason"]

AMOUNTS = (
    "borrowed_before",
    "borrowed_after",
    "needed",
    "available",
    "need",
    "have",
    "ceiling",
    "largest",
    "sum",
    "capacity",
    "amount",
    "missing",
    "promised",
    "unmanaged",
    "kept",
    "out",
    "over",
)
INSTANTS = ("until",)  # seconds since the epoch
SECONDS = ("waited_s", "rests_s", "limit_s")
GPU_HOURS = ("their_hours", "our_hours")
PROMISED = ("their_gpus", "our_gpus")
LAST_INSTANT = 253_402_300_799  # of the year 9999: later ones cannot be written


def describe_amount(resource: str, amount: int) -> str:
    """Return an amount in the words of people: ``32 GPUs``, ``1 GPU``, ``512Gi memory``."""
    number = format_quantity(resource, amount)
    if resource.endswith("/gpu"):
        return ngettext("%(n)s GPU", "%(n)s GPUs", amount) % {"n": number}
    names = {"cpu": gettext("CPU"), "memory": gettext("memory"), "pods": gettext("pods")}
    return f"{number} {names.get(resource, resource)}"


# A blocker has its numbers in columns; sentences of diagnostics call the same things otherwise.
ALIASES = (
    ("need", "needed"),
    ("ceiling", "available"),
    ("have", "available"),
    ("largest", "available"),
    ("queue", "where"),
    ("flavor", "where"),
    ("level", "where"),
)


ECHOED = 80  # characters of what somebody sent that an answer repeats
ANSWERS = frozenset(  # of our own making: never cut
    (
        *("allowed", "why", "holders", "chain", "queues", "workloads", "missing"),
        *("because", "fields", "names", "preemptors", "nodes"),
    )
)


def shortened(numbers: Mapping[str, Any]) -> dict[str, Any]:
    """Return the numbers of an answer; a text that somebody sent is cut, ours are whole."""
    return {
        key: f"{value[: ECHOED - 3]}..."
        if isinstance(value, str) and len(value) > ECHOED and key not in ANSWERS
        else value
        for key, value in numbers.items()
    }


class _Numbers(dict[str, Any]):
    """Numbers of a sentence; what is missing shows as a question mark, never as an error."""

    def __missing__(self, key: str) -> str:
        return "?"


def sentence(code: str, numbers: Mapping[str, Any]) -> str:
    """Return the sentence of ``code`` with its numbers filled in; the bare code if unknown."""
    reason = reason_of(code, numbers)
    if reason is None:
        return code
    words = _words(numbers)
    lacking = reason.short and not _fields(str(reason.sentence)) <= _known(words)
    return str(reason.short if lacking else reason.sentence).format_map(words)


def next_step(code: str, numbers: Mapping[str, Any]) -> str:
    """Return what would help, or "" where nothing general, or not enough, is known."""
    reason = reason_of(code, numbers)
    words = _words(numbers)
    if reason is None or not _fields(str(reason.next_step)) <= _known(words):
        return ""
    return str(reason.next_step).format_map(words)


def severity(code: str) -> str:
    """Return how serious ``code`` is; an unknown code is an error."""
    reason = REGISTRY.get(code)
    return reason.severity if reason else ERROR


def reason_of(code: str, numbers: Mapping[str, Any]) -> Reason | None:
    """Return the entry of ``code``, of its special case ``CODE:cause`` where there is one."""
    return REGISTRY.get(f"{code}:{numbers.get('cause')}") or REGISTRY.get(code)


def _fields(template: str) -> set[str]:
    return {name for _, name, _, _ in Formatter().parse(template) if name}


def _known(words: Mapping[str, Any]) -> set[str]:
    return {name for name, value in words.items() if value not in (None, "")}


def _words(numbers: Mapping[str, Any]) -> _Numbers:
    """Return the numbers as people say them, under every name that sentences use."""
    words = _Numbers(shortened(numbers))
    for name, source in ALIASES:
        if name not in words and words.get(source) not in (None, ""):
            words[name] = words[source]
    needed, available = words.get("needed"), words.get("available")
    if isinstance(needed, int) and isinstance(available, int):
        words.setdefault("missing", max(0, needed - max(0, available)))
    _spell(words)
    return words


def _spell(words: _Numbers) -> None:
    """Write amounts, hours and instants the way people say them."""
    resource = str(words.get("resource") or "nvidia.com/gpu")
    ways: tuple[tuple[tuple[str, ...], Callable[[Any], str]], ...] = (
        (AMOUNTS, partial(describe_amount, resource)),
        (PROMISED, partial(describe_amount, "nvidia.com/gpu")),
        (INSTANTS, _describe_instant),
        (SECONDS, _describe_seconds),
    )
    for keys, describe in ways:
        known = [key for key in keys if isinstance(words.get(key), int)]
        words.update({key: describe(words[key]) for key in known})
    if isinstance(count := words.get("nodes"), int):
        words["on_nodes"] = ngettext("%(n)d node", "%(n)d nodes", count) % {"n": count}
    words.update({key: _describe_hours(words[key]) for key in GPU_HOURS if key in words})


def _describe_seconds(seconds: int) -> str:
    """Return a span in the largest unit that writes it whole: ``90 s``, ``30 min``, ``2 h``.

    One of hours that no unit writes whole is told to the minute: ``6 h 3 min``.
    """
    for unit, size in (("d", 86_400), ("h", 3600), ("min", 60)):
        if seconds and seconds % size == 0:
            return f"{seconds // size} {unit}"
    if seconds > 3600:  # noqa: PLR2004  # an hour
        return f"{seconds // 3600} h {seconds % 3600 // 60} min"
    return f"{seconds} s"


def _describe_hours(hours: object) -> str:
    """Return hours with one decimal and thousands apart; what is no number stays as it is."""
    try:
        return by_locale(f"{float(str(hours)):,.1f}")
    except ValueError:
        return str(hours)


def _describe_instant(instant: int) -> str:
    at = datetime.fromtimestamp(min(instant, LAST_INSTANT), UTC)
    return f"{at:%Y-%m-%d %H:%M:%S} UTC"


REGISTRY: dict[str, Reason] = {
    **PENDING,
    **EVICTIONS,
    **INACTIVE_QUEUES,
    **BLOCKERS,
    **UNREADABLE,
    **DOUBTFUL,
    **WORKLOADS,
    **ROUTES,
    **DEVICES,
    **PROMISES,
    **PRICES,
    **FACTS,
    **AGENTS,
    **HYPERNODES,
    **SOURCES,
    **COST,
    **REPLAYS,
    **OPERATIONS,
    **RULES,
    **PROTOCOL,
    **LIFE,
}
