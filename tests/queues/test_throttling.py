"""Who asks too often is told when to come back, and keeps nobody else from asking."""

from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client

from queues import throttling
from queues.throttling import Buckets

WHOAMI = "/api/v1/whoami/"


class Time:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_a_bucket_is_emptied_at_once_and_filled_with_time() -> None:
    time = Time()
    one = Buckets(time)
    assert [one.take("a", 3, 2) for _ in range(4)] == [0, 0, 0, 0.5]
    assert one.take("b", 3, 2) == 0
    time.now = 0.5
    assert [one.take("a", 3, 2) for _ in range(2)] == [0, 0.5]
    time.now = 100
    assert [one.take("a", 3, 2) for _ in range(4)] == [0, 0, 0, 0.5]  # no fuller than full


def test_only_so_many_buckets_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(throttling, "MOST_BUCKETS", 2)
    one = Buckets(Time())
    for key in "abc":
        one.take(key, 1, 1)
    assert one.take("a", 1, 1) == 0  # forgotten
    assert one.take("c", 1, 1) == 1


@pytest.mark.django_db
def test_a_token_that_asks_too_often_gets_a_problem_with_the_time_to_wait(
    cast: Any, token_of: Callable[..., str], settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(throttling, "buckets", Buckets(Time()))
    settings.API_BURST, settings.API_PER_S = 2, 0.25
    first, second, other = token_of(cast.lea), token_of(cast.lea), token_of(cast.ian)

    def ask(token: str) -> Any:
        return Client().get(WHOAMI, headers={"Authorization": token})

    assert [ask(first).status_code for _ in range(2)] == [200, 200]
    refused = ask(first)
    assert (refused.status_code, refused["Retry-After"]) == (429, "4")
    assert refused["Content-Type"] == "application/problem+json"
    assert refused.json()["type"] == "urn:gpuplatform:problem:throttled"
    assert ask(other).status_code == 200
    assert ask(second).status_code == 200  # the person has one left, and then none
    assert ask(second).status_code == 429


@pytest.mark.django_db
def test_without_a_rate_nobody_is_throttled(
    cast: Any, token_of: Callable[..., str], settings: Any
) -> None:
    settings.API_BURST, settings.API_PER_S = 1, 0
    token = token_of(cast.lea)
    answers = [Client().get(WHOAMI, headers={"Authorization": token}) for _ in range(3)]
    assert {answer.status_code for answer in answers} == {200}
