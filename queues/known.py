"""Who a browser's session belongs to, read together with what they may: one statement a page."""

from collections.abc import Iterable
from typing import Any, NamedTuple, TypeAlias

from django.contrib.auth.backends import ModelBackend
from django.db.models import QuerySet

from gpuplatform.common.together import instances, read_together, whole
from queues.models import Membership, PlatformRole, User

Held: TypeAlias = tuple[int | None, str]  # a role, and the team in which it is held; None: all
NOTE = "_just_read"  # where a person keeps what was read with them, until it is taken


class Rights(NamedTuple):
    """The roles of a person on the whole platform, and by team."""

    everywhere: frozenset[str] = frozenset()
    teams: dict[int, str] = {}  # never changed


class People(ModelBackend):
    """Django's own way of knowing people, which reads a person's roles in the same statement."""

    def get_user(self, user_id: int) -> User | None:
        """Return the person of a session; None where there is nobody, or they are shut out."""
        found, *held = read_together(whole(User.objects.filter(pk=user_id)), *_asked(user_id))
        user = next(iter(instances(User, found)), None)
        if user is None or not self.user_can_authenticate(user):
            return None
        setattr(user, NOTE, _rights(*held))
        return user


def rights_of(user: User) -> Rights:
    """Return what a person may. 1 query; none where the session has just read it.

    What was read with the person is taken once: whoever asks later reads the tables anew.
    """
    just_read: Rights | None = getattr(user, NOTE, None)
    if just_read is not None:
        delattr(user, NOTE)
    return just_read or _rights(*read_together(*_asked(user.pk)))


def rights_from(held: Iterable[Held]) -> Rights:
    """Return what roles amount to that were read with something else, a token say."""
    held = list(held)
    everywhere = frozenset(role for team, role in held if team is None)
    return Rights(everywhere, {team: role for team, role in held if team is not None})


def _asked(user_id: int) -> tuple[QuerySet[Any, Any], QuerySet[Any, Any]]:
    everywhere = PlatformRole.objects.filter(user=user_id).order_by().values_list("role")
    in_teams = Membership.objects.filter(user=user_id).order_by().values_list("team_id", "role")
    return everywhere, in_teams


def _rights(everywhere: list[tuple[Any, ...]], in_teams: list[tuple[Any, ...]]) -> Rights:
    return Rights(frozenset(role for (role,) in everywhere), dict(in_teams))
