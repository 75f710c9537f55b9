"""What Prometheus answers, and the questions that it is asked. Pure.

Values are texts and may be NaN; a series may have gaps. A sample is an instant, so hours are
samples times the step, never a mean times the window (finops.md 1.8).
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal, InvalidOperation

import msgspec

from finops.sources import numbers
from finops.sources.decoding import decoded
from finops.sources.failures import SAID, Note, SourceError
from finops.sources.rows import ZERO, GpuUse, NodePrice, natural_key
from finops.sources.windows import Window

LABEL = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
HOUR_S = 3600
PERCENT = 100
UTILISATION = "DCGM_FI_DEV_GPU_UTIL"
NODE_PRICE = "node_gpu_hourly_cost"


class Series(msgspec.Struct):
    """One series: its labels and its samples, ``[seconds, "value"]``."""

    metric: dict[str, str]
    values: list[tuple[Decimal, str]] = []
    value: tuple[Decimal, str] | None = None


class Result(msgspec.Struct, rename="camel"):
    """The series of an answer."""

    result_type: str
    result: list[Series]


class Answer(msgspec.Struct, rename="camel"):
    """What stands around every answer."""

    status: str
    data: Result | None = None
    error_type: str | None = None
    error: str | None = None
    warnings: list[str] = []


def answered(body: bytes, kind: str) -> tuple[list[Series], tuple[Note, ...]]:
    """Return the series of an answer, and what Prometheus warns of.

    Raises:
        SourceError: it failed, or answered in another form than it was asked for.
    """
    answer: Answer = decoded(body, Answer)
    if answer.status != "success" or answer.data is None:
        said = f"{answer.error_type or answer.status}: {answer.error or ''}"
        raise SourceError("SOURCE_ANSWERED", status=answer.status[:SAID], said=said[:SAID])
    if answer.data.result_type != kind:
        raise SourceError("SOURCE_WRONG_SHAPE", problem=f"a {answer.data.result_type[:SAID]}")
    notes = tuple(Note("SOURCE_WARNED", {"said": text[:SAID]}) for text in answer.warnings)
    return answer.data.result, notes


def finite(text: str) -> Decimal | None:
    """Return a sample's value; None for NaN and the infinities."""
    try:
        number = Decimal(text)
    except InvalidOperation as error:
        raise SourceError("SOURCE_WRONG_SHAPE", problem=f"the value {text[:40]!r}") from error
    return number if number.is_finite() else None


# ---- questions ----------------------------------------------------------------------------------
def utilisation_query(step_s: int) -> str:
    """Return the question for the use of each GPU: its mean over the step before the instant."""
    return f"avg_over_time({UTILISATION}[{step_s}s])"


def price_query() -> str:
    """Return the question for the price of a GPU-hour of each node, unique per node."""
    return f"max by (node) ({NODE_PRICE})"


def team_cost_query(team_label: str) -> str:
    """Return the question for the cost of each team now, by the hour (finops.md 1.9)."""
    label = checked_label(team_label)
    return (
        f"sum by ({label}) ("
        "sum by (namespace, pod, node) (container_gpu_allocation)"
        f" * on (node) group_left () {price_query()}"
        f" * on (namespace, pod) group_left ({label})"
        f" max by (namespace, pod, {label}) (kube_pod_labels))"
    )


def unused_query(node_label: str) -> str:
    """Return the question for GPUs that are paid and not used, by node: GPU equivalents."""
    label = checked_label(node_label)
    return (
        "sum by (node) (label_replace("
        f'1 - avg_over_time({UTILISATION}[15m]) / 100, "node", "$1", "{label}", "(.+)"))'
    )


def unused_cost_query(node_label: str) -> str:
    """Return the same as money by the hour, not as GPU-hours."""
    return f"{unused_query(node_label)} * on (node) group_left () {price_query()}"


def month_to_date_query(team_label: str, elapsed: timedelta, step_s: int = 300) -> str:
    """Return the question for each team's cost since the month began. For dashboards, no bill.

    A sample of a subquery is a value per step, so the step is multiplied in.
    """
    seconds = max(step_s, int(elapsed.total_seconds()))
    inner = team_cost_query(team_label)
    return f"sum_over_time(({inner})[{seconds}s:{step_s}s]) * {step_s} / {HOUR_S}"


