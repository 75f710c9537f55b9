"""``manage.py replay_cycle ID``: decide a recorded cycle again at the desk."""

import json
from argparse import ArgumentParser
from difflib import unified_diff
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from scheduling.engine import codec
from scheduling.engine.cycle import decide
from scheduling.engine.invariants import violations
from scheduling.engine.plan import Plan
from scheduling.models import Cycle


class Command(BaseCommand):
    """Compare what the engine decides now with what the cycle recorded."""

    help = "Decide a recorded cycle again; exit 1 where the decisions differ."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Take the cycle's number."""
        parser.add_argument("cycle", type=int, metavar="ID")

    def handle(self, *_args: Any, **options: Any) -> None:
        """Print the differences and the broken laws, if there are any."""
        cycle = Cycle.objects.filter(pk=options["cycle"]).first()
        if cycle is None or cycle.snapshot is None or cycle.plan is None:
            raise CommandError(f"cycle {options['cycle']} has kept no snapshot")
        snapshot = codec.decode_snapshot(cycle.snapshot)
        recorded, again = codec.decode_plan(cycle.plan), decide(snapshot)
        for sentence in violations(snapshot, again):
            self.stdout.write(f"broken: {sentence}")
        difference = list(unified_diff(_lines(recorded), _lines(again), "recorded", "now", n=0))
        for line in difference:
            self.stdout.write(line.rstrip())
        if difference:
            raise CommandError(f"cycle {cycle.pk} would be decided otherwise today")
        self.stdout.write(f"cycle {cycle.pk}: the same {len(again.decisions)} decisions")


def _lines(plan: Plan) -> list[str]:
    """Return the decisions as recordings write them: equal ones are equal texts."""
    decisions = codec.encode_plan(plan)["decisions"]
    return [f"{json.dumps(decision, sort_keys=True)}\n" for decision in decisions]
