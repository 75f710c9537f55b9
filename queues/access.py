"""Who may see and do what: the one place that decides it, on pages and over REST.

Foreign rows are not there (404); a visible object with a forbidden action is 403. A token narrows
its owner's rights by scopes and, if it has a team, to that team's rows.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import wraps
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeAlias, TypeVar

from django.conf import settings
from django.contrib.auth.models import AnonymousUser
from django.contrib.auth.views import redirect_to_login
from django.core.exceptions import PermissionDenied
from django.db.models import Model, Q, QuerySet
from django.http import Http404, HttpRequest, HttpResponse
from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from rest_framework.permissions import SAFE_METHODS, BasePermission
from rest_framework.request import Request

from queues.choices import SCOPES, Role, TeamRole
from queues.known import Held, Rights, rights_from, rights_of
from queues.models import ApiToken, Membership, User

if TYPE_CHECKING:  # DRF's views import who signs in, and that this module
    from rest_framework.views import APIView

Rows = TypeVar("Rows", bound=Model)
P = ParamSpec("P")
Page: TypeAlias = Callable[Concatenate[HttpRequest, P], HttpResponse]
NOTE = "_actor"  # where a request keeps who asks
SECOND_FACTOR = "second_factor"  # in a session: the person (pk) who has proved one in it
READERS_OF_ALL = frozenset({Role.ADMIN.value, Role.FINANCE.value, Role.AUDITOR.value})


# What a right of an actor rests on: one of these roles, and, of a token, this scope.
NEEDED: Mapping[str, tuple[tuple[Role, ...], str]] = {
    "may_edit_quota": ((Role.ADMIN,), "quota:write"),
    "may_operate": ((Role.ADMIN,), "workloads:admin"),
    "may_drive": ((Role.ADMIN,), "cluster:agent"),
    "may_price": ((Role.FINANCE, Role.ADMIN), "cost:close"),
    "is_admin": ((Role.ADMIN,), "admin"),
    "sees_everything": (tuple(Role), "read"),
}
SUBMITTERS = gettext_lazy(
    "This needs a member of the team or the role platform admin, and of a token the scope"
    " workloads:submit."
)
LEADERS = gettext_lazy("This needs the lead of the team, or the role platform admin.")


@dataclass(frozen=True, slots=True)
class Actor:
    """Somebody who asks, with everything that decides what they get.

    ``teams`` maps a team's id to the role in it. ``scopes`` None is a browser session: all.
    ``lacks_factor``: signed in, but nobody until a second factor is proved.
    """

    user: User | None
    roles: frozenset[str] = frozenset()
    teams: Mapping[int, str] | None = None
    scopes: frozenset[str] | None = None
    token_team: int | None = None
    lacks_factor: bool = False

    def has_scope(self, scope: str) -> bool:
        """Return whether the token, if any, allows ``scope``; ``admin`` allows all."""
        return self.scopes is None or bool(self.scopes & {scope, "admin"})

    def has_role(self, *roles: str) -> bool:
        """Return whether one of the platform roles is held and not narrowed to a team."""
        return self.token_team is None and bool(self.roles & set(roles))

    @property
    def is_admin(self) -> bool:
        """Return whether everything is allowed."""
        return self.has_role(Role.ADMIN) and self.has_scope("admin")

    @property
    def sees_everything(self) -> bool:
        """Return whether the rows of all teams are visible."""
        return self.has_role(*READERS_OF_ALL)

    @property
    def team_ids(self) -> frozenset[int]:
        """Return the teams whose rows are visible, where not all are."""
        own = frozenset(self.teams or {})
        if self.token_team is None:
            return own
        reachable = own | {self.token_team} if self.roles & READERS_OF_ALL else own
        return reachable & {self.token_team}

    @property
    def may_edit_quota(self) -> bool:
        """Return whether promises (teams, quotas, queues, flavors) may be edited."""
        return self.has_role(Role.ADMIN) and self.has_scope("quota:write")

    @property
    def may_operate(self) -> bool:
        """Return whether nodes and everybody's workloads may be acted on."""
        return self.has_role(Role.ADMIN) and self.has_scope("workloads:admin")

    @property
    def may_set_any_priority(self) -> bool:
        """Return whether a number of priority may be as high as it likes."""
        submits = self.has_scope("workloads:submit") or self.has_scope("workloads:admin")
        return self.has_role(Role.ADMIN) and submits

    @property
    def may_drive(self) -> bool:
        """Return whether machines may be reported and members started, as an agent does."""
        return self.has_role(Role.ADMIN) and self.has_scope("cluster:agent")

    @property
    def may_leave_quota(self) -> bool:
        """Return whether work may be submitted that names no queue: nothing bounds it."""
        return self.has_role(Role.ADMIN) and self.has_scope("workloads:submit")

    @property
    def may_price(self) -> bool:
        """Return whether prices may be set and months worked on."""
        return self.has_role(Role.FINANCE, Role.ADMIN) and self.has_scope("cost:close")

    @property
    def may_see_bills(self) -> bool:
        """Return whether the bills of all teams, and what nobody pays for, are visible."""
        return self.sees_everything and self.has_scope("cost:read")

    @property
    def may_see_prices(self) -> bool:
        """Return whether prices are visible: to those who see some bill made from them."""
        return self.may_see_bills or bool(self.bill_team_ids)

    @property
    def may_manage_people(self) -> bool:
        """Return whether people may be made, given roles and shut out."""
        return self.is_admin

    @property
    def may_see_people(self) -> bool:
        """Return whether everybody's roles, teams and sign-ins are visible."""
        return self.may_manage_people or self.has_role(Role.AUDITOR)

    @property
    def may_tell_all(self) -> bool:
        """Return whether webhooks of the whole platform, and of all teams, may be set up."""
        return self.has_role(Role.ADMIN) and self.has_scope("webhooks")

    def may_tell_of(self, team_id: int | None) -> bool:
        """Return whether webhooks of a team, or with None of the platform, may be set up."""
        return self.may_tell_all or (self.has_scope("webhooks") and self.leads(team_id))

    @property
    def useful_scopes(self) -> list[str]:
        """Return the scopes that a token of this person would not carry in vain."""
        leads = any(self.leads(team) for team in self.team_ids)
        is_admin = self.has_role(Role.ADMIN)
        allowed = {
            "read": True,
            "workloads:submit": is_admin or bool(self.team_ids),
            "cost:read": self.sees_everything or leads,
            "cost:close": self.has_role(Role.FINANCE, Role.ADMIN),
            "audit:read": self.has_role(Role.ADMIN, Role.AUDITOR) or leads,
            "webhooks": is_admin or leads,
        }
        return [scope for scope in SCOPES if allowed.get(scope, is_admin)]

    @property
    def may_see_audit(self) -> bool:
        """Return whether the whole audit trail is visible; leads see their teams' entries."""
        return self.has_role(Role.ADMIN, Role.AUDITOR) and self.has_scope("audit:read")

    def sees_team(self, team_id: int | None) -> bool:
        """Return whether rows of the team are visible; those of nobody to readers of all."""
        return self.sees_everything or team_id in self.team_ids

    def leads(self, team_id: int | None) -> bool:
        """Return whether the actor leads the team."""
        return self._role_in(team_id) == TeamRole.LEAD

    def may_submit(self, team_id: int | None) -> bool:
        """Return whether workloads of the team may be submitted and cancelled."""
        if not (self.has_scope("workloads:submit") or self.has_scope("workloads:admin")):
            return False
        return self.has_role(Role.ADMIN) or self._role_in(team_id) is not None

    def may_see_bill(self, team_id: int | None) -> bool:
        """Return whether the team's bill is visible: to its lead, and to readers of all."""
        if not self.has_scope("cost:read"):
            return False
        return self.sees_everything or self.leads(team_id)

    @property
    def bill_team_ids(self) -> frozenset[int]:
        """Return the teams whose bills are visible, where not all are."""
        if not self.has_scope("cost:read"):
            return frozenset()
        return frozenset(team for team in self.team_ids if self.leads(team))

    def _role_in(self, team_id: int | None) -> str | None:
        """Return the role in a team; an admin's token for one team acts as its lead."""
        if team_id is None or team_id not in self.team_ids:
            return None
        if self.token_team == team_id and self.roles & {Role.ADMIN.value}:
            return TeamRole.LEAD.value
        return (self.teams or {}).get(team_id)


