"""``manage.py verify_audit``: has anybody changed the audit trail behind the product's back?"""

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from gpuplatform.common import sealing


class Command(BaseCommand):
    """Compute the chain of seals anew; exit 1 at the first entry that is not what was sealed."""

    help = "Check the chain of the audit trail. Keep the head that it prints somewhere else."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Take a head that was kept elsewhere."""
        parser.add_argument(
            "--head", default="", help="a head printed earlier: it must occur in the chain"
        )

    def handle(self, *_args: Any, **options: Any) -> None:
        """Look, and print what was found."""
        verdict = sealing.verify(options["head"].strip().lower())
        for line in sealing.words(verdict):
            self.stdout.write(line)
        if verdict.fault:
            raise CommandError("The audit trail was changed.")
