"""Writers of what groups at the identity provider give, and of what they gave to somebody."""

import logging
from collections.abc import Collection

from django.db import transaction
from django.utils.translation import gettext as _

from gpuplatform.common import audit
from gpuplatform.common.problems import Problem, Rejected
from queues.choices import Role, TeamRole
from queues.models import GroupGrant, PlatformRole, Team, User
from queues.rules.words import check_choice, check_text
from queues.services.memberships import write_membership
from queues.services.people import set_platform_role
from queues.services.writing import refuse

logger = logging.getLogger(__name__)
GROUP_LENGTH = 255
IDENTITY_PROVIDER = "identity provider"  # who signs the audit entries; no user name has a space


@transaction.atomic
def add_group_grant(
    group: str, team: Team | None, role: str, *, actor: User | None, reason: str = ""
) -> GroupGrant:
    """Let members of ``group`` have ``role`` in ``team``, or without a team on the platform.

    Raises:
        Rejected: the group has no name, there is no such role, or it gives that already.
    """
    problems = [*check_text(group, "group", GROUP_LENGTH)]
    if not group.strip():
        problems.append(Problem("group", "required", _("say which group")))
    problems += check_choice(role, TeamRole.values if team else Role.values, "gives")
    refuse(problems)
    same = GroupGrant.objects.filter(group=group, team=team)
    if (same if team else same.filter(role=role)).exists():
        words = _("{group} gives something there already; remove that first")
        refuse([Problem("group", "duplicate", words.format(group=group))])
    given = {"team_role": role} if team else {"role": role}
    grant = GroupGrant.objects.create(group=group, team=team, **given)
    _note(actor, "group_grant.added", grant, reason)
    return grant


@transaction.atomic
def remove_group_grant(grant: GroupGrant, *, actor: User | None, reason: str = "") -> None:
    """Let ``grant`` give nothing any more; who has it loses it at the next sign-in."""
    _note(actor, "group_grant.removed", grant, reason)
    grant.delete()


def gives_anything(groups: Collection[str]) -> bool:
    """Return whether one of ``groups`` gives anything here. 1 query."""
    return GroupGrant.objects.filter(group__in=groups).exists()


@transaction.atomic
def follow_groups(user: User, groups: Collection[str]) -> None:
    """Give ``user`` what their groups give, and take away what groups gave once.

    What was given by hand stays as it is, also where a group would give more. The last active
    admin stays one.
    """
    User.objects.select_for_update().get(pk=user.pk)
    grants = GroupGrant.objects.filter(group__in=groups).select_related("team").order_by("pk")
    with audit.instead_of_somebody(IDENTITY_PROVIDER):
        _follow_teams(user, [grant for grant in grants if grant.team_id is not None])
        _follow_roles(user, {grant.role for grant in grants if grant.role})


def _follow_teams(user: User, grants: Collection[GroupGrant]) -> None:
    wanted: dict[Team, str] = {}
    for grant in grants:
        assert grant.team is not None
        if wanted.get(grant.team) != TeamRole.LEAD:  # a lead is a member, too
            wanted[grant.team] = grant.team_role
    held = {place.team: place for place in user.memberships.select_related("team")}
    for team in wanted.keys() | held.keys():
        place, role = held.get(team), wanted.get(team)
        before = place.role if place else None
        if role != before and (place is None or place.by_group):
            write_membership(team, user, role, before=before, by_group=True, actor=None)


def _follow_roles(user: User, wanted: set[str]) -> None:
    held = dict(user.platform_roles.values_list("role", "by_group"))
    for role in wanted - held.keys():
        set_platform_role(user, role, True, actor=None)
        PlatformRole.objects.filter(user=user, role=role).update(by_group=True)
    for role in {role for role, by_group in held.items() if by_group} - wanted:
        try:
            set_platform_role(user, role, False, actor=None)
        except Rejected as error:
            logger.warning("oidc.role_kept %s %s: %s", user.get_username(), role, error)


def _note(actor: User | None, action: str, grant: GroupGrant, reason: str) -> None:
    gives = {"role": grant.team_role or grant.role}
    team = grant.team.name if grant.team else ""
    if team:
        gives["team"] = team
    subject = ("Group", grant.group)
    audit.record(actor, action, subject, after=gives, reason=reason, team=team)
