"""``manage.py test_source NAME``: ask a source about its last whole hour."""

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from finops.ingest.testing import test_source
from finops.models import Source


class Command(BaseCommand):
    """Say whether a source answers, and what it knows of one hour; nothing is stored."""

    help = "Ask a source of cost or usage about its last whole hour, without storing anything."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Take the name of the source."""
        parser.add_argument("name")

    def handle(self, *_args: Any, **options: Any) -> None:
        """Ask, and print what came."""
        result = test_source(source_called(options["name"]))
        if result.code:
            raise CommandError(f"{result.code}: {result.sentence}")
        start, end = result.window.start, result.window.end
        self.stdout.write(f"{start:%Y-%m-%d %H:%M} - {end:%H:%M} UTC: {result.rows} rows")
        for measure, amount in (result.measures or {}).items():
            self.stdout.write(f"  {measure}: {amount.normalize():f}")
        for question, answer in result.answers.items():
            self.stdout.write(f"  {question}:")
            for about, value in answer.items():
                self.stdout.write(f"    {about or 'all'}: {value}")
        for sentence in result.note_sentences:
            self.stdout.write(f"  {sentence}")


def source_called(name: str) -> Source:
    """Return the source of that name, or tell which there are."""
    try:
        return Source.objects.get(name=name)
    except Source.DoesNotExist:
        known = ", ".join(Source.objects.values_list("name", flat=True)) or "none"
        raise CommandError(f"there is no source {name}; there are: {known}") from None
