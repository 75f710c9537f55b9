"""A POST with an Idempotency-Key counts once, whatever is lost and however often it is sent."""

import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from threading import Barrier
from typing import Any

import pytest
from django.db import connection
from django.test import Client

from gpuplatform.common.models import AnsweredRequest
from gpuplatform.common.once import KEPT, forget_old_answers
from scheduling.models import Workload
from tests.scheduling.loop.world import nodes, queue

BODY = {
    "name": "train",
    "namespace": "ns-datos",
    "queue": "lq",
    "pod_sets": [{"name": "main", "count": 1, "requests": {"nvidia.com/gpu": 1}}],
}
MANIFEST = "apiVersion: v1\nkind: Namespace\nmetadata: {name: ns-new}\n"


@pytest.fixture
def post(cast: Any, token_of: Callable[..., str]) -> Callable[..., Any]:
    nodes(1)
    queue("datos", 4)
    queue("ia", 4)
    tokens = {name: token_of(getattr(cast, name)) for name in ("lea", "ian", "ada")}

    def send(
        key: str | None,
        body: Any = BODY,
        path: str = "/api/v1/workloads/",
        who: str = "lea",
        kind: str = "application/json",
    ) -> Any:
        own = {} if key is None else {"Idempotency-Key": key}
        headers = {"Authorization": tokens[who], **own}
        content = body if isinstance(body, str) else json.dumps(body)
        return Client().post(path, content, content_type=kind, headers=headers)

    return send


@pytest.mark.django_db
def test_the_second_time_the_first_answer_comes_again(post: Callable[..., Any]) -> None:
    first, second = post("k"), post("k")
    assert (first.status_code, second.status_code) == (201, 201)
    assert first.json() == second.json()
    assert first["Location"] == second["Location"]
    assert "Idempotency-Replayed" not in first
    assert second["Idempotency-Replayed"] == "true"
    assert Workload.objects.count() == 1


@pytest.mark.django_db
def test_the_key_stands_for_one_body_and_one_address(post: Callable[..., Any]) -> None:
    post("k")
    other = post("k", {**BODY, "name": "other"})
    assert (other.status_code, other.json()["errors"][0]["code"]) == (422, "key_reused")
    assert post("k", path="/api/v1/workloads/?dry_run=All").status_code == 422
    assert Workload.objects.count() == 1


@pytest.mark.django_db
def test_each_caller_has_keys_of_their_own(post: Callable[..., Any]) -> None:
    post("k")
    answer = post("k", {**BODY, "namespace": "ns-ia"}, who="ian")
    assert (answer.status_code, Workload.objects.count()) == (201, 2)


@pytest.mark.django_db
def test_what_was_refused_is_not_kept_and_may_be_tried_again(post: Callable[..., Any]) -> None:
    body = {**BODY, "queue": "later"}
    assert post("k", body).status_code == 422
    assert not AnsweredRequest.objects.exists()
    queue_of_later()
    assert post("k", body).status_code == 201


def queue_of_later() -> None:
    from queues.models import LocalQueue  # noqa: PLC0415

    LocalQueue.objects.create(namespace="ns-datos", name="later", cluster_queue="cq-datos")


@pytest.mark.django_db
def test_manifests_count_once_too(post: Callable[..., Any]) -> None:
    send = {"body": MANIFEST, "path": "/api/v1/manifests/", "who": "ada"}
    answers = [post("k", **send, kind="application/yaml") for _ in range(2)]
    assert [answer.json()["results"][0]["action"] for answer in answers] == ["created"] * 2
    assert (
        post(None, **send, kind="application/yaml").json()["results"][0]["action"] == "unchanged"
    )


@pytest.mark.django_db
@pytest.mark.parametrize("key", ["x" * 129, "caf\u00e9", "a\tb"], ids=["long", "foreign", "tab"])
def test_a_key_that_is_none_is_said_to_be_none(post: Callable[..., Any], key: str) -> None:
    assert post(key).status_code == 400
    assert not Workload.objects.exists()


@pytest.mark.django_db
def test_a_key_that_is_being_answered_is_a_conflict(post: Callable[..., Any], cast: Any) -> None:
    AnsweredRequest.objects.create(user=cast.lea, key="k", digest="")
    answer = post("k")
    assert (answer.status_code, answer.json()["errors"][0]["code"]) == (409, "key_in_use")


@pytest.mark.django_db
def test_an_answer_is_kept_for_a_day(post: Callable[..., Any]) -> None:
    post("k")
    AnsweredRequest.objects.update(at=AnsweredRequest.objects.get().at - KEPT)
    Workload.objects.all().delete()
    assert post("k").status_code == 201
    assert Workload.objects.count() == 1
    forget_old_answers()
    assert AnsweredRequest.objects.count() == 1
    AnsweredRequest.objects.update(at=AnsweredRequest.objects.get().at - KEPT - timedelta(1))
    forget_old_answers()
    assert not AnsweredRequest.objects.exists()


@pytest.mark.django_db(transaction=True)
@pytest.mark.skipif(
    "connection.vendor != 'postgresql'", reason="only on PostgreSQL: SQLite has one writer"
)
def test_ten_at_once_are_one(post: Callable[..., Any]) -> None:
    barrier = Barrier(10)

    def send(_number: int) -> Any:
        try:
            barrier.wait(timeout=20)
            return post("k")
        finally:
            connection.close()

    with ThreadPoolExecutor(10) as pool:
        answers = list(pool.map(send, range(10)))
    assert {answer.status_code for answer in answers} == {201}
    assert len({answer.json()["uid"] for answer in answers}) == 1
    assert sum("Idempotency-Replayed" not in answer for answer in answers) == 1
    assert Workload.objects.count() == 1


@pytest.mark.django_db
def test_a_call_with_many_workloads_counts_once_as_a_whole(post: Any) -> None:
    many = {"workloads": [{**BODY, "name": "a"}, {**BODY, "name": "b", "size": 1}]}
    first, again = (post("k", many, path="/api/v1/workloads/bulk/") for _ in range(2))
    assert [one["status"] for one in first.json()["results"]] == [201, 422]
    assert again.json() == first.json()
    assert again["Idempotency-Replayed"] == "true"
    assert Workload.objects.count() == 1
