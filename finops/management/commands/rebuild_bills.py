"""``manage.py rebuild_bills [YYYY-MM ...]``: make draft bills anew by hand."""

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from finops import billing
from finops.models import BillingPeriod
from gpuplatform.common.problems import Rejected


class Command(BaseCommand):
    """Rebuild the named months, or this one and the last where something was metered."""

    help = "Make the draft bills of open months anew from metering and prices."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Take any number of months."""
        parser.add_argument("months", nargs="*", metavar="YYYY-MM")

    def handle(self, *_args: Any, **options: Any) -> None:
        """Rebuild, and print one line a month."""
        try:
            names = options["months"]
            periods = [billing.rebuild_draft(name) for name in names] or billing.rebuild_open()
        except Rejected as refusal:
            raise CommandError("; ".join(p.message for p in refusal.problems)) from refusal
        for period in periods:
            self.stdout.write(_line(period))
        if not periods:
            self.stdout.write("nothing was metered that has no bill")


def _line(period: BillingPeriod) -> str:
    bills, findings = period.bills.count(), period.findings.count()
    cost = f"{period.capacity_cost} {period.currency}"
    return f"{period.name}: {bills} bills, capacity {cost}, {findings} findings"
