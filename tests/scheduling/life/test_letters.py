"""Mail about alerts: who is told, once, and nothing is lost where the mail server is dead."""

import socket
from collections.abc import Iterator
from datetime import timedelta
from smtplib import SMTPRecipientsRefused
from typing import Any

import pytest
from django.core import mail
from django.core.mail.backends.locmem import EmailBackend

from gpuplatform.common.diagnostics import Diagnostic
from queues.services import set_alert_mail, set_language
from scheduling import alerting, letters
from scheduling.alerting import Audience, Concern, Kind
from scheduling.models import Letter
from tests.scheduling.loop.world import NOON
from tests.services import free_port

pytestmark = pytest.mark.django_db
HOUR = timedelta(hours=1)
KINDS = [
    Kind("ADMINS", {Audience.ADMINS}),
    Kind("MONEY", {Audience.FINANCE}),
    Kind("TEAM", {Audience.LEADS}),
    Kind("SPENT", {Audience.FINANCE, Audience.LEADS}),
]


class Picky(EmailBackend):
    """A server that does not know Lea."""

    def send_messages(self, messages: Any) -> int:
        for message in messages:
            if message.to == ["lea@example.org"]:
                raise SMTPRecipientsRefused({"lea@example.org": (550, b"who?")})
        return int(super().send_messages(messages))


@pytest.fixture(autouse=True)
def kinds(monkeypatch: pytest.MonkeyPatch, settings: Any, clock: Any, cast: Any) -> Iterator[None]:
    monkeypatch.setattr(alerting, "KINDS", dict(alerting.KINDS))
    alerting.register("test", KINDS)
    settings.ALERT_MAIL = True
    return


def raised(*codes: str, team: Any = None, also: Any = ()) -> None:
    concerns = [Concern(Diagnostic(code, f"Thing/{code}"), "", team and team.pk) for code in codes]
    alerting.follow("test", [*concerns, *also], NOON)


def told() -> dict[str, list[str]]:
    """Return the subjects of what each person was sent."""
    found: dict[str, list[str]] = {}
    for message in mail.outbox:
        found.setdefault(message.to[0].partition("@")[0], []).append(message.subject)
    return found


@pytest.mark.parametrize(
    ("code", "people"),
    [
        ("ADMINS", {"ada"}),
        ("MONEY", {"fin"}),
        ("TEAM", {"lea"}),
        ("SPENT", {"fin", "lea"}),
    ],
)
def test_an_alert_reaches_its_audience_and_nobody_else(code: str, people: set[str], datos: Any):
    raised(code, team=datos)
    letters.address()
    letters.send()
    assert told() == {name: [f"[gpuplatform] {code}: Thing/{code}"] for name in people}


def test_a_team_alert_without_a_team_and_a_kind_that_nobody_looks_after_reach_nobody(ia: Any):
    raised("TEAM")
    raised("TEAM", team=ia)  # it has a member and no lead
    del alerting.KINDS["TEAM"]
    assert letters.address() == 0


def test_who_wants_none_has_no_address_or_is_shut_out_is_not_told(cast: Any, datos: Any):
    raised("ADMINS", "SPENT", team=datos)
    letters.address()
    set_alert_mail(cast.lea, False, actor=cast.lea)
    cast.fin.email = ""
    cast.fin.save()
    cast.ada.is_active = False
    cast.ada.save()
    assert letters.send() == 0
    assert not Letter.objects.exists()
    set_alert_mail(cast.lea, True, actor=cast.lea)
    raised("SPENT", team=datos)  # it stands still: no second letter
    assert letters.address() == 0


def test_mail_speaks_the_language_that_its_reader_has_chosen(cast: Any, datos: Any):
    set_language(cast.lea, "de", actor=cast.lea)
    raised("SPENT", team=datos)
    letters.address()
    letters.send()
    bodies = {one.to[0].split("@")[0]: str(one.body) for one in mail.outbox}
    assert "You want none of these?" in bodies["fin"]
    assert "Sie möchten keine davon?" in bodies["lea"]


def test_an_alert_is_told_once_and_again_when_it_holds_anew(datos: Any):
    for _ in range(3):
        raised("TEAM", team=datos)
        letters.address()
        letters.send()
    assert len(mail.outbox) == 1
    alerting.follow("test", [], NOON + HOUR)
    raised("TEAM", team=datos)
    letters.address()
    letters.send()
    assert len(mail.outbox) == 2


