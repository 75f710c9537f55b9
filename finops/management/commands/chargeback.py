"""``manage.py chargeback FILE...``: bill the facts of files, and compare with what is expected.

Nothing is read from or written to the database. Contract: ``decisions.md`` 9; facts and
outcome: ``conformance/finops/FORMAT.md``.
"""

from argparse import ArgumentParser
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from finops.allocation.documents import differences, parse, text_of
from finops.allocation.encoding import outcome_of
from gpuplatform.common.recorded_files import each_once, read_bytes, write_text

SHOWN = 10  # scenarios whose first difference is printed


@dataclass(frozen=True, slots=True)
class _Billed:
    """One set of facts with its outcome; ``expected`` None has nothing to be compared with."""

    id: str
    outcome: dict[str, Any]
    expected: object


class Command(BaseCommand):
    """Bill recorded facts; with ``--check`` compare with their ``expected``."""

    help = (
        "Print the bill of one facts object, or of every scenario of lists as [{id, outcome}]. "
        "Facts that cannot be billed give their problems. A folder stands for its .json and "
        ".json.gz. --check exits 1 on any difference."
    )
    requires_system_checks = []  # it touches no database, and starts at once

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Take files, output file and whether to compare."""
        parser.add_argument("files", nargs="+", type=Path, metavar="FILE")
        parser.add_argument("-o", dest="output", type=Path, metavar="OUT")
        parser.add_argument("--check", action="store_true")

    def handle(self, *_args: Any, **options: Any) -> None:
        """Bill everything in order; write the outcomes or the comparison."""
        files = [file for path in options["files"] for file in _files(path)]
        contents = [(file, _content(file)) for file in files]
        billed = [one for file, content in contents for one in _bill(file, content)]
        if options["output"] or not options["check"]:
            is_single = len(contents) == 1 and isinstance(contents[0][1], dict)
            listed = [{"id": one.id, "outcome": one.outcome} for one in billed]
            self._write(text_of(billed[0].outcome if is_single else listed), options["output"])
        if options["check"]:
            self._check(billed)

    def _write(self, text: str, output: Path | None) -> None:
        if output is None:
            self.stdout.write(text, ending="")
        else:
            write_text(output, text)

    def _check(self, billed: list[_Billed]) -> None:
        """Print the counts and the first differences; fail on any."""
        recorded = [one for one in billed if one.expected is not None]
        if not recorded:
            raise CommandError("nothing to compare with: no scenario says what is expected")
        wrong = [(one, found) for one in recorded if (found := _differences(one))]
        self.stdout.write(f"{len(recorded) - len(wrong)} of {len(recorded)} equal")
        for one, found in wrong[:SHOWN]:
            self.stdout.write(f"{one.id}: {found[0]}")
        if wrong:
            raise CommandError("the bills differ from what is expected")


def _differences(one: _Billed) -> list[str]:
    return list(islice(differences(one.expected, one.outcome), 1))


def _files(path: Path) -> list[Path]:
    """Return the files of a folder and of those in it, by name; a file is its own."""
    if not path.is_dir():
        return [path]
    found = sorted(one for kind in ("*.json", "*.json.gz") for one in path.rglob(kind))
    if not found:
        raise CommandError(f"{path}: no .json or .json.gz in this folder")
    return found


def _content(file: Path) -> Any:
    """Read one file, plain or gzip."""
    try:
        return parse(read_bytes(file), each_once)
    except (ValueError, RecursionError) as error:
        raise CommandError(f"{file}: {error}") from error


def _bill(file: Path, content: Any) -> list[_Billed]:
    """Bill one facts object, or every scenario of a list."""
    if isinstance(content, dict):
        return [_Billed(file.name, outcome_of(content), None)]
    if not isinstance(content, list):
        raise CommandError(f"{file}: must be an object of facts or a list of scenarios")
    for index, scenario in enumerate(content):
        if not _is_scenario(scenario):
            raise CommandError(f"{file}: [{index}] must be an object with an id and facts")
    return [_Billed(one["id"], outcome_of(one["facts"]), one.get("expected")) for one in content]


def _is_scenario(value: object) -> bool:
    return isinstance(value, dict) and isinstance(value.get("id"), str) and "facts" in value
