"""Which nodes a page shows: by flavor, domain, team on it and state, as its address asks."""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from django.http import HttpRequest

from gpuplatform.common.narrowing import Narrowing, narrowing
from scheduling.selectors.nodes import NodeRow

STATES = ("ready", "cordoned", "not ready")
FILTERS = ("flavor", "domain", "team", "state")
MOST_DRAWN = 2_000  # GPUs; of more a node is one square (``product.md`` 5)
MOST_ROWS = 200  # of the table of a page; files have all


class NodeChoices(NamedTuple):
    """What the nodes at hand can be narrowed to."""

    flavor: Sequence[str]
    domain: Sequence[str]
    team: Sequence[str]
    state: Sequence[str] = STATES


def node_choices(rows: Iterable[NodeRow]) -> NodeChoices:
    """Return the values that occur on these nodes; teams are those that the reader may see."""
    rows = list(rows)
    return NodeChoices(
        sorted({row.flavor for row in rows if row.flavor}),
        sorted({place for row in rows for place in _domains(row)}),
        sorted({team for row in rows for team in _teams(row)}),
    )


def node_narrowing(request: HttpRequest, choices: NodeChoices) -> Narrowing:
    """Read what the address asks for; what it does not know is told."""
    return narrowing(request, FILTERS, choices=choices._asdict())


def narrowed(rows: Iterable[NodeRow], asks: Narrowing) -> list[NodeRow]:
    """Return the nodes that were asked for; none where the question was not understood."""
    return [] if asks.told else [row for row in rows if _matches(row, asks.wanted)]


def _matches(row: NodeRow, wanted: Mapping[str, str]) -> bool:
    return (
        wanted["flavor"] in {"", row.flavor}
        and wanted["state"] in {"", row.state}
        and (not wanted["domain"] or wanted["domain"] in _domains(row))
        and (not wanted["team"] or wanted["team"] in _teams(row))
    )


def _domains(row: NodeRow) -> set[str]:
    return {row.block, f"{row.block} / {row.rack}"} - {""} if row.rack else {row.block} - {""}


def _teams(row: NodeRow) -> set[str]:
    return {team.name for team, _gpus in row.by_team if team is not None}
