"""What a webhook may be."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from ipaddress import ip_address
from urllib.parse import urlsplit

from django.conf import settings
from django.utils.translation import gettext as _

from gpuplatform.common.problems import Problem
from gpuplatform.doors.models import Webhook
from gpuplatform.doors.webhooks import wire
from gpuplatform.doors.webhooks.events import TYPES
from queues.models import Team
from queues.rules.words import check_choice, check_text

NAME_LENGTH, URL_LENGTH = 64, 500
MOST_OF_A_TEAM = 20


@dataclass(frozen=True, slots=True)
class WebhookSpec:
    """What somebody wants: ``team`` None tells of the whole platform."""

    name: str
    url: str
    events: Sequence[str]
    team: Team | None = None
    is_active: bool = True


def check_webhook(spec: WebhookSpec) -> Iterator[Problem]:
    """Yield what is wrong with a webhook, wherever it came from."""
    yield from check_text(spec.name, "name", NAME_LENGTH)
    if not spec.name.strip():
        yield Problem("name", "required", _("a webhook needs a name"))
    if not spec.events:
        yield Problem("events", "required", _("a webhook needs an event to be told of"))
    for index, event in enumerate(spec.events):
        yield from check_choice(event, TYPES, f"events[{index}]")
    yield from _check_url(spec.url)


def check_room(team: Team | None) -> Iterator[Problem]:
    """Yield a problem where a team, or the platform, has as many webhooks as it may."""
    if Webhook.objects.filter(team=team).count() >= MOST_OF_A_TEAM:
        words = _("at most {most} webhooks of one team").format(most=MOST_OF_A_TEAM)
        yield Problem("team", "too_many", words, {"most": MOST_OF_A_TEAM})


def _check_url(url: str) -> Iterator[Problem]:
    """Judge an address as far as one can without asking anybody; the rest is judged each time."""
    yield from check_text(url, "url", URL_LENGTH)
    try:
        parts = urlsplit(url)
        host, _port = parts.hostname, parts.port
    except ValueError:
        host, parts = None, urlsplit("")
    is_clean = url.isascii() and url.isprintable() and " " not in url
    if parts.scheme not in {"http", "https"} or not host or not is_clean:
        words = _("an address like https://example.org/hooks/gpu is needed")
        yield Problem("url", "bad_address", words)
        return
    if "@" in parts.netloc or parts.fragment:
        words = _("an address holds no user name, no password and no #")
        yield Problem("url", "bad_address", words)
    if parts.scheme == "http" and not settings.WEBHOOK_NETWORKS:
        yield Problem("url", "needs_tls", _("only https is spoken with public addresses"))
    try:
        wire.check_host(host)
        if _is_literal(host):
            wire.check_address(host, is_plain=parts.scheme == "http")
    except wire.Refused as refused:
        yield Problem("url", "not_allowed", str(refused))


def _is_literal(host: str) -> bool:
    try:
        ip_address(host)
    except ValueError:
        return False
    return True
