"""Commands about money: a team's bill, and what a month costs whom."""

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from enum import StrEnum
from gettext import gettext as _
from typing import Annotated, Any

import typer

from gpuplatform.client.options import Out, connect
from gpuplatform.client.output import Format, column, say, show, show_one
from gpuplatform.client.server import quoted

MONTH = re.compile(r"\d{4}-(0[1-9]|1[0-2])", re.ASCII)


def _month(said: str) -> str:
    """Return a month as it is written in addresses; another way to write one is wrong usage."""
    if said and not MONTH.fullmatch(said):
        words = _("{said} is not a month: write year and month like 2026-06.")
        raise typer.BadParameter(words.format(said=said))
    return said


Month = Annotated[
    str, typer.Option(help="Such as 2026-10; left out: this month.", callback=_month)
]
LINES = (
    *(column("KIND"), column("DESCRIPTION"), column("QUANTITY", right=True), column("UNIT")),
    *(column("PRICE", "unit_price", right=True), column("AMOUNT", right=True)),
    *(column("CURRENCY", wide=True), column("POLICY", wide=True), column("LENDER", wide=True)),
)
TEAMS = (
    *(column("TEAM"), column("GPU-HOURS", "gpu_hours", right=True), column("OWN", right=True)),
    *(column("BORROWED", right=True), column("IDLE", right=True), column("TOKENS", right=True)),
    *(column("ADJUSTED", "adjustments", right=True), column("OTHER", right=True)),
    *(column("TOTAL", right=True), column("CURRENCY")),
)


class By(StrEnum):
    """What a month is split by."""

    TEAM = "team"


def _this_month() -> str:
    return datetime.now(UTC).strftime("%Y-%m")


def bill(team: str, month: Month = "", output: Out = Format.TABLE) -> None:
    """Print a team's bill, line by line.

    Example: gpuctl bill vision --month 2026-10 -o csv
    """
    found = connect().get(f"bills/{quoted(month or _this_month())}/{quoted(team)}/")
    if output in (Format.JSON, Format.YAML, Format.NAME):
        show_one(found | {"name": found["team"]}, output, list)
        return
    show(found["lines"], LINES, output)
    say(*_sum(found))


def _sum(found: dict[str, Any]) -> Iterator[str]:
    words = _("{status}: {total} {currency} from {period_start} to {period_end}")
    yield words.format(**found)


def cost(
    by: Annotated[By, typer.Option(help="What the month is split by.")] = By.TEAM,
    month: Month = "",
    output: Out = Format.TABLE,
) -> None:
    """Print what a month costs whom, of the bills that you may see.

    Example: gpuctl cost --by team --month 2026-10
    """
    found = connect().get(f"bills/{quoted(month or _this_month())}/")
    rows = [{**one, "currency": found["currency"]} for one in found["bills"]]
    show(rows, TEAMS, output, name=str(by))
    if output in (Format.TABLE, Format.WIDE):
        say(*_sum(found))
