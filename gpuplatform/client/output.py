"""What a command prints: data on standard output, talk on standard error.

A table only where a person looks; the same rows as tab-separated values, without a heading,
where another program reads. ``-o`` asks for a form by name, and gets it wherever it goes.
"""

import csv
import json
import os
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import yaml
from rich.console import Console
from rich.table import Table
from rich.text import Text

Row = Mapping[str, Any]
FORMULA = ("=", "+", "-", "@", "\t", "\r")  # what a spreadsheet would run


class Format(StrEnum):
    """How data is printed."""

    TABLE = "table"
    WIDE = "wide"
    JSON = "json"
    YAML = "yaml"
    CSV = "csv"
    NAME = "name"


@dataclass(frozen=True, slots=True)
class Column:
    """A heading, what stands below it, and whether only the wide table has it."""

    heading: str
    value: Callable[[Row], object]
    wide: bool = False
    right: bool = False


def column(heading: str, field: str = "", *, wide: bool = False, right: bool = False) -> Column:
    """Return a column of a field as it is."""
    key = field or heading.lower()
    return Column(heading, lambda row: row.get(key), wide, right)


def is_watched() -> bool:
    """Return whether a person looks at standard output."""
    return sys.stdout.isatty()


def show(
    rows: Iterable[Row], columns: Sequence[Column], form: Format, *, name: str = "name"
) -> None:
    """Print rows; ``name`` is the field that ``-o name`` prints."""
    found = list(rows)
    if form is Format.JSON:
        _json(found)
    elif form is Format.YAML:
        _yaml(found)
    elif form is Format.NAME:
        _lines(str(row.get(name)) for row in found)
    else:
        shown = [c for c in columns if form is not Format.TABLE or not c.wide]
        _cells(found, shown, form)


def show_one(row: Row, form: Format, lines: Callable[[], Iterable[str]]) -> None:
    """Print one object; ``lines`` is how people read it."""
    if form is Format.JSON:
        _json(row)
    elif form is Format.YAML:
        _yaml(row)
    elif form is Format.NAME:
        _lines([str(row.get("name"))])
    else:
        _lines(lines())


def _cells(rows: Sequence[Row], columns: Sequence[Column], form: Format) -> None:
    cells = [[_text(c.value(row)) for c in columns] for row in rows]
    if form is Format.CSV:
        writer = csv.writer(sys.stdout, lineterminator="\r\n")
        writer.writerow([c.heading.lower() for c in columns])
        writer.writerows([[_harmless(cell) for cell in line] for line in cells])
    elif is_watched():
        _table(columns, cells)
    else:
        _lines("\t".join(_on_one_line(cell) for cell in line) for line in cells)


def _table(columns: Sequence[Column], cells: Iterable[Sequence[str]]) -> None:
    table = Table(
        box=None, pad_edge=False, header_style="" if os.environ.get("NO_COLOR") else "bold"
    )
    for each in columns:
        table.add_column(each.heading, justify="right" if each.right else "left")
    for line in cells:
        table.add_row(*(Text(_on_one_line(cell) or "-") for cell in line))
    Console().print(table)


def _text(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


def _on_one_line(cell: str) -> str:
    """Return a cell that neither breaks the table nor speaks to the terminal."""
    return "".join(letter if letter.isprintable() else " " for letter in cell)


def _harmless(cell: str) -> str:
    return f"'{cell}" if cell.startswith(FORMULA) and not _is_number(cell) else cell


def _is_number(cell: str) -> bool:
    return cell.lstrip("-").replace(".", "", 1).isdecimal()


def _json(value: object) -> None:
    sys.stdout.write(f"{json.dumps(value, indent=2, ensure_ascii=False)}\n")


def _yaml(value: object) -> None:
    sys.stdout.write(yaml.safe_dump(value, sort_keys=False, allow_unicode=True))


def _lines(lines: Iterable[str]) -> None:
    for line in lines:
        sys.stdout.write(f"{line}\n")


def say(*lines: str) -> None:
    """Tell the person something that is no data."""
    for line in lines:
        sys.stderr.write(f"{line}\n")
