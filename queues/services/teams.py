"""Writers of teams, who belongs to them, and their namespaces."""

from collections.abc import Iterator

from django.db import transaction
from django.utils.translation import gettext as _

from gpuplatform.common import audit
from gpuplatform.common.problems import Problem, Rejected
from queues.choices import Role, TeamRole
from queues.descriptions import as_json, describe_namespace, describe_team
from queues.models import Membership, Namespace, PlatformRole, Team, User
from queues.rules import check_namespace, check_team
from queues.rules.words import check_choice
from queues.services.memberships import write_membership
from queues.services.writing import Edit, refuse, require_row, store
from queues.specs import NamespaceSpec, TeamSpec


def known_teams() -> frozenset[str]:
    """Return the names of all teams, for the rules."""
    return frozenset(Team.objects.values_list("name", flat=True))


def owner_after(name: str | None, current: Team | None) -> Team | None:
    """Return the owner that a checked spec asks for: None keeps the current one, "" nobody."""
    if name is None:
        return current
    return Team.objects.get(name=name) if name else None


@transaction.atomic
def save_team(
    spec: TeamSpec, *, actor: User | None, reason: str = "", if_version: int | None = None
) -> Team:
    """Create or change a team. ``if_version`` 0: only if it is not there yet.

    Raises:
        Rejected: the spec breaks a rule.
        Stale: the team changed since the caller saw it.
    """
    refuse(check_team(spec))
    edit = Edit(Team, spec.name, actor, reason, if_version, spec.name)
    row = edit.find(name=spec.name)
    columns = {
        "name": spec.name,
        "display_name": spec.display_name,
        "cost_center": spec.cost_center,
        "accounting_mode": spec.accounting_mode,
        "description": spec.description,
    }
    return store(edit, row, columns, (describe_team(row) if row else None, spec))


@transaction.atomic
def delete_team(
    name: str, *, actor: User | None, reason: str = "", if_version: int | None = None
) -> None:
    """Delete a team that owns no queue and has no bill.

    Raises:
        Rejected: it is not there, or still needed.
        Stale: it changed since the caller saw it.
    """
    edit = Edit(Team, name, actor, reason, if_version, name)
    row = edit.find(name=name)
    refuse(require_row(row))
    assert row is not None
    edit.remove(row, describe_team(row))


@transaction.atomic
def save_namespace(
    spec: NamespaceSpec, *, actor: User | None, reason: str = "", if_version: int | None = None
) -> Namespace:
    """Create or change a namespace; ``team`` None keeps the owner, "" means nobody.

    What another team owns is taken only with a reason, and both teams read it in their trail.

    Raises:
        Rejected: the spec breaks a rule, or it is taken from a team without a word.
        Stale: the namespace changed since the caller saw it.
    """
    refuse(check_namespace(spec, known_teams()))
    row = Edit(Namespace, spec.name, actor, reason, if_version).find(name=spec.name)
    owner = row.team if row else None
    team = owner_after(spec.team, owner)
    loser = owner if owner is not None and owner != team else None
    refuse(_taken_silently(spec.name, loser, reason) if team else ())
    edit = Edit(Namespace, spec.name, actor, reason, team=team.name if team else "")
    columns = {"name": spec.name, "labels": dict(spec.labels), "team": team}
    before = describe_namespace(row) if row else None
    after = NamespaceSpec(spec.name, dict(spec.labels), team.name if team else None)
    stored = store(edit, row, columns, (before, after))
    if loser is not None:
        kept = (as_json(before), as_json(after))
        subject = ("Namespace", spec.name)
        audit.record(actor, "namespace.taken", subject, *kept, reason=reason, team=loser.name)
    return stored


def _taken_silently(name: str, loser: Team | None, reason: str) -> Iterator[Problem]:
    """Yield a problem where a team would lose a namespace and nobody says why."""
    if loser is not None and not reason.strip():
        words = _(
            "%(name)s belongs to %(team)s: what is submitted there, and what runs, counts for the"
            " other team from now on. Say why it moves, in at least %(n)d characters."
        ) % {"name": name, "team": loser, "n": audit.LEAST_REASON}
        yield Problem("reason", "reason_required", words)


def give_namespace(name: str, team: str, *, actor: User | None, reason: str = "") -> Namespace:
    """Give a namespace to a team, or with "" to nobody; its labels stay, a new one has none.

    Raises:
        Rejected: the name or the team breaks a rule.
    """
    row = Namespace.objects.filter(name=name).first()
    labels = describe_namespace(row).labels if row else {}
    return save_namespace(NamespaceSpec(name, labels, team), actor=actor, reason=reason)


def ensure_namespace(name: str, *, actor: User | None = None) -> Namespace:
    """Return the namespace, made without labels and owner if nobody declared it."""
    row = Namespace.objects.filter(name=name).first()
    return row or save_namespace(NamespaceSpec(name), actor=actor)


@transaction.atomic
def delete_namespace(
    name: str, *, actor: User | None, reason: str = "", if_version: int | None = None
) -> None:
    """Delete a namespace that a room above does not need.

    Raises:
        Rejected: it is not there, or still needed.
        Stale: it changed since the caller saw it.
    """
    edit = Edit(Namespace, name, actor, reason, if_version)
    row = edit.find(name=name)
    refuse(require_row(row))
    assert row is not None
    edit.remove(row, describe_namespace(row))


def person_called(username: str) -> User:
    """Return somebody who may be given a role.

    Raises:
        Rejected: nobody has this user name.
    """
    user: User | None = User.objects.filter(username=username).first()
    if user is None:
        raise Rejected([Problem("username", "not_found", _("nobody has this user name"))])
    return user


def _own_lead(
    before: Membership | None, role: str | None, actor: User | None
) -> Iterator[Problem]:
    """Yield a problem if a lead would leave the team without noticing: one press, no way back."""
    if before is None or before.role != TeamRole.LEAD or role == TeamRole.LEAD:
        return
    if actor is None or actor.pk != before.user_id:
        return
    if not PlatformRole.objects.filter(user=actor, role=Role.ADMIN).exists():
        words = _("a lead cannot give up the own lead; another lead or an admin can take it")
        yield Problem("role", "own_lead", words)


@transaction.atomic
def set_membership(
    team: Team, user: User, role: str | None, actor: User | None, reason: str = ""
) -> None:
    """Give ``user`` a role in ``team``; None removes the user from it.

    What is given by hand stays, whatever the person's groups at an identity provider are.

    Raises:
        Rejected: there is no such role, or a lead gives up the own lead.
    """
    if role is not None:
        refuse(check_choice(role, TeamRole.values, "role"))
    before = Membership.objects.filter(team=team, user=user).first()
    refuse(_own_lead(before, role, actor))
    had, was_by_hand = before.role if before else None, before is None or not before.by_group
    if had != role or not was_by_hand:
        write_membership(team, user, role, before=had, by_group=False, actor=actor, reason=reason)
