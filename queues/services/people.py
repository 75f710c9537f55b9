"""Writers of people: who may sign in, as whom, and with which roles on the whole platform."""

from collections.abc import Mapping
from typing import Any

from django.conf import settings
from django.db import transaction
from django.db.models import Q
from django.utils.translation import gettext as _

from gpuplatform.common import audit
from gpuplatform.common.problems import Problem, Rejected, Stale
from queues.choices import Role
from queues.descriptions import as_json, describe_person
from queues.models import PlatformRole, User
from queues.rules import check_admin_left, check_password, check_person
from queues.rules.words import check_choice
from queues.services.writing import refuse
from queues.specs import PersonSpec

COLUMNS = ("first_name", "last_name", "email", "is_active")


@transaction.atomic
def add_person(
    spec: PersonSpec, *, actor: User | None, password: str | None = None, reason: str = ""
) -> User:
    """Create somebody who may sign in; without password only tokens let them in.

    Raises:
        Rejected: the spec or the password breaks a rule, or the name is taken.
    """
    problems = [*check_person(spec)]
    columns = {name: getattr(spec, name) for name in ("username", *COLUMNS)}
    if password is not None:
        problems += check_password(password, User(**columns))
    # Two names that differ in capitals only would be taken for each other.
    if User.objects.filter(username__iexact=spec.username).exists():
        words = _("{name} is there already").format(name=spec.username[:150])
        problems.append(Problem("username", "duplicate", words))
    refuse(problems)
    user: User = User.objects.create_user(password=password, **columns)
    _note(actor, "user.created", user, after=as_json(spec), reason=reason)
    for role in spec.roles:
        set_platform_role(user, role, True, actor=actor, reason=reason)
    return user


@transaction.atomic
def set_alert_mail(user: User, wanted: bool, *, actor: User | None) -> None:
    """Let somebody be told of alerts by mail, or not; what is so already is no change."""
    if User.objects.filter(pk=user.pk, alert_mail=not wanted).update(alert_mail=wanted):
        user.alert_mail = wanted
        _note(actor, "user.alert_mail_set", user, after={"alert_mail": wanted}, reason="")


def set_language(user: User, language: str, *, actor: User | None) -> None:
    """Choose the language of somebody's pages; "" leaves it to their browser.

    Raises:
        Rejected: the pages do not speak it.
    """
    if language:
        refuse(check_choice(language, dict(settings.LANGUAGES), "language"))
    if User.objects.filter(pk=user.pk).exclude(language=language).update(language=language):
        user.language = language
        _note(actor, "user.language_set", user, after={"language": language}, reason="")


def create_person(
    username: str, *, actor: User | None, email: str = "", password: str | None = None
) -> User:
    """Create somebody without roles; see :func:`add_person`."""
    return add_person(PersonSpec(username, email=email), actor=actor, password=password)


@transaction.atomic
def edit_person(
    spec: PersonSpec,
    *,
    actor: User | None,
    reason: str = "",
    if_seen: Mapping[str, Any] | None = None,
) -> User:
    """Make somebody's names, roles and admission those of ``spec``.

    ``if_seen`` is the person as the caller saw them (``as_json`` of a spec); None overwrites.

    Raises:
        Rejected: the spec breaks a rule, nobody is called so, or no admin would be left.
        Stale: somebody else changed the person since the caller saw them.
    """
    refuse(check_person(spec))
    user = User.objects.select_for_update().filter(username=spec.username).first()
    if user is None:
        words = _("nobody has the user name {name}").format(name=spec.username)
        raise Rejected([Problem("username", "not_found", words)])
    before = describe_person(user)
    if if_seen is not None and if_seen != as_json(before):
        words = _("somebody changed this since you saw it: get it again")
        raise Stale([Problem("seen", "stale", words)])
    stays = spec.is_active and (Role.ADMIN.value in spec.roles or user.is_superuser)
    refuse(check_admin_left(active_admins(), spec.username, stays=stays))
    _write(user, before, spec, actor, reason)
    for role in Role.values:
        if (role in spec.roles) != (role in before.roles):
            set_platform_role(user, role, role in spec.roles, actor=actor, reason=reason)
    return user


def _write(
    user: User, before: PersonSpec, spec: PersonSpec, actor: User | None, reason: str
) -> None:
    changed = [name for name in COLUMNS if getattr(before, name) != getattr(spec, name)]
    if not changed:
        return
    for name in changed:
        setattr(user, name, getattr(spec, name))
    user.save(update_fields=changed)
    was = {name: getattr(before, name) for name in changed}
    now = {name: getattr(spec, name) for name in changed}
    _note(actor, "user.updated", user, before=was, after=now, reason=reason)


@transaction.atomic
def set_password(user: User, password: str, *, actor: User | None, reason: str = "") -> None:
    """Give ``user`` a new password; their sessions elsewhere end, their tokens go on.

    Raises:
        Rejected: the password is too weak.
    """
    refuse(check_password(password, user))
    user.set_password(password)
    user.save(update_fields=["password"])
    _note(actor, "user.password_set", user, reason=reason)


@transaction.atomic
def set_platform_role(
    user: User, role: str, granted: bool, *, actor: User | None, reason: str = ""
) -> None:
    """Grant or revoke a role on the whole platform.

    Raises:
        Rejected: there is no such role, or no active admin would be left.
    """
    refuse(check_choice(role, Role.values, "role"))
    if role == Role.ADMIN and not granted:
        stays = user.is_superuser and user.is_active
        refuse(check_admin_left(active_admins(), user.get_username(), stays=stays))
    held = PlatformRole.objects.filter(user=user, role=role)
    if held.exists() == granted:
        return
    if granted:
        PlatformRole.objects.get_or_create(user=user, role=role)
    else:
        held.delete()
    action = "platform_role.granted" if granted else "platform_role.revoked"
    _note(actor, action, user, after={"role": role}, reason=reason)


def active_admins() -> frozenset[str]:
    """Return the names of those who may do everything.

    The rows are locked first where the database can, so that two admins cannot remove each
    other at once; SQLite has one writer anyway.
    """
    list(PlatformRole.objects.select_for_update().filter(role=Role.ADMIN).order_by("pk"))
    admins = User.objects.filter(
        Q(platform_roles__role=Role.ADMIN) | Q(is_superuser=True), is_active=True
    )
    return frozenset(admins.values_list("username", flat=True))


def _note(actor: User | None, action: str, user: User, **facts: Any) -> None:
    audit.record(actor, action, ("User", user.get_username()), **facts)
