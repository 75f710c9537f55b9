"""``manage.py decide FILE...``: run scenarios under a profile, and compare with what is expected.

Nothing is read from or written to the database. Contract: ``decisions.md`` 9.
"""

import json
from argparse import ArgumentParser
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from gpuplatform.common.recorded_files import each_once, read_bytes, write_text
from scheduling.engine.profile import Profile
from scheduling.engine.scenario.comparing import differences
from scheduling.engine.scenario.fields import BadScenario
from scheduling.engine.scenario.loop import run
from scheduling.engine.scenario.reader import read_scenario
from scheduling.engine.scenario.script import Scenario

PROFILES = {profile.name: profile for profile in (Profile.kueue(), Profile.recommended())}
LEVELS = (1, 2, 3)
FATAL_LEVELS = (1, 2)
SHOWN = 10  # differences printed


class Command(BaseCommand):
    """Decide recorded scenarios; with ``--check`` compare with their ``expected``."""

    help = "Run the scenarios of the files; --check exits 1 on a difference at level 1 or 2."
    requires_system_checks = []  # it touches no database, and starts at once

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Take files, profile, output file and whether to compare."""
        parser.add_argument("files", nargs="+", type=Path, metavar="FILE")
        parser.add_argument("--profile", choices=sorted(PROFILES), default="kueue")
        parser.add_argument("-o", dest="output", type=Path, metavar="OUT")
        parser.add_argument("--check", action="store_true")

    def handle(self, *_args: Any, **options: Any) -> None:
        """Run every scenario in order; write the outcomes or the comparison."""
        profile = PROFILES[options["profile"]]
        scenarios = [one for file in options["files"] for one in _scenarios(file)]
        outcomes = [(scenario, run(scenario, profile)) for scenario in scenarios]
        if options["output"] or not options["check"]:
            listed = [{"id": scenario.id, "outcome": outcome} for scenario, outcome in outcomes]
            self._write(json.dumps(listed, indent=1) + "\n", options["output"])
        if options["check"]:
            self._check(outcomes)

    def _write(self, text: str, output: Path | None) -> None:
        if output is None:
            self.stdout.write(text, ending="")
        else:
            write_text(output, text)

    def _check(self, outcomes: list[tuple[Scenario, dict[str, Any]]]) -> None:
        """Print the counts of each level and the first differences; fail on a fatal one."""
        equal: Counter[int] = Counter()
        lines: list[str] = []
        recorded = [(s, outcome) for s, outcome in outcomes if s.expected is not None]
        if not recorded:
            raise CommandError("nothing to compare with: no scenario says what is expected")
        for scenario, outcome in recorded:
            for level in LEVELS:
                found = _differences(scenario, outcome, level)
                equal[level] += not found
                lines += [f"{scenario.id} level {level}: {line}" for line in found[:1]]
        for level in LEVELS:
            self.stdout.write(f"level {level}: {equal[level]} of {len(recorded)} equal")
        for line in lines[:SHOWN]:
            self.stdout.write(line)
        if any(equal[level] < len(recorded) for level in FATAL_LEVELS):
            raise CommandError("the decisions differ from what is expected")


def _differences(scenario: Scenario, outcome: dict[str, Any], level: int) -> list[str]:
    try:
        return differences(scenario.expected, outcome, level)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        problem = f"{scenario.id}: expected has not the shape of an outcome: {error!r}"
        raise CommandError(problem) from error


def _scenarios(file: Path) -> Iterator[Scenario]:
    """Read one file, plain or gzip. Raises CommandError with every problem by path."""
    try:
        content = json.loads(read_bytes(file), object_pairs_hook=each_once)
    except (ValueError, RecursionError) as error:
        raise CommandError(f"{file}: {error}") from error
    if not isinstance(content, dict | list):
        raise CommandError(f"{file}: must be a scenario or a list of scenarios")
    for i, value in enumerate(content if isinstance(content, list) else [content]):
        try:
            yield read_scenario(value, f"[{i}]")
        except BadScenario as error:
            problems = "\n".join(f"{file}: {problem}" for problem in error.problems)
            raise CommandError(problems) from error
