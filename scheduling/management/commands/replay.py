"""``manage.py replay TRACE --cluster FILE``: run a trace through the engine in virtual time.

Nothing is read from or written to the database. Contract: ``decisions.md`` 9; what the files hold:
``docs/concepts/replay.md``.
"""

import io
import json
from argparse import ArgumentParser, ArgumentTypeError
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from gpuplatform.common.recorded_files import read_text, write_text
from scheduling.engine.profile import Profile
from scheduling.engine.snapshot import Snapshot
from scheduling.replay.figures import Figures, figures_of
from scheduling.replay.player import Heed, play
from scheduling.replay.policies import AS_GIVEN, CHANGES, Policy, missing_queues, policy
from scheduling.replay.problems import BadFile
from scheduling.replay.reading import read_trace
from scheduling.replay.shape import HEAD, as_rows, as_shape
from scheduling.replay.site import node_gpus, read_site
from scheduling.replay.trace import Trace
from scheduling.replay_report import html_report

WIDEST = 400
PROFILES = {profile.name: profile for profile in (Profile.recommended(), Profile.kueue())}


def _policy(name: str) -> Policy:
    """Read the name of a policy, or several joined by +."""
    try:
        return policy(name)
    except KeyError as error:
        told = f"{error.args[0]!r} is none of {', '.join(CHANGES)}"
        raise ArgumentTypeError(told) from error


class Command(BaseCommand):
    """Compare profiles and policies on one trace and one cluster."""

    help = "Replay a trace on a cluster and print waits, use, evictions and loans."
    requires_system_checks = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Take the two files, what to compare, and where reports go."""
        parser.add_argument(
            "trace", type=Path, metavar="TRACE", help="CSV or JSON, or that in gzip"
        )
        parser.add_argument("--cluster", type=Path, required=True, metavar="FILE", help="JSON")
        parser.add_argument(
            "--profile", choices=sorted(PROFILES), action="append", help="default: recommended"
        )
        parser.add_argument(
            "--policy",
            type=_policy,
            action="append",
            metavar="NAME",
            help=f"{', '.join(CHANGES)}; several joined by +. Default: {AS_GIVEN}",
        )
        parser.add_argument("--json", type=Path, metavar="FILE", help="all figures")
        parser.add_argument("--html", type=Path, metavar="FILE", help="a report with charts")

    def handle(self, *_args: Any, **options: Any) -> None:
        """Replay every profile under every policy; print the table."""
        site, trace = _read(options["cluster"], options["trace"])
        profiles = [PROFILES[name] for name in options["profile"] or ["recommended"]]
        policies = options["policy"] or [policy(AS_GIVEN)]
        found = [self._play(p, one, site, trace) for p in profiles for one in policies]
        self.stdout.write(_table(found))
        if options["json"]:
            shape = [as_shape(one) for one in found]
            write_text(options["json"], json.dumps(shape, indent=1) + "\n")
        if options["html"]:
            title = f"{options['trace'].name} on {options['cluster'].name}"
            write_text(options["html"], html_report(title, found))

    def _play(self, profile: Profile, one: Policy, site: Snapshot, trace: Trace) -> Figures:
        name = one.name if profile.name == "recommended" else f"{profile.name}: {one.name}"
        changed = one.site(site)
        with self._progress(name) as heed:
            return figures_of(name, changed, play(changed, one.trace(trace), profile, heed))

    @contextmanager
    def _progress(self, name: str) -> Iterator[Heed]:
        """Show on standard error how much of the trace has come."""
        told = "[progress.description]{task.description}"
        columns = TextColumn(told), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()
        console = Console(stderr=True)
        with Progress(*columns, console=console, disable=not console.is_terminal) as bar:
            task = bar.add_task(name)
            yield lambda come, whole: bar.update(task, completed=come, total=whole)


def _read(cluster: Path, rows: Path) -> tuple[Snapshot, Trace]:
    """Read both files. Raises CommandError with every problem by line and field."""
    try:
        site = read_site(str(cluster), read_text(cluster))
        name = str(rows).removesuffix(".gz")
        trace = read_trace(name, read_text(rows), node_gpus(site))
    except BadFile as error:
        raise CommandError(str(error)) from error
    missing = missing_queues(site, trace)
    if missing:
        raise CommandError(f"{cluster}: queues: the trace names others: {', '.join(missing)}")
    return site, trace


def _table(found: list[Figures]) -> str:
    """Return the table, one column under another, as wide as it needs to be."""
    table = Table(box=None, pad_edge=False)
    for number, name in enumerate(HEAD):
        table.add_column(name, justify="right" if number else "left", no_wrap=True)
    for row in as_rows(found):
        table.add_row(*row)
    paper = Console(width=WIDEST, file=io.StringIO())
    with paper.capture() as captured:
        paper.print(table)
    return "\n".join(line.rstrip() for line in captured.get().splitlines())
