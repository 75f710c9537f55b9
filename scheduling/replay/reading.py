"""Traces in files: CSV or JSON. What each field means: ``docs/concepts/replay.md``.

``job_id``, ``vc``, ``submit_s``, ``duration_s``, ``gpus`` is the format of public traces;
``queue``, ``team``, ``pods``, ``cpu``, ``memory``, ``priority``, ``declared_s`` may be added.
"""

import csv
import io
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Any

from scheduling.engine.machines import CPU, GPU, MEMORY
from scheduling.engine.snapshot import PodSet, Workload
from scheduling.replay.problems import BadFile, Problem
from scheduling.replay.trace import Arrival, Trace, trace

ALIASES = {"job_id": "id", "key": "id", "name": "id", "vc": "queue"}
NEEDED = ("id", "queue", "submit_s", "duration_s", "gpus")
OPTIONAL = ("team", "pods", "cpu", "memory", "priority", "declared_s")
FIELDS = (*NEEDED, *OPTIONAL)
MOST_ROWS = 2_000_000
MOST_GPUS, MOST_PODS, MOST_S = 1_000_000, 100_000, 10**10
UNITS = {"Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40, "k": 10**3, "M": 10**6, "G": 10**9}


@dataclass(frozen=True, slots=True)
class Row:
    """One line of a trace, checked. ``pods`` None: as few as nodes are large."""

    id: str
    queue: str
    team: str
    submit_s: float
    duration_s: float
    gpus: int
    pods: int | None
    requests: Mapping[str, int]  # of one pod, beside its GPUs
    priority: int
    declared_s: float | None


def read_trace(name: str, text: str, node_gpus: int) -> Trace:
    """Return the trace of one file.

    Args:
        name: of the file; ``.json`` is JSON, anything else CSV.
        text: its content.
        node_gpus: how many GPUs the largest node has: work that does not say how many pods it
            has gets whole nodes, and one smaller pod for the rest.

    Raises:
        BadFile: with every problem by line and field; nothing is read then.
    """
    raw = _json_rows(name, text) if name.endswith(".json") else _csv_rows(name, text)
    rows, problems = _checked(raw)
    if problems:
        raise BadFile(name, problems)
    if not rows:
        raise BadFile(name, [Problem(0, "", "there is no workload in it")])
    width = max(len(row.id) for row in rows)
    kept: dict[PodSet, PodSet] = {}
    return trace(name, (_arrival(row, width, node_gpus, kept) for row in rows))


def _arrival(row: Row, width: int, node_gpus: int, kept: dict[Any, Any]) -> Arrival:
    key = row.id.zfill(width) if row.id.isdigit() else row.id
    shape = row.gpus, row.pods, tuple(sorted(row.requests.items()))
    if shape not in kept:
        kept[shape] = _pod_sets(row, node_gpus)
    work = Workload(
        key,
        key,
        row.queue,
        row.priority,
        row.submit_s,
        kept[shape],
        duration_s=row.declared_s,
    )
    return Arrival(work, row.duration_s, row.team)


def _pod_sets(row: Row, node_gpus: int) -> tuple[PodSet, ...]:
    if row.pods is not None:
        return (PodSet("main", row.pods, _asked(row, row.gpus // row.pods)),)
    whole, rest = divmod(row.gpus, max(1, node_gpus)) if row.gpus > node_gpus else (0, row.gpus)
    found = [PodSet("main", whole, _asked(row, node_gpus))] if whole else []
    if rest or not whole:
        found.append(PodSet("rest" if whole else "main", 1, _asked(row, rest)))
    return tuple(found)


def _asked(row: Row, gpus: int) -> dict[str, int]:
    return {**row.requests, **({GPU: gpus} if gpus else {})}


# -- the two formats --------------------------------------------------------------------------


def _csv_rows(name: str, text: str) -> Iterator[tuple[int, Mapping[str, Any]]]:
    lines = csv.reader(io.StringIO(text.removeprefix("\ufeff")))
    try:
        head = [field.strip() for field in next(lines, [])]
        _check_head(name, head)
        for values in lines:
            if not values:
                continue
            if len(values) != len(head):
                told = f"has {len(values)} values, but the head names {len(head)} fields"
                raise BadFile(name, [Problem(lines.line_num, "", told)])
            yield lines.line_num, _named(zip(head, values, strict=True))
    except csv.Error as error:
        raise BadFile(name, [Problem(lines.line_num, "", str(error))]) from error


def _check_head(name: str, head: list[str]) -> None:
    known = [ALIASES.get(field, field) for field in head]
    problems = [Problem(1, f, "is no field of a trace") for f in head if _name(f) not in FIELDS]
    problems += [Problem(1, f, "is missing") for f in NEEDED if f not in known]
    problems += [Problem(1, f, "stands twice") for f in FIELDS if known.count(f) > 1]
    if problems:
        raise BadFile(name, problems)


def _name(field: str) -> str:
    return ALIASES.get(field, field)


def _named(values: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    return {_name(field): value for field, value in values}


def _json_rows(name: str, text: str) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """Yield the objects of a list; their "line" is their number, from 1."""
    try:
        content = json.loads(text)
    except (ValueError, RecursionError) as error:
        line = error.lineno if isinstance(error, json.JSONDecodeError) else 0
        raise BadFile(name, [Problem(line, "", str(error))]) from error
    if not isinstance(content, list):
        raise BadFile(name, [Problem(0, "", "must be a list of workloads")])
    for number, value in enumerate(content, start=1):
        if not isinstance(value, dict):
            raise BadFile(name, [Problem(number, "", "must be an object")])
        unknown = [f for f in value if _name(f) not in FIELDS]
        if unknown:
            raise BadFile(name, [Problem(number, f, "is no field of a trace") for f in unknown])
        yield number, _named(value.items())


# -- one row ----------------------------------------------------------------------------------


def _checked(raw: Iterable[tuple[int, Mapping[str, Any]]]) -> tuple[list[Row], list[Problem]]:
    rows: list[Row] = []
    problems: list[Problem] = []
    seen: dict[str, int] = {}
    for line, values in raw:
        found: list[Problem] = []
        row = _row(_Fields(line, values, found))
        if row.id in seen and not found:
            found.append(Problem(line, "id", f"{row.id} stands in line {seen[row.id]} already"))
        seen.setdefault(row.id, line)
        rows.append(row)
        problems += found
        if len(rows) > MOST_ROWS:
            problems.append(Problem(line, "", f"a trace has at most {MOST_ROWS} workloads"))
            break
    return rows, problems


class _Fields:
    """The fields of one row; what is wrong with them is collected."""

    def __init__(self, line: int, values: Mapping[str, Any], found: list[Problem]) -> None:
        self.line, self._values, self._found = line, values, found

    def wrong(self, field: str, message: str) -> None:
        self._found.append(Problem(self.line, field, message))

    def text(self, field: str, default: str | None = None) -> str:
        value = self._values.get(field)
        found = "" if value is None else str(value).strip()
        if not found and default is None:
            self.wrong(field, "is missing")
        if len(found) > 253:  # noqa: PLR2004 - as long as a name may be
            self.wrong(field, "is longer than 253 characters")
        return found or default or ""

    def number(self, field: str, least: int, most: int, default: int | None = None) -> int:
        return int(self._number(field, int, least, most, default))

    def seconds(self, field: str) -> float:
        return float(self._number(field, float, 0, MOST_S, None))

    def seconds_or_none(self, field: str) -> float | None:
        return None if self._values.get(field) in (None, "") else self.seconds(field)

    def number_or_none(self, field: str, least: int, most: int) -> int | None:
        return None if self._values.get(field) in (None, "") else self.number(field, least, most)

    def _number(
        self, field: str, kind: Callable[[Any], float], least: int, most: int, default: int | None
    ) -> float:
        value = self._values.get(field)
        if value in (None, ""):
            if default is None:
                self.wrong(field, "is missing")
            return default or least
        try:
            found = _read_number(value, kind)
        except (ValueError, TypeError, OverflowError):
            what = "a whole number" if kind is int else "a number of seconds"
            self.wrong(field, f"must be {what}, not {value!r}")
            return least
        if not least <= found <= most:
            self.wrong(field, f"must be between {least} and {most}, not {value}")
            return least
        return found

    def amounts(self) -> dict[str, int]:
        found = {CPU: self._quantity("cpu", 1000), MEMORY: self._quantity("memory", 1)}
        return {resource: amount for resource, amount in found.items() if amount}

    def _quantity(self, field: str, scale: int) -> int:
        """Return an amount in canonical units: ``4``, ``500m``, ``64Gi``."""
        text = self.text(field, "0")
        match = re.fullmatch(r"(\d+(?:\.\d+)?)(m|Ki|Mi|Gi|Ti|k|M|G)?", text)
        try:
            amount = Decimal(match[1]) if match else None
        except InvalidOperation:
            amount = None
        if match is None or amount is None:
            self.wrong(field, f"must be an amount such as 4, 500m or 64Gi, not {text!r}")
            return 0
        unit = Decimal("0.001") if match[2] == "m" else Decimal(UNITS.get(match[2] or "", 1))
        return int(amount * unit * scale)


def _read_number(value: Any, kind: Callable[[Any], float]) -> float:
    """Return a number that is one: not true, and not 2.5 where a whole one is asked for."""
    found = kind(value)
    if isinstance(value, bool) or (isinstance(value, float) and found != value):
        raise ValueError(value)
    return found


def _row(fields: _Fields) -> Row:
    queue = fields.text("queue")
    gpus, pods = fields.number("gpus", 0, MOST_GPUS), fields.number_or_none("pods", 1, MOST_PODS)
    if pods is not None and gpus % pods:
        fields.wrong("pods", f"{gpus} GPUs cannot be shared out equally among {pods} pods")
    requests = fields.amounts()
    if not gpus and not requests:
        fields.wrong("gpus", "must be at least 1 where no cpu or memory is asked for")
    return Row(
        id=fields.text("id"),
        queue=queue,
        team=fields.text("team", queue),
        submit_s=fields.seconds("submit_s"),
        duration_s=fields.seconds("duration_s"),
        gpus=gpus,
        pods=pods,
        requests=requests,
        priority=fields.number("priority", -(2**31), 2**31 - 1, 0),
        declared_s=fields.seconds_or_none("declared_s"),
    )
