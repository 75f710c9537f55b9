"""``manage.py load_source NAME``: load days of a source by hand."""

from argparse import ArgumentParser
from collections.abc import Iterator
from datetime import date, timedelta
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from finops.ingest.due import due_days
from finops.ingest.loading import load_day
from finops.management.commands.test_source import source_called
from finops.models import Coverage, Fetch, Source
from finops.models.sources import Outcome, Stored
from gpuplatform.common import clock
from gpuplatform.common.problems import Rejected

LONGEST = timedelta(days=800)


class Command(BaseCommand):
    """Load the named days, or those that are due. Loading twice changes nothing."""

    help = "Load days of a source of cost or usage: one, from-to, or those that are due."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Take the source and the days."""
        parser.add_argument("name")
        parser.add_argument("--day", type=_day, metavar="YYYY-MM-DD")
        parser.add_argument("--from", dest="first", type=_day, metavar="YYYY-MM-DD")
        parser.add_argument("--to", dest="last", type=_day, metavar="YYYY-MM-DD", help="included")
        parser.add_argument(
            "--missing", action="store_true", help="pass over days that are loaded already"
        )

    def handle(self, *_args: Any, **options: Any) -> None:
        """Load, and print one line a day."""
        source = source_called(options["name"])
        days = list(_days(source, options))
        failed = 0
        for day in days:
            try:
                fetch = load_day(source, day)
            except Rejected as refusal:
                raise CommandError("; ".join(p.message for p in refusal.problems)) from refusal
            failed += fetch.outcome == Outcome.FAILED
            self.stdout.write(_line(fetch))
        if not days:
            self.stdout.write("nothing is due")
        if failed:
            raise CommandError(f"{failed} of {len(days)} days could not be loaded")


def _days(source: Source, options: dict[str, Any]) -> Iterator[date]:
    day, first, last = options["day"], options["first"], options["last"]
    if (day and (first or last)) or bool(first) != bool(last):
        raise CommandError("name --day, or both --from and --to")
    if not day and not first:
        yield from due_days(source, clock.now())
        return
    first, last = first or day, last or day
    if last < first or last - first > LONGEST:
        raise CommandError(f"--to must not lie before --from, nor {LONGEST.days} days after it")
    whole = Coverage.objects.filter(source=source, stored=Stored.LOADED)
    known = set(whole.values_list("day", flat=True)) if options["missing"] else set()
    for number in range((last - first).days + 1):
        if (day := first + timedelta(days=number)) not in known:
            yield day


def _day(text: str) -> date:
    return date.fromisoformat(text)


def _line(fetch: Fetch) -> str:
    why = f" {fetch.code}: {fetch.sentence}" if fetch.code else ""
    notes = "".join(f" ({sentence})" for sentence in fetch.note_sentences)
    return f"{fetch.day} {fetch.outcome} {fetch.rows} rows{why}{notes}"
