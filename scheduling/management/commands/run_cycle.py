"""``manage.py run_cycle``: look at the cluster and decide once, by hand."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError

from scheduling import cycle, reconciler


class Command(BaseCommand):
    """Run one reconcile and one cycle; print what was decided."""

    help = "Run one scheduling cycle and print its decisions."

    def handle(self, *_args: Any, **_options: Any) -> None:
        """Print a line for each decision, and the counts."""
        looked = reconciler.reconcile()
        report = cycle.run_cycle()
        if not report.ran:
            raise CommandError("another process is deciding; try again in a moment")
        if report.refused:
            raise CommandError("the plan was refused: " + "; ".join(report.refused))
        for tree in report.quarantined:
            self.stderr.write(f"{tree} was left out: the engine found a fault of its own in it")
        for line in report.lines:
            self.stdout.write(line)
        self.stdout.write(
            f"cycle {report.cycle_id}: {looked.released} released, {report.admitted} admitted, "
            f"{report.evicted} evicted, {report.held} held, {report.stale} stale"
        )
