"""What is kept of a sign-in and of second factors: in the session, and in the audit trail."""

from typing import Any

from allauth.account.internal.flows.login import record_authentication
from allauth.mfa.models import Authenticator
from allauth.mfa.signals import authenticator_used
from django.db import transaction
from django.http import HttpRequest
from django.utils.translation import gettext as _

from gpuplatform.common import audit
from gpuplatform.common.problems import Problem, Rejected
from queues.access import SECOND_FACTOR
from queues.models import User

TOTP, CODES = Authenticator.Type.TOTP, Authenticator.Type.RECOVERY_CODES


def note_password(request: HttpRequest, user: User) -> None:
    """Note that the password was right just now: it is not asked for again for five minutes."""
    record_authentication(request, user, method="password", reauthenticated=True)


def has_factor(user: User) -> bool:
    """Return whether somebody has set up an authenticator app. 1 query."""
    return bool(Authenticator.objects.filter(user=user, type=TOTP).exists())


@transaction.atomic
def remove_factors(user: User, *, actor: User | None, reason: str) -> None:
    """Take the second factor off somebody who lost it; the next sign-in needs none.

    Raises:
        Rejected: there is none.
    """
    found = Authenticator.objects.filter(user=user)
    kinds = sorted(found.values_list("type", flat=True))
    if not kinds:
        words = _("{name} has no second factor").format(name=user.get_username())
        raise Rejected([Problem("username", "not_found", words)])
    found.delete()
    _record(actor, "second_factor.removed", user, kinds, reason)


def record_own(request: HttpRequest, action: str, kind: str) -> None:
    """Audit what somebody did to their own factors, in the transaction that does it."""
    user = request.user
    assert isinstance(user, User)
    _record(user, action, user, [kind])


def connect() -> None:
    """Follow what allauth tells; called once, when the models are ready."""
    authenticator_used.connect(_note_use, dispatch_uid="gpuplatform")


def _note_use(request: HttpRequest, user: User, **more: Any) -> None:
    request.session[SECOND_FACTOR] = user.pk
    if more["authenticator"].type == CODES:  # it may be gone from a drawer
        _record(user, "second_factor.recovery_code_used", user, [CODES])


def _record(
    actor: User | None, action: str, user: User, kinds: list[str], reason: str = ""
) -> None:
    after = {"kinds": [str(kind) for kind in kinds]}
    audit.record(actor, action, ("User", user.get_username()), after=after, reason=reason)
