"""Asking a gateway for its own limits, and setting one: two short talks, nothing of them kept."""

from collections.abc import Mapping
from decimal import Decimal

from finops.ingest.reaching import address_of
from finops.models import Source
from finops.models.sources import SourceKind
from finops.sources.http import Connection
from finops.sources.litellm_limits import TeamLimit, read_limits, set_limit

ANSWER_S = 30.0  # until it must have answered


def gateways() -> list[Source]:
    """Return the gateways whose limits can be read and set: those reached by their API."""
    return list(Source.objects.filter(kind=SourceKind.LITELLM_API, enabled=True).order_by("name"))


def ask_limits(source: Source) -> list[TeamLimit]:
    """Return the limits of all teams of a gateway.

    Raises:
        SourceError: it gave no answer that can be used.
    """
    with Connection(address_of(source), read_s=ANSWER_S) as connection:
        return read_limits(connection)


def order_limit(source: Source, order: Mapping[str, str | Decimal]) -> list[TeamLimit]:
    """Send a limit to a gateway, once, and return what it then says of all teams.

    Raises:
        SourceError: it was refused, or nobody can say whether it was taken.
    """
    with Connection(address_of(source), read_s=ANSWER_S) as connection:
        set_limit(connection, order)
        return read_limits(connection)
