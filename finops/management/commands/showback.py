"""``manage.py showback HOURLY QUOTAS --first DAY``: a recorded month of many teams, as a showback.

Nothing is read from or written to the database.
"""

from argparse import ArgumentParser, ArgumentTypeError
from datetime import date
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from pathlib import Path
from typing import Any, cast, get_args

from django.core.management.base import BaseCommand, CommandError

from finops.allocation.facts import IdlePolicy
from finops.recorded_months import BadTableError, read_month, showback, table_of
from gpuplatform.common.recorded_files import read_text


class Command(BaseCommand):
    """Show what teams of a recorded month used, left idle and would pay."""

    help = (
        "Print what each team of a recorded month used of the quota in force each day, what of it "
        "stayed idle, and both in money. HOURLY has the columns vc, hour, running_gpus; QUOTAS "
        "vc, date, gpus, where 'total' is the cluster. Plain or gzip."
    )
    requires_system_checks = []  # it touches no database, and starts at once

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Take the tables, the first day, a price and who bears idle."""
        parser.add_argument("hourly", type=Path, metavar="HOURLY")
        parser.add_argument("quotas", type=Path, metavar="QUOTAS")
        parser.add_argument("--first", type=_day, required=True, help="the day of hour 0")
        parser.add_argument("--price", type=_price, default=Fraction("1.40"), help="of a GPU-hour")
        parser.add_argument("--currency", default="EUR")
        parser.add_argument("--idle", choices=get_args(IdlePolicy), default="owner")

    def handle(self, *_args: Any, **options: Any) -> None:
        """Read both tables, bill the month, print it."""
        hourly, quotas = read_text(options["hourly"]), read_text(options["quotas"])
        try:
            month = read_month(hourly, quotas, options["first"])
        except BadTableError as error:
            raise CommandError(str(error)) from error
        found = showback(month, options["price"], cast("IdlePolicy", options["idle"]))
        self.stdout.write(table_of(found, options["currency"]))


def _day(text: str) -> date:
    try:
        return date.fromisoformat(text)
    except ValueError as error:
        raise ArgumentTypeError("a day looks like 2020-05-01") from error


def _price(text: str) -> Fraction:
    try:
        found = Decimal(text)
    except InvalidOperation as error:
        raise ArgumentTypeError("a price is a number") from error
    if not found.is_finite() or found < 0:
        raise ArgumentTypeError("a price is a number from 0 on")
    return Fraction(found)
