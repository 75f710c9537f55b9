"""Alerts by mail: who is told, one letter for each alert and person, and nothing lost.

Whom an alert concerns stands in its kind (:mod:`scheduling.alerting`); :func:`readers` is the one
place that turns that into people. A letter is a row before it is sent, so that a server that is
away, or a worker that dies, costs nothing but time: it is tried again after 1, 2, 4 ... minutes,
an hour at most. What is due for one person goes out as one mail. A worker that dies between
sending and noting it sends once more, under the same Message-ID.
"""

import logging
import time
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from itertools import groupby
from operator import attrgetter
from smtplib import SMTPDataError, SMTPRecipientsRefused, SMTPSenderRefused

from django.conf import settings
from django.core.mail import EmailMessage, get_connection
from django.core.mail.backends.base import BaseEmailBackend
from django.db import transaction
from django.db.models import Q, QuerySet
from django.urls import reverse
from django.utils.translation import gettext, ngettext, override

from gpuplatform.common import clock, leases
from gpuplatform.common.diagnostics import Diagnostic
from queues.choices import Role, TeamRole
from queues.models import Membership, User
from scheduling.alerting import Audience, registered
from scheduling.models import Alert, Letter

LEASE, LEASE_S = "mail", 240  # one process sends at a time
PEOPLE_AT_ONCE, SPAN_S = 50, 60.0  # of one call; the others wait for the next
LISTED = 50  # alerts that one mail tells in full
FIRST_S, MOST_S = 60, 3600  # until the second try, and between two tries at most
# The server is there and takes this mail not; ValueError: an address that no mail can name.
OF_ONE = (SMTPRecipientsRefused, SMTPSenderRefused, SMTPDataError, ValueError)

logger = logging.getLogger(__name__)


# ---- who is told --------------------------------------------------------------------------------
def readers(alert: Alert) -> QuerySet[User]:
    """Return who is told of an alert: its audience, as far as they want to be and have an address.

    Admins of the platform, finance, and the leads of the alert's team, as its kind says.
    """
    kind = registered().get(alert.code)
    audience = frozenset(kind.audience) if kind else frozenset()
    told = Q(pk__in=[])
    if Audience.ADMINS in audience:
        told |= Q(platform_roles__role=Role.ADMIN) | Q(is_superuser=True)
    if Audience.FINANCE in audience:
        told |= Q(platform_roles__role=Role.FINANCE)
    if Audience.LEADS in audience and alert.team_id is not None:
        leads = Membership.objects.filter(team=alert.team_id, role=TeamRole.LEAD)
        told |= Q(pk__in=leads.values("user"))
    return _reachable().filter(told).distinct()


def _reachable() -> QuerySet[User]:
    return User.objects.filter(is_active=True, alert_mail=True).exclude(email="")


def address(now: datetime | None = None) -> int:
    """Write a letter to each reader of each alert that has none; return how many.

    Where mail is switched off nobody is written to, then or later: what was raised meanwhile is
    old when it is switched on.
    """
    now = now or clock.now()
    written = 0
    with transaction.atomic():
        for alert in Alert.objects.select_for_update().filter(addressed_at=None).order_by("id"):
            told = readers(alert) if settings.ALERT_MAIL else User.objects.none()
            letters = [Letter(alert=alert, user=user, due_at=now) for user in told]
            Letter.objects.bulk_create(letters, ignore_conflicts=True)
            alert.addressed_at = now
            alert.save(update_fields=["addressed_at"])
            written += len(letters)
    return written


# ---- what is sent -------------------------------------------------------------------------------
def send(now: datetime | None = None) -> int:
    """Send what is due, one mail to each person; return how many mails went out.

    A server that is away ends the call after its first try: everybody's letters wait alike.
    """
    now = now or clock.now()
    due = Letter.objects.filter(sent_at=None, due_at__lte=now)
    if not due.exists():
        return 0
    held = leases.acquire(LEASE, leases.unique_holder(), LEASE_S)
    if held is None:
        return 0
    try:
        due.exclude(user__in=_reachable()).delete()  # they want none, or left
        return _send_all(due, now)
    finally:
        leases.release(held)


