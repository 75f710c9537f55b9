"""Who comes through the identity provider: found or made, given what groups give, or sent away."""

import logging
from dataclasses import replace
from enum import StrEnum
from hashlib import sha256

from allauth.socialaccount.models import SocialAccount
from django.conf import settings
from django.db import transaction

from gpuplatform.common import audit
from gpuplatform.common.problems import Rejected
from queues.descriptions import describe_person
from queues.models import User
from queues.rules import check_person
from queues.services import add_person, edit_person, follow_groups, gives_anything
from queues.services.groups import IDENTITY_PROVIDER
from queues.sign_in.claims import NAME_LENGTH, Comer
from queues.specs import PersonSpec

logger = logging.getLogger(__name__)
MOST_NAMESAKES = 1000


class Refusal(StrEnum):
    """Why somebody whom the provider vouches for does not get in."""

    SHUT_OUT = "shut_out"
    NO_GROUP = "no_group"


def provider_id() -> str:
    """Return what links of this provider are kept under: another issuer has other subjects."""
    return f"oidc-{sha256(settings.OIDC_ISSUER.encode()).hexdigest()[:16]}"


@transaction.atomic
def arrive(comer: Comer) -> tuple[User | None, Refusal | None]:
    """Return who ``comer`` is here, or why they stay out; their groups are followed in any case.

    A known link decides; else, if so set, an address that the provider has verified and that
    exactly one person has here, who is linked to nobody. Else somebody new is made.
    """
    with audit.instead_of_somebody(IDENTITY_PROVIDER):
        user = _known(comer) or _by_address(comer)
        if user is not None and not user.is_active:
            return None, Refusal.SHUT_OUT
        if user is None:
            if not settings.OIDC_WITHOUT_GROUP and not gives_anything(comer.groups):
                return None, Refusal.NO_GROUP
            user = _make(comer)
        follow_groups(user, comer.groups)
        _take_over_names(user, comer)
        if not settings.OIDC_WITHOUT_GROUP and not _has_a_place(user):
            return None, Refusal.NO_GROUP
        return user, None


def _has_a_place(user: User) -> bool:
    """Return whether somebody has anything here, by a group or given by hand."""
    held = user.memberships.exists() or user.platform_roles.exists()
    return held or user.is_superuser


def _known(comer: Comer) -> User | None:
    links = SocialAccount.objects.select_related("user")
    link = links.filter(provider=provider_id(), uid=comer.subject).first()
    return link.user if link else None


def _by_address(comer: Comer) -> User | None:
    """Return the one person who has the comer's verified address, now linked."""
    if not (settings.OIDC_LINK_BY_EMAIL and comer.email_verified and comer.email):
        return None
    found = list(User.objects.filter(email__iexact=comer.email)[:2])
    if len(found) != 1 or SocialAccount.objects.filter(user=found[0]).exists():
        return None
    if found[0].is_active:
        _link(found[0], comer)
    return found[0]


def _make(comer: Comer) -> User:
    user = add_person(_spec(comer), actor=None, reason="first sign-in")
    _link(user, comer)
    return user


def _link(user: User, comer: Comer) -> None:
    SocialAccount.objects.create(user=user, provider=provider_id(), uid=comer.subject)
    after = {"issuer": settings.OIDC_ISSUER, "subject": comer.subject}
    audit.record(None, "user.linked", ("User", user.get_username()), after=after)


def _take_over_names(user: User, comer: Comer) -> None:
    """Follow names and address; the user name stays, whatever the provider calls them now."""
    known, said = describe_person(user), _told(comer)
    wanted = replace(
        known,
        first_name=said.first_name or known.first_name,
        last_name=said.last_name or known.last_name,
        email=said.email if said.email and comer.email_verified else known.email,
    )
    if wanted == known:
        return
    try:
        edit_person(wanted, actor=None, reason="sign-in")
    except Rejected as error:  # names that were given here long ago and break a rule of today
        logger.warning("oidc.names_kept %s: %s", known.username, error)


def _spec(comer: Comer) -> PersonSpec:
    """Return somebody new with a name that nobody has: lea, lea-2, lea-3 ..."""
    told = _told(comer)
    for number in range(1, MOST_NAMESAKES):
        end = f"-{number}" if number > 1 else ""
        spec = replace(told, username=told.username[: NAME_LENGTH - len(end)] + end)
        is_free = not User.objects.filter(username__iexact=spec.username).exists()
        if is_free and not any(p.path == "username" for p in check_person(spec)):
            return spec
    raise ValueError(f"too many people are called {told.username}")


def _told(comer: Comer) -> PersonSpec:
    """Return what the comer is called, without what breaks a rule here."""
    spec = PersonSpec(
        comer.username,
        first_name=comer.first_name,
        last_name=comer.last_name,
        email=comer.email,
    )
    broken = {p.path for p in check_person(spec)}
    return replace(
        spec,
        first_name="" if "first_name" in broken else spec.first_name,
        last_name="" if "last_name" in broken else spec.last_name,
        email="" if "email" in broken else spec.email,
    )
