"""``manage.py bench NAME``: print the figures of a bench. Exit 0 whatever they are."""

import json
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from scheduling.bench import kueue_load

LOADS = ("baseline", "large_scale", "tas")


class Command(BaseCommand):
    """Run one bench; nothing is read from or written to the database."""

    help = "Run a bench and print its figures as a table, or as JSON with --json."
    requires_system_checks = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Take the name of the bench and its options."""
        benches = parser.add_subparsers(dest="name", required=True)
        load = benches.add_parser("kueue-load", help="Kueue's own load, in virtual time")
        load.add_argument("load", choices=LOADS)
        load.add_argument("--all-pending", action="store_true", help="everything arrives at once")
        load.add_argument("--fair", action="store_true", help="cohorts share fairly")
        load.add_argument("--repeat", type=int, default=3)
        load.add_argument("--json", action="store_true")

    def handle(self, *_args: Any, **options: Any) -> None:
        """Run the bench and print."""
        data = self._data("kueue-perf", f"{options['load']}.json")
        all_pending, fair = options["all_pending"], options["fair"]
        report = kueue_load.bench(
            data, all_pending=all_pending, fair=fair, repeat=options["repeat"]
        )
        self.stdout.write(report.as_json() if options["json"] else report.as_table())

    def _data(self, *parts: str) -> Any:
        path = Path(settings.SHARED_DATA, *parts)
        if not path.exists():
            raise CommandError(f"{path} is not here: benches read the data beside the repository.")
        return json.loads(path.read_text(encoding="utf-8"))
