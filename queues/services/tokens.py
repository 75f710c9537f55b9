"""Writers of API tokens: made once, shown once, stored hashed, used, revoked."""

from datetime import timedelta

from django.db import transaction
from django.db.models import Q
from django.utils import timezone
from django.utils.translation import gettext as _

from gpuplatform.common import audit
from gpuplatform.common.problems import Problem
from queues.choices import SCOPES
from queues.models import ApiToken, Team, User
from queues.rules.words import check_choice, check_text
from queues.services.writing import refuse

DEFAULT_LIFE = timedelta(days=90)
LONGEST_LIFE = timedelta(days=366)
USE_NOTED_EVERY = timedelta(minutes=1)
PREFIX = "gpt_"  # lets secret scanners recognise a leaked token


@transaction.atomic
def issue_token(
    user: User,
    name: str,
    scopes: list[str],
    *,
    actor: User | None,
    team: Team | None = None,
    ttl: timedelta = DEFAULT_LIFE,
) -> tuple[ApiToken, str]:
    """Return a new token of ``user`` and its secret, which nobody can read again.

    ``team`` limits it to the rows of one team.

    Raises:
        Rejected: no name, no or unknown scopes, or a life outside 0..366 days.
    """
    refuse(_check_token(name, scopes, ttl))
    token, secret = ApiToken.objects.create(
        user, expiry=ttl, prefix=PREFIX, name=name, scopes=sorted(set(scopes)), team=team
    )
    _note(actor, "token.issued", token)
    return token, secret


def _check_token(name: str, scopes: list[str], ttl: timedelta) -> list[Problem]:
    problems = [*check_text(name, "name", 64)]
    if not name.strip():
        problems.append(Problem("name", "required", _("a token needs a name")))
    if not scopes:
        problems.append(Problem("scopes", "required", _("a token needs a scope")))
    for index, scope in enumerate(scopes):
        problems += check_choice(scope, SCOPES, f"scopes[{index}]")
    if not timedelta(0) < ttl <= LONGEST_LIFE:
        words = _("a token lives for up to {days} days").format(days=LONGEST_LIFE.days)
        problems.append(Problem("ttl", "out_of_range", words, {"most": LONGEST_LIFE.days}))
    return problems


@transaction.atomic
def revoke_token(token: ApiToken, *, actor: User | None, reason: str = "") -> None:
    """Make ``token`` useless at once."""
    _note(actor, "token.revoked", token, reason)
    token.delete()


def note_use(token: ApiToken) -> None:
    """Keep when ``token`` was last used, to the minute: a busy client is not a write a request."""
    now = timezone.now()
    stale = Q(last_used_at=None) | Q(last_used_at__lt=now - USE_NOTED_EVERY)
    if token.last_used_at is None or token.last_used_at < now - USE_NOTED_EVERY:
        ApiToken.objects.filter(stale, pk=token.pk).update(last_used_at=now)


def _note(actor: User | None, action: str, token: ApiToken, reason: str = "") -> None:
    audit.record(
        actor,
        action,
        ("ApiToken", token.name),
        after={
            "user": token.user.get_username(),
            "scopes": token.scopes,
            "team": token.team.name if token.team else None,
            "expires": token.expiry.isoformat() if token.expiry else None,
        },
        reason=reason,
        team=token.team.name if token.team else "",
    )
