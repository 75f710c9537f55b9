"""The one writer of who is in which team; whoever calls it has checked whether that may be."""

from gpuplatform.common import audit
from queues.models import Membership, Team, User


def write_membership(
    team: Team,
    user: User,
    role: str | None,
    *,
    before: str | None,
    by_group: bool,
    actor: User | None,
    reason: str = "",
) -> None:
    """Give ``user`` a role in ``team``; None takes it away.

    ``before``: the role that the user has there by now. ``by_group``: it comes from a group at an
    identity provider, and goes with it.
    """
    if role is None:
        Membership.objects.filter(team=team, user=user).delete()
    else:
        given = {"role": role, "by_group": by_group}
        Membership.objects.update_or_create(team=team, user=user, defaults=given)
    audit.record(
        actor,
        "membership.removed" if role is None else "membership.set",
        ("Team", team.name),
        before={"user": user.get_username(), "role": before},
        after={"user": user.get_username(), "role": role},
        reason=reason,
        team=team.name,
    )