def checked_label(name: str) -> str:
    """Return the name of a label that may stand in a question.

    Raises:
        SourceError: it is no name of a label.
    """
    if not LABEL.fullmatch(name):
        raise SourceError("SOURCE_WRONG_SHAPE", problem=f"the label {name[:40]!r}")
    return name


# ---- rows ---------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class IdleRule:
    """When a GPU that a pod holds counts as idle: used less than so much, for so long at least."""

    below_percent: int = 5
    after_s: int = 900


def gpu_uses(
    series: Iterable[Series], step_s: int, node_label: str, window: Window, rule: IdleRule
) -> tuple[tuple[GpuUse, ...], tuple[Note, ...]]:
    """Return the hours that each GPU was sampled, was busy and was idle, by the pod that held it.

    Samples outside the window only tell whether the idle time at its edges is long enough.
    """
    found: dict[tuple[str, str, str, str], list[Decimal]] = defaultdict(lambda: [ZERO] * 3)
    first, last = window.start.timestamp(), window.end.timestamp()
    holes = 0
    for one in series:
        samples = [(at, finite(text)) for at, text in one.values]
        inside = [value for at, value in samples if first < at <= last]
        holes += inside.count(None)
        values = [value for value in inside if value is not None]
        if values:
            sums = found[_gpu(one.metric, node_label)]
            sums[0] += len(values)
            sums[1] += sum(values, ZERO) / PERCENT
            sums[2] += sum(first < at <= last for at in _idle(samples, step_s, rule))
    step = Decimal(step_s) / HOUR_S
    rows = tuple(
        GpuUse(
            key=natural_key(node, gpu, namespace, pod),
            node=node,
            gpu=gpu,
            namespace=namespace,
            pod=pod,
            sampled_gpu_hours=numbers.hours(samples * step),
            busy_gpu_hours=numbers.hours(busy * step),
            idle_gpu_hours=numbers.hours(idle * step),
        )
        for (node, gpu, namespace, pod), (samples, busy, idle) in sorted(found.items())
    )
    return rows, _holes(holes)


def _idle(
    samples: Iterable[tuple[Decimal, Decimal | None]], step_s: int, rule: IdleRule
) -> Iterator[Decimal]:
    """Yield the instants of the samples in idle stretches; a gap ends one, it is not known."""
    stretch: list[Decimal] = []
    for at, value in samples:
        is_low = value is not None and value < rule.below_percent
        goes_on = is_low and (not stretch or at - stretch[-1] == step_s)
        if not goes_on:
            yield from _if_long(stretch, step_s, rule)
            stretch = []
        if is_low:
            stretch.append(at)
    yield from _if_long(stretch, step_s, rule)


def _if_long(stretch: list[Decimal], step_s: int, rule: IdleRule) -> list[Decimal]:
    return stretch if len(stretch) * step_s >= rule.after_s else []


def _gpu(metric: Mapping[str, str], node_label: str) -> tuple[str, str, str, str]:
    """Return node, GPU, namespace and pod of a series, as the exporter or its scraper says."""
    node = metric.get(node_label) or metric.get("node") or metric.get("instance", "")
    gpu = metric.get("UUID") or metric.get("gpu", "")
    namespace = metric.get("exported_namespace") or metric.get("namespace", "")
    pod = metric.get("exported_pod") or metric.get("pod", "")
    return node[:253], gpu[:128], namespace[:253], pod[:253]


def node_prices(series: Iterable[Series]) -> tuple[tuple[NodePrice, ...], tuple[Note, ...]]:
    """Return the lowest and the highest price of a GPU-hour on each node, and its mean."""
    found: dict[str, list[Decimal]] = defaultdict(list)
    holes = 0
    for one in series:
        for _at, text in one.values:
            value = finite(text)
            holes += value is None
            if value is not None:
                found[one.metric.get("node", "")[:253]].append(value)
    rows = tuple(
        NodePrice(
            key=natural_key(node),
            node=node,
            gpu_hour=numbers.cost(sum(prices, ZERO) / len(prices)),
            lowest=numbers.cost(min(prices)),
            highest=numbers.cost(max(prices)),
        )
        for node, prices in sorted(found.items())
    )
    return rows, _holes(holes)


def _holes(number: int) -> tuple[Note, ...]:
    return (Note("SOURCE_HOLES", {"samples": number}),) if number else ()