def test_many_alerts_come_as_one_mail_that_names_the_first_fifty(datos: Any):
    more = [Concern(Diagnostic("TEAM", f"Thing/{n}"), "", datos.pk) for n in range(60)]
    raised(also=more)
    letters.address()
    assert letters.send() == 1
    (message,) = mail.outbox
    assert message.subject == "[gpuplatform] 60 alerts"
    assert message.body.count("TEAM: Thing/") == 50
    assert "And 10 more." in message.body
    assert not Letter.objects.filter(sent_at=None).exists()


def test_a_letter_says_what_it_is_about_where_to_look_and_that_it_is_over(
    settings: Any, datos: Any
):
    settings.SITE_URL = "https://gpu.example.org"
    settings.DEFAULT_FROM_EMAIL = "Platform <gpu@example.org>"
    drift = {"resource": "nvidia.com/gpu", "promised": 8, "placeable": 4, "missing": 4}
    alerting.register("test", [Kind("AGENT_LATE", {Audience.LEADS})])
    raised(also=[Concern(Diagnostic("TEAM", "Thing/a", "", drift), "", datos.pk)])
    letters.address()
    alerting.follow("test", [], NOON + HOUR)
    letters.send()
    (message,) = mail.outbox
    assert message.from_email == "Platform <gpu@example.org>"
    assert message.extra_headers["Message-ID"].endswith("@example.org>")
    assert message.extra_headers["Auto-Submitted"] == "auto-generated"
    lines = message.body.splitlines()
    assert "Since 2026-06-01 12:00 UTC." in lines
    assert "It ended at 2026-06-01 13:00 UTC." in lines
    assert "https://gpu.example.org/alerts/" in lines


def test_where_mail_is_off_nothing_is_kept_for_later(settings: Any, datos: Any):
    settings.ALERT_MAIL = False
    raised("TEAM", team=datos)
    assert letters.address() == 0
    settings.ALERT_MAIL = True
    assert letters.address() == 0
    assert letters.send() == 0


@pytest.fixture
def dead_server(settings: Any) -> None:
    settings.EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
    settings.EMAIL_HOST, settings.EMAIL_PORT = "127.0.0.1", free_port()


def test_a_dead_server_loses_nothing_and_is_tried_again_less_and_less_often(
    dead_server: None, settings: Any, clock: Any, datos: Any
):
    raised("SPENT", team=datos)
    letters.address()
    waits = []
    for _ in range(8):
        assert letters.send() == 0
        one, other = Letter.objects.all()
        assert (one.due_at, one.tries) == (other.due_at, other.tries)
        assert "refused" in one.error
        assert letters.send() == 0  # not due: nobody is asked
        waits.append((one.due_at - letters.clock.now()).total_seconds())
        clock.move_to(one.due_at)
    assert waits == [60, 120, 240, 480, 960, 1920, 3600, 3600]
    settings.EMAIL_BACKEND = "django.core.mail.backends.locmem.EmailBackend"
    assert letters.send() == 2
    assert told().keys() == {"fin", "lea"}
    assert letters.send() == 0


def test_a_server_that_never_answers_is_left_after_its_time(settings: Any, datos: Any):
    with socket.create_server(("127.0.0.1", 0)) as silent:
        settings.EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
        settings.EMAIL_HOST, settings.EMAIL_PORT = silent.getsockname()
        settings.EMAIL_TIMEOUT = 0.2
        raised("SPENT", team=datos)
        letters.address()
        assert letters.send() == 0
    assert set(Letter.objects.values_list("tries", flat=True)) == {1}


def test_a_person_whom_the_server_does_not_take_keeps_nobody_else_waiting(
    settings: Any, datos: Any
):
    settings.EMAIL_BACKEND = f"{__name__}.Picky"
    raised("SPENT", team=datos)
    letters.address()
    assert letters.send() == 1
    assert told().keys() == {"fin"}
    (waits,) = Letter.objects.filter(sent_at=None)
    assert (waits.user.username, waits.tries) == ("lea", 1)
    assert "who?" in waits.error


def test_two_senders_at_once_send_once(datos: Any):
    raised("TEAM", team=datos)
    letters.address()
    other = letters.leases.acquire(letters.LEASE, "other", 60)
    assert letters.send() == 0
    letters.leases.release(other)
    assert letters.send() == 1


def test_mail_has_a_queue_of_its_own():
    from gpuplatform.celery import app  # noqa: PLC0415

    route = app.amqp.router.route({}, "scheduling.send_mail")
    assert route["queue"].name == "mail"
