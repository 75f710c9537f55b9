"""``manage.py export_trace FILE``: write past work as a trace that ``replay`` reads."""

import csv
import io
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from gpuplatform.common import clock
from gpuplatform.common.recorded_files import write_text
from scheduling.selectors.past_work import FIELDS, past_rows

MOST_DAYS = 3_650


class Command(BaseCommand):
    """Export what ran in the last days; nothing is changed."""

    help = "Write the work of the last days that has run as CSV, to be replayed."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Take the file and the days."""
        parser.add_argument("file", type=Path, metavar="FILE")
        parser.add_argument("--days", type=int, default=30)

    def handle(self, *_args: Any, **options: Any) -> None:
        """Write the file and say how many workloads it holds."""
        days = options["days"]
        if not 1 <= days <= MOST_DAYS:
            raise CommandError(f"--days: must be between 1 and {MOST_DAYS}, not {days}")
        text = io.StringIO()
        writer = csv.DictWriter(text, FIELDS, lineterminator="\n")
        writer.writeheader()
        count = 0
        for row in past_rows(clock.now(), days):
            writer.writerow(row)
            count += 1
        write_text(options["file"], text.getvalue())
        self.stdout.write(f"{options['file']}: {count} workloads of the last {days} days")
