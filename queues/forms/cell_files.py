"""The quota table of many queues as a CSV file; what comes back unchanged is no edit."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from django import forms
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from gpuplatform.common import reasons
from gpuplatform.common.csvs import BadCsvError, csv_lines
from gpuplatform.common.problems import Problem, Rejected
from gpuplatform.common.quantities import NotWholeError, parse_quantity
from queues.forms.quotas import limit_text
from queues.models import FlavorQuota
from queues.specs import CellSpec

COLUMNS = (
    *("queue", "cohort", "team", "flavor", "resource"),
    *("nominal", "borrowing_limit", "lending_limit", "version"),
)
NEEDED = frozenset(COLUMNS) - {"cohort", "team", "version"}
MOST_BYTES, MOST_ROWS = 1024 * 1024, 20_000
AMOUNTS = ("nominal", "borrowing_limit", "lending_limit")
LONGEST_VERSION = 9  # digits
_CELL = re.compile(r"^cells\[(\d+)\]", re.ASCII)


class CellFileForm(forms.Form):
    """A file of cells."""

    file = forms.FileField(
        label=_("CSV file"), help_text=_("As it was downloaded here; only amounts are read.")
    )


@dataclass(frozen=True, slots=True)
class CellFile:
    """What a file asks for; ``versions`` are those of queues that it was made of.

    ``lines``: on which each cell stands.
    """

    cells: tuple[CellSpec, ...]
    lines: tuple[int, ...]
    versions: Mapping[str, int]


def cell_rows(rows: Iterable[FlavorQuota]) -> Iterator[dict[str, Any]]:
    """Yield cells as rows of the file: amounts as people write them, no limit is empty."""
    for row in rows:
        queue = row.cluster_queue
        assert queue is not None, "cells of queues"
        yield {
            "queue": queue.name,
            "cohort": queue.cohort.name if queue.cohort else "",
            "team": queue.team.name if queue.team else "",
            "flavor": row.flavor,
            "resource": row.resource,
            **{name: limit_text(row.resource, getattr(row, name)) for name in AMOUNTS},
            "version": queue.version,
        }


def read_cells(file: Any) -> CellFile:
    """Return what a file asks for.

    Raises:
        Rejected: with the problems of every row; paths start with ``line 2``.
    """
    rows = _rows(_text(file))
    problems: list[Problem] = []
    cells = tuple(_cell(line, row, problems) for line, row in rows)
    versions: dict[str, int] = {}
    for line, row in rows:
        version = (row.get("version") or "").strip()
        if version.isascii() and version.isdigit() and len(version) <= LONGEST_VERSION:
            versions[(row["queue"] or "").strip()] = int(version)
        elif version:
            words = gettext("A version is a whole number, as it was downloaded.")
            problems.append(Problem(f"line {line}.version", "BAD_VALUE", words))
    if problems:
        raise Rejected(problems)
    return CellFile(cells, tuple(line for line, _row in rows), versions)


def of_lines(told: CellFile, problems: Iterable[Problem]) -> list[Problem]:
    """Return problems of cells, ``cells[0].queue``, as problems of lines, ``line 2.queue``."""

    def named(found: re.Match[str]) -> str:
        return f"line {told.lines[int(found[1])]}"

    return [replace(one, path=_CELL.sub(named, one.path)) for one in problems]


def _text(file: Any) -> str:
    body = file.read(MOST_BYTES + 1)
    if len(body) > MOST_BYTES:
        raise _refused("TOO_LARGE", {"limit": MOST_BYTES})
    try:
        text: str = body.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise _refused("BAD_TEXT", {}) from error
    return text


def _rows(text: str) -> list[tuple[int, dict[str, str | None]]]:
    if not text.strip():
        raise _refused("BAD_CSV", {"problem": gettext("it is empty")})
    try:
        rows = csv_lines(text)
    except BadCsvError as error:
        raise _refused("BAD_CSV", {"problem": str(error)}) from error
    lacking = NEEDED - set(rows[0][1] if rows else {})
    if lacking or len(rows) > MOST_ROWS:
        words = gettext(
            "it needs the columns %(names)s, with commas between them, and from 1 to %(most)s rows"
        )
        said = words % {"names": ", ".join(sorted(NEEDED)), "most": MOST_ROWS}
        raise _refused("BAD_CSV", {"problem": said})
    return rows


def _refused(code: str, numbers: Mapping[str, str | int]) -> Rejected:
    return Rejected([Problem("file", code, reasons.sentence(code, numbers), numbers)])


def _cell(line: int, row: Mapping[str, str | None], problems: list[Problem]) -> CellSpec:
    if lacking := [name for name, cell in row.items() if cell is None]:
        # A limit that is left out would be no limit.
        words = gettext("This line is shorter than the head; it lacks: {names}.")
        said = words.format(names=", ".join(lacking))
        problems.append(Problem(f"line {line}", "REQUIRED", said))
        return CellSpec("", "", "", 0, None, None)
    names = {name: str(row.get(name) or "").strip() for name in COLUMNS}
    amounts = {
        name: _amount(f"line {line}.{name}", names["resource"], names[name], problems)
        for name in AMOUNTS
    }
    if not names["nominal"]:
        path = f"line {line}.nominal"
        sentence = reasons.sentence("REQUIRED", {"path": path})
        problems.append(Problem(path, "REQUIRED", sentence))
    place = names["queue"], names["flavor"], names["resource"]
    limits = amounts["borrowing_limit"], amounts["lending_limit"]
    return CellSpec(*place, amounts["nominal"] or 0, *limits)


def _amount(path: str, resource: str, text: str, problems: list[Problem]) -> int | None:
    if not text:
        return None
    try:
        return parse_quantity(resource, text)
    except NotWholeError:
        numbers = {"cause": "NotWhole", "value": text[:40], "resource": resource}
    except ValueError:
        numbers = {"value": text[:40]}
    problems.append(
        Problem(path, "BAD_QUANTITY", reasons.sentence("BAD_QUANTITY", numbers), numbers)
    )
    return None
