"""Load the demo into an empty database."""

import json
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser

from gpuplatform.common import clock
from gpuplatform.doors.demo.load import load_demo
from queues.models import Team


class Command(BaseCommand):
    """``manage.py demo``: teams, machines, 60 days of history, and June 2026 of the articles."""

    help = "Load the demo data into an empty database and print how to sign in."

    def add_arguments(self, parser: CommandParser) -> None:
        """Declare the options."""
        parser.add_argument("--days", type=int, default=60, help="days of history (default 60)")

    def handle(self, *_args: Any, **options: Any) -> None:
        """Load, and leave the sign-in card where ``up`` finds it."""
        if Team.objects.exists():
            raise CommandError("This database is in use; the demo only goes into an empty one.")
        card = load_demo(clock.now(), days=options["days"], say=self.stdout.write)
        path = settings.HOME / "demo.json"
        path.touch(mode=0o600)
        path.write_text(json.dumps(card, indent=2))
        self.stdout.write(f"Demo loaded: {card['workloads']} workloads.")
