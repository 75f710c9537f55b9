"""``manage.py replay_cycle ID``: decide a recorded cycle again at the desk."""

import json
from argparse import ArgumentParser
from difflib import unified_diff
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from scheduling.engine import codec
from scheduling.engine.plan import Plan
from scheduling.engine.quarantine import Verdict, decide_soundly
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
        if cycle is None or cycle.snapshot is None:
            raise CommandError(f"cycle {options['cycle']} has kept no snapshot")
        recorded = codec.decode_plan(cycle.plan) if cycle.plan else None
        verdict = decide_soundly(codec.decode_snapshot(cycle.snapshot))
        for sentence in _faults(verdict):
            self.stdout.write(f"broken: {sentence}")
        again = _lines(verdict.plan)
        difference = list(unified_diff(_lines(recorded), again, "recorded", "now", n=0))
        for line in difference:
            self.stdout.write(line.rstrip())
        if difference:
            raise CommandError(f"cycle {cycle.pk} would be decided otherwise today")
        self.stdout.write(f"cycle {cycle.pk}: the same {len(again)} decisions")


def _faults(verdict: Verdict) -> list[str]:
    """Return the faults of the engine that show in this cycle, with the tree of each."""
    pinned = [f"{tree}: {one}" for tree, ones in verdict.quarantined.items() for one in ones]
    return [*pinned, *verdict.faults]


def _lines(plan: Plan | None) -> list[str]:
    """Return the decisions as recordings write them: equal ones are equal texts."""
    if plan is None:
        return []
    decisions = codec.encode_plan(plan)["decisions"]
    return [f"{json.dumps(decision, sort_keys=True)}\n" for decision in decisions]