def actor_of(request: HttpRequest | Request) -> Actor:
    """Return who asks; read once for a request and its way of signing in (one query at most)."""
    plain = request._request if isinstance(request, Request) else request  # noqa: SLF001
    auth = getattr(request, "auth", None)
    token = auth if isinstance(auth, ApiToken) else None
    signed_in = (request.user, token)
    noted = getattr(plain, NOTE, None)
    if noted is None or noted[0] != signed_in:
        found = actor_for(request.user, token)
        if token is None and lacks_factor(found, getattr(plain, "session", {})):
            found = Actor(None, lacks_factor=True)
        noted = (signed_in, found)
        setattr(plain, NOTE, noted)
    actor: Actor = noted[1]
    return actor


def note_actor(request: Request, token: ApiToken, held: Iterable[Held]) -> None:
    """Say who asks with ``token``: its owner's roles were read with it, just now."""
    found = _actor(token.user, token, rights_from(held))
    setattr(request._request, NOTE, ((token.user, token), found))  # noqa: SLF001


def lacks_factor(actor: Actor, session: Mapping[str, Any]) -> bool:
    """Return whether a role demands a second factor that this session has not proved."""
    demanded: frozenset[str] = settings.MFA_REQUIRED_ROLES
    held = actor.roles | frozenset((actor.teams or {}).values())
    proved_by = session.get(SECOND_FACTOR)
    return bool(demanded & held) and (actor.user is None or proved_by != actor.user.pk)


