"""Rules of teams, namespaces and priority classes."""

from collections.abc import Collection, Iterator

from django.utils.translation import gettext as _

from gpuplatform.common.problems import Problem
from queues.choices import AccountingMode, PriorityKind
from queues.rules.words import (
    RESERVED,
    check_choice,
    check_int32,
    check_labels,
    check_name,
    check_reserved,
    check_short_name,
    check_text,
)
from queues.specs import NamespaceSpec, PriorityClassSpec, TeamSpec

TEXT_LENGTH = 10_000
# Pages of a month stand where the bill of a team stands: /bills/2026-06/close/; and a new team is
# guided at /teams/onboard/.
TEAM_RESERVED = RESERVED | {"close", "onboard", "summary"}


def check_team(spec: TeamSpec) -> Iterator[Problem]:
    """Yield every problem of a team."""
    yield from check_short_name(spec.name)
    yield from check_reserved(spec.name, reserved=TEAM_RESERVED)
    yield from check_text(spec.display_name, "display_name", 100)
    yield from check_text(spec.cost_center, "cost_center", 64)
    yield from check_text(spec.description, "description", TEXT_LENGTH)
    yield from check_choice(spec.accounting_mode, AccountingMode.values, "accounting_mode")


def check_known_team(team: str | None, teams: Collection[str], path: str) -> Iterator[Problem]:
    """Yield a problem unless ``team`` is None, "" (nobody) or one of the ``teams``."""
    if team and team not in teams:
        message = _("there is no team {team}")
        yield Problem(path, "no_such_team", message.format(team=repr(team[:64])))


def check_namespace(spec: NamespaceSpec, teams: Collection[str]) -> Iterator[Problem]:
    """Yield every problem of a namespace."""
    yield from check_short_name(spec.name)
    yield from check_labels(spec.labels, "labels")
    yield from check_known_team(spec.team, teams, "team")


def check_priority_class(spec: PriorityClassSpec) -> Iterator[Problem]:
    """Yield every problem of a priority class (K10).

    Several global defaults are no problem: the lowest value counts (K11).
    """
    yield from check_choice(spec.kind, PriorityKind.values, "kind")
    yield from check_name(spec.name)
    yield from check_int32(spec.value, "value")
    yield from check_text(spec.description, "description", TEXT_LENGTH)
