"""Who guesses passwords waits longer and longer; who knows the password is let in."""

import pytest
from django.core.cache import cache

from tests.conftest import PASSWORD

pytestmark = pytest.mark.django_db
START = "2026-06-01T00:00:00Z"


def attempt(client, password, username="eve", address="10.0.0.1"):
    data = {"username": username, "password": password}
    return client.post("/login/", data, REMOTE_ADDR=address)


def test_after_five_wrong_passwords_one_has_to_wait(eve, client, time_machine):
    time_machine.move_to(START, tick=False)
    assert [attempt(client, "guess").status_code for _ in range(5)] == [200] * 5

    refused = attempt(client, PASSWORD)  # even the right one is not looked at
    assert (refused.status_code, refused["Retry-After"]) == (429, "10")
    assert "wait 10 seconds" in refused.content.decode()
    time_machine.shift(10)
    assert attempt(client, PASSWORD).status_code == 302


def test_the_wait_grows_to_five_minutes(eve, client, time_machine):
    time_machine.move_to(START, tick=False)
    waits = []
    for _ in range(5):
        attempt(client, "guess")
    for _ in range(8):
        waits.append(int(attempt(client, "guess")["Retry-After"]))
        time_machine.shift(waits[-1])
        attempt(client, "guess")
    assert waits == [10, 20, 40, 80, 160, 300, 300, 300]


def test_other_names_and_other_addresses_are_not_kept_waiting(eve, lea, client):
    for _ in range(6):
        attempt(client, "guess")
    assert attempt(client, "guess", "EVE").status_code == 429
    assert attempt(client, PASSWORD, address="10.0.0.2").status_code == 302
    client.logout()
    assert attempt(client, PASSWORD, "lea").status_code == 302


def test_the_right_password_forgets_the_wrong_ones(eve, client):
    for _ in range(4):
        attempt(client, "guess")
    assert attempt(client, PASSWORD).status_code == 302
    client.logout()
    assert [attempt(client, "guess").status_code for _ in range(5)] == [200] * 5


def test_an_empty_password_is_no_attempt_and_forgets_nothing(eve, client):
    for _ in range(5):
        attempt(client, "guess")
        attempt(client, "")
    assert attempt(client, PASSWORD).status_code == 429
    assert len(cache._cache) == 1  # noqa: SLF001
