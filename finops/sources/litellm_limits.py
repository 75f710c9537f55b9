"""LiteLLM's own limits of teams: read, and set on somebody's explicit wish (finops.md 3.2, 3.3).

Its counters are not read: they are reset, inflated and late. Amounts are in its declared currency.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Protocol

import msgspec

from finops.sources.decoding import decoded
from finops.sources.failures import SourceError
from finops.sources.http import Asker

LIST, UPDATE = "v2/team/list", "team/update"
PAGE, MOST_PAGES = 100, 500


class Sender(Asker, Protocol):
    """Whatever answers questions and takes orders."""

    def post(self, path: str, body: bytes) -> bytes:
        """Send an order once; return the body of the answer."""


class _Team(msgspec.Struct):
    """A team as LiteLLM lists it; what else it says is passed over."""

    team_id: str
    team_alias: str | None = None
    max_budget: Decimal | None = None
    soft_budget: Decimal | None = None
    budget_duration: str | None = None
    budget_reset_at: datetime | None = None


class _Page(msgspec.Struct):
    """A page of ``/v2/team/list``."""

    teams: list[_Team]
    total_pages: int = 1


@dataclass(frozen=True, slots=True)
class TeamLimit:
    """What LiteLLM lets a team spend; None is no limit. ``duration`` "" never begins anew."""

    team_id: str
    alias: str = ""
    hard: Decimal | None = None
    soft: Decimal | None = None
    duration: str = ""
    reset_at: datetime | None = None


def read_limits(asker: Asker) -> list[TeamLimit]:
    """Return the limits of all teams, by id.

    Raises:
        SourceError: no answer, not such a list, or more pages than there can be.
    """
    found = {team.team_id: team for team in _teams(asker)}
    return [
        TeamLimit(
            team_id,
            team.team_alias or "",
            team.max_budget,
            team.soft_budget,
            team.budget_duration or "",
            team.budget_reset_at,
        )
        for team_id, team in sorted(found.items())
    ]


def _teams(asker: Asker) -> Iterator[_Team]:
    for number in range(1, MOST_PAGES + 1):
        page: _Page = decoded(asker.get(LIST, page=number, page_size=PAGE), _Page)
        yield from page.teams
        if number >= page.total_pages or not page.teams:
            return
    raise SourceError("SOURCE_TOO_MANY_PAGES", limit=MOST_PAGES)


def order_of(
    team_id: str, limit: Decimal, duration: str, *, is_hard: bool
) -> dict[str, str | Decimal]:
    """Return what is sent to LiteLLM for a limit: a hard one blocks there, a soft one tells."""
    name = "max_budget" if is_hard else "soft_budget"
    return {"team_id": team_id, name: limit, "budget_duration": duration}


def set_limit(sender: Sender, order: Mapping[str, str | Decimal]) -> None:
    """Send a limit, once: whoever is not answered looks before trying again.

    Raises:
        SourceError: it was not taken, or nobody can say.
    """
    sender.post(UPDATE, msgspec.json.Encoder(decimal_format="number").encode(order))