def actor_for(user: User | AnonymousUser, token: ApiToken | None = None) -> Actor:
    """Return what ``user`` may do, by ``token`` or, without one, by a browser session."""
    if not isinstance(user, User) or not user.is_active:
        return Actor(None)
    return _actor(user, token, rights_of(user))


def _actor(user: User, token: ApiToken | None, rights: Rights) -> Actor:
    roles = rights.everywhere | ({Role.ADMIN.value} if user.is_superuser else set())
    return Actor(
        user,
        roles,
        rights.teams,
        frozenset(token.scopes) if token else None,
        token.team_id if token else None,
    )


def visible(queryset: QuerySet[Rows], actor: Actor, field: str = "team") -> QuerySet[Rows]:
    """Return the rows that ``actor`` sees; ``field`` leads to the team. The one row filter."""
    if actor.sees_everything:
        return queryset
    return queryset.filter(**{f"{field}__in": actor.team_ids})


def visible_audit(queryset: QuerySet[Rows], actor: Actor) -> QuerySet[Rows]:
    """Return the audit entries that ``actor`` sees: all, or those of the teams they lead."""
    if actor.may_see_audit:
        return queryset
    led = [team for team in actor.team_ids if actor.leads(team)]
    if not led or not actor.has_scope("audit:read"):
        return queryset.none()
    names = Membership.objects.filter(team__in=led).values("team__name")
    return queryset.filter(Q(team__in=names) & ~Q(team=""))


def demand(allowed: bool, who: str | Promise = "") -> None:
    """Refuse with 403 unless ``allowed``: the object is visible, the action is not.

    ``who`` says to whom it is allowed.
    """
    if not allowed:
        raise PermissionDenied(str(who))


def insist(actor: Actor, right: str) -> None:
    """Refuse with 403 unless the actor has a right, and name the role or scope that is missing.

    ``right``: the name of a property of :class:`Actor` that stands in ``NEEDED``.
    """
    if getattr(actor, right):
        return
    roles, scope = NEEDED[right]
    if not actor.has_role(*roles):
        names = " / ".join(str(Role(role).label) for role in roles)
        narrowed = actor.token_team is not None and actor.roles & set(roles)
        words = _("This needs the role %(roles)s; this token is for one team only.")
        words = words if narrowed else _("This needs the role %(roles)s.")
        raise PermissionDenied(words % {"roles": names})
    raise PermissionDenied(scope_missing(scope))


def scope_missing(scope: str) -> str:
    """Return the sentence of a refusal for want of a scope of the token."""
    return _("This needs a token with the scope %(scope)s.") % {"scope": scope}


def demand_visible(allowed: bool) -> None:
    """Refuse with 404 unless ``allowed``: a foreign object is not there."""
    if not allowed:
        raise Http404


def require(
    predicate: Callable[[Actor], bool] = lambda actor: actor.user is not None,
) -> Callable[[Page[P]], Page[P]]:
    """Return a decorator of pages: login for strangers, 403 where ``predicate`` says no."""

    def decorate(view: Page[P]) -> Page[P]:
        @wraps(view)
        def guarded(request: HttpRequest, /, *args: P.args, **kwargs: P.kwargs) -> HttpResponse:
            actor = actor_of(request)
            if actor.user is None:
                door = "second-factor" if actor.lacks_factor else None
                return redirect_to_login(request.get_full_path(), door)
            demand(predicate(actor))
            return view(request, *args, **kwargs)

        return guarded

    return decorate


class HasScope(BasePermission):
    """REST: somebody signed in, whose token has the scope that the view names for the method.

    A view says ``scopes = {"GET": "read", "PUT": "quota:write"}``; reading needs ``read`` and a
    method that is not named needs ``admin``.
    """

    def has_permission(self, request: Request, view: "APIView") -> bool:
        """Return whether the request may go on to the view."""
        actor = actor_of(request)
        if actor.lacks_factor:
            self.message = _("Your role demands a second factor: prove or set one up first.")
        if actor.user is None:
            return False
        scope = _scope_for(str(request.method), getattr(view, "scopes", {}))
        self.message = scope_missing(scope)  # DRF says it where this answers no
        return actor.has_scope(scope)


def _scope_for(method: str, scopes: Mapping[str, str]) -> str:
    return scopes.get(method, "read" if method in SAFE_METHODS else "admin")
