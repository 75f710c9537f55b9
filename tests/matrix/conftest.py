"""The world of canaries, built once for a module and rolled back after it."""

from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import pytest
import stamina
import time_machine
from django.db import transaction
from django.test import Client, override_settings
from django.test.client import ClientHandler

from queues.choices import SCOPES
from queues.models import ApiToken, Team, User
from tests.conftest import person
from tests.matrix import world as worlds
from tests.matrix.reading import Reader
from tests.scheduling.loop.world import NOON

CAST: dict[str, dict[str, str]] = {
    "eve": {},
    "ian": {"ia": "member"},
    "lea": {"datos": "lead"},
    "fin": {"role": "finance"},
    "aud": {"role": "auditor"},
    "ada": {"role": "admin"},
}
ALL_SCOPES = (
    "read",
    "workloads:submit",
    "workloads:admin",
    "quota:write",
    "cost:read",
    "cost:close",
    "audit:read",
    "admin",
)
# Tokens beside those that may all their owner may: name, owner, scopes, team.
TOKENS = (
    ("ada of ia", "ada", ALL_SCOPES, "ia"),
    ("lea reading", "lea", ("read",), None),
    ("ada reading", "ada", ("read",), None),
    ("lea of ia", "lea", ALL_SCOPES, "ia"),
    *((f"{who} of everything", who, SCOPES, None) for who in ("ada", "fin", "aud", "lea", "ian")),
    ("agent", "ada", ("cluster:agent",), None),
)


@pytest.fixture(scope="module")
def world(django_db_setup: None, django_db_blocker: Any) -> Iterator[worlds.World]:
    """The platform with three teams; the clock stands still at its end."""
    with (
        django_db_blocker.unblock(),
        time_machine.travel(NOON, tick=False) as clock,
        # where nobody answers
        override_settings(SOURCE_HOSTS=["localhost:9"], WEBHOOK_HOSTS=["*"]),
        transaction.atomic(),
    ):
        for team in worlds.CODES:
            Team.objects.create(name=team)
        people = {name: person(name, **roles) for name, roles in CAST.items()}
        worlds.build(people["ada"])
        worlds.run(clock)
        yield worlds.World(people, _sessions(people), tokens_of(people))
        transaction.set_rollback(True)


def _sessions(people: dict[str, User]) -> dict[str, str]:
    found = {}
    for name, user in people.items():
        client = Client()
        client.force_login(user)
        found[name] = client.cookies["sessionid"].value
    return found


def tokens_of(people: dict[str, User]) -> dict[str, str]:
    """Return a token of each caller, as it stands in a header."""
    own = [(name, name, ALL_SCOPES, None) for name in people]
    found = {}
    for name, owner, scopes, team in (*own, *TOKENS):
        _, token = ApiToken.objects.create(
            user=people[owner],
            name="a token",
            scopes=list(scopes),
            team=Team.objects.get(name=team) if team else None,
            expiry=timedelta(days=1),
        )
        found[name] = f"Bearer {token}"
    return found


@pytest.fixture(autouse=True)
def impatient() -> Iterator[None]:
    """Ask a source that nobody answers for just once."""
    stamina.set_active(False)
    yield
    stamina.set_active(True)


@pytest.fixture(scope="session")
def handlers() -> dict[bool, ClientHandler]:
    """What answers requests, with and without the check of forged ones; slow to make."""
    return {strict: ClientHandler(enforce_csrf_checks=strict) for strict in (False, True)}


@pytest.fixture
def browser(
    world: worlds.World, handlers: dict[bool, ClientHandler], db: None
) -> Callable[..., Client]:
    """Return a browser of somebody; ``anonymous`` and programs have no session."""

    def of(who: str = "anonymous", *, strict: bool = False) -> Client:
        client = Client()
        client.handler = handlers[strict]
        if who in world.sessions:
            client.cookies["sessionid"] = world.sessions[who]
        return client

    return of


@pytest.fixture
def program(world: worlds.World, browser: Callable[..., Client]) -> Callable[[str], Client]:
    """Return a client that sends the token called so."""

    def of(token: str) -> Client:
        client = browser(strict=True)
        client.defaults["HTTP_AUTHORIZATION"] = world.tokens[token]
        return client

    return of


@pytest.fixture
def read(browser: Callable[..., Client]) -> Callable[[str], Reader]:
    """Return a reader of pages, files and answers, signed in as somebody."""
    return lambda who: Reader(browser(who))