def _send_all(due: QuerySet[Letter], now: datetime) -> int:
    rows = due.select_related("alert", "user").order_by("user_id", "alert__raised_at", "alert_id")
    people = due.order_by("user_id").values_list("user_id", flat=True).distinct()
    rows = rows.filter(user__in=list(people[:PEOPLE_AT_ONCE]))
    server, sent, until = get_connection(), 0, time.monotonic() + SPAN_S
    try:
        server.open()
        for user, letters in groupby(rows, key=attrgetter("user")):
            if time.monotonic() > until:
                break
            sent += _send_to(user, list(letters), server, now)
    except OSError as error:  # SMTPException is one
        logger.warning("mail.server_away", extra={"error": str(error)})
        _postpone(due, str(error), now)
    finally:
        _close(server)
    return sent


def _send_to(
    user: User, letters: Sequence[Letter], server: BaseEmailBackend, now: datetime
) -> int:
    """Send a person's letters as one mail; 0 where the server does not take it."""
    mine = Letter.objects.filter(pk__in=[letter.pk for letter in letters])
    try:
        with override(user.language or settings.LANGUAGE_CODE):
            mail = mail_of(user, letters)
        server.send_messages([mail])
    except OF_ONE as error:
        logger.warning("mail.refused", extra={"user": user.username, "error": str(error)})
        _postpone(mine, str(error), now)
        return 0
    mine.update(sent_at=now, error="")
    return 1


def _postpone(letters: QuerySet[Letter], error: str, now: datetime) -> None:
    for letter in letters:
        wait = min(FIRST_S * 2 ** min(letter.tries, 10), MOST_S)
        letter.due_at, letter.tries = now + timedelta(seconds=wait), letter.tries + 1
        letter.error = error[:200]
        letter.save(update_fields=["due_at", "tries", "error"])


def _close(server: BaseEmailBackend) -> None:
    try:
        server.close()
    except OSError as error:
        logger.info("mail.close_failed", extra={"error": str(error)})


# ---- what it says -------------------------------------------------------------------------------
def mail_of(user: User, letters: Sequence[Letter]) -> EmailMessage:
    """Return one mail that tells a person of all these alerts."""
    alerts = [letter.alert for letter in letters]
    first = alerts[0]
    subject = f"{first.code}: {first.subject}"
    if len(alerts) > 1:
        words = ngettext("{n} alert", "{n} alerts", len(alerts))
        subject = words.format(n=len(alerts))
    host = settings.DEFAULT_FROM_EMAIL.rpartition("@")[2].rstrip(">") or "localhost"
    numbers = f"{letters[0].pk}-{letters[-1].pk}"
    return EmailMessage(
        f"[gpuplatform] {subject}",
        _body(alerts),
        to=[user.email],
        headers={"Message-ID": f"<alert-{numbers}@{host}>", "Auto-Submitted": "auto-generated"},
    )


def _body(alerts: Sequence[Alert]) -> str:
    parts = [_paragraph(alert) for alert in alerts[:LISTED]]
    if more := len(alerts) - LISTED:
        words = ngettext("And {n} more.", "And {n} more.", more)
        parts += [words.format(n=more)] if more > 0 else []
    parts.append("\n".join(_foot()))
    return "\n\n".join(parts)


def _paragraph(alert: Alert) -> str:
    finding = Diagnostic(alert.code, alert.subject, "", alert.facts)
    lines: Iterable[str] = (
        f"{alert.code}: {alert.subject}",
        finding.sentence,
        finding.next_step,
        gettext("Since {at} UTC.").format(at=f"{alert.raised_at:%Y-%m-%d %H:%M}"),
        gettext("It ended at {at} UTC.").format(at=f"{alert.cleared_at:%Y-%m-%d %H:%M}")
        if alert.cleared_at
        else "",
    )
    return "\n".join(line for line in lines if line)


def _foot() -> Iterable[str]:
    if settings.SITE_URL:
        yield settings.SITE_URL + reverse("alerts")
        account = settings.SITE_URL + reverse("account")
        yield gettext("You want none of these? Say so at {address}").format(address=account)
    else:
        yield gettext("You want none of these? Say so on the page of your account.")
