"""A request with ``Prefer: respond-async`` is answered with an operation, and done by a worker."""

import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import date, timedelta
from typing import Any

import pytest
from django.db import connection
from django.test import Client

from gpuplatform.common import clock
from gpuplatform.common.later import MOST_OPEN
from gpuplatform.common.longwork import MOST_ATTEMPTS
from gpuplatform.common.models import Operation
from gpuplatform.doors.operations import running
from gpuplatform.doors.tasks import run_operations
from queues.models import ApiToken, Membership
from scheduling.models import Workload
from tests.finops.replaying.past import busy_week, platform
from tests.scheduling.loop.world import nodes, queue

BULK, MANIFESTS, OPERATIONS = (
    "/api/v1/workloads/bulk/",
    "/api/v1/manifests/",
    "/api/v1/operations/",
)
LATER = {"Prefer": "respond-async"}


def workload(name: str, gpus: int = 1) -> dict[str, Any]:
    pods = [{"name": "main", "count": 1, "requests": {"nvidia.com/gpu": gpus}}]
    return {"name": name, "namespace": "ns-datos", "queue": "lq", "pod_sets": pods}


TWO = {"workloads": [workload("a"), workload("b")]}
IMPOSSIBLE = {"workloads": [workload("a", gpus=1000)]}


class Asker:
    """Somebody with a token of all scopes."""

    def __init__(self, token: str) -> None:
        self.headers = {"Authorization": token}

    def later(self, path: str, body: Any, kind: str = "application/json", **more: str) -> Any:
        sent = body if isinstance(body, str) else json.dumps(body)
        headers = {**self.headers, **LATER, **more}
        return Client().post(path, sent, content_type=kind, headers=headers)

    def now(self, path: str, body: Any) -> Any:
        return Client().post(path, body, content_type="application/json", headers=self.headers)

    def get(self, path: str) -> Any:
        return Client().get(path, headers=self.headers)

    def delete(self, path: str) -> Any:
        return Client().delete(path, headers=self.headers)


@pytest.fixture
def asker(cast: Any, token_of: Callable[..., str]) -> Callable[[str], Asker]:
    nodes(1)
    queue("datos", 4)
    return lambda who: Asker(token_of(getattr(cast, who)))


@pytest.fixture
def leader(asker: Callable[[str], Asker]) -> Asker:
    return asker("lea")


@pytest.mark.django_db
def test_it_is_answered_at_once_and_done_by_the_worker(leader: Asker) -> None:
    answer = leader.later(BULK, TWO)
    assert (answer.status_code, answer["Preference-Applied"]) == (202, "respond-async")
    where = answer["Location"]
    assert where == answer.json()["url"] == f"{OPERATIONS}{answer.json()['uid']}/"
    assert (answer.json()["state"], Workload.objects.count()) == ("waiting", 0)
    run_operations()
    told = leader.get(where).json()
    assert (told["kind"], told["state"], told["problem"]) == ("workloads-bulk", "done", None)
    assert Workload.objects.count() == 2
    result = leader.get(told["result"]["url"])
    assert told["result"]["status"] == result.status_code == 200
    assert [one["status"] for one in result.json()["results"]] == [201, 201]
    assert [one["uid"] for one in leader.get(OPERATIONS).json()] == [told["uid"]]


@pytest.mark.django_db
def test_what_is_refused_says_the_same_as_at_once_and_keeps_nothing(leader: Asker) -> None:
    where = leader.later(BULK, IMPOSSIBLE)["Location"]
    run_operations()
    told, at_once = leader.get(where).json(), leader.now(BULK, IMPOSSIBLE).json()
    assert (told["state"], told["result"]) == ("failed", None)
    same = ("type", "title", "status", "detail", "instance", "errors")
    assert {n: told["problem"][n] for n in same} == {n: at_once[n] for n in same}
    assert leader.get(f"{where}result/").status_code == 404
    assert not Workload.objects.exists()


@pytest.mark.django_db
def test_manifests_are_taken_in_later_too(asker: Callable[[str], Asker]) -> None:
    text = "apiVersion: v1\nkind: Namespace\nmetadata: {name: ns-new}\n"
    ada = asker("ada")
    where = ada.later(MANIFESTS, text, "application/yaml")["Location"]
    run_operations()
    result = ada.get(f"{where}result/").json()
    assert [one["action"] for one in result["results"]] == ["created"]
    assert ada.get(where).json()["result"]["status"] == 201


@pytest.mark.django_db
def test_bills_are_made_anew_as_an_operation(asker: Callable[[str], Asker]) -> None:
    fin, month = asker("fin"), f"{clock.now():%Y-%m}"
    path = f"/api/v1/periods/{month}/rebuild/"
    answer = Client().post(path, headers=fin.headers)  # nobody needs to ask for that
    assert answer.status_code == 202
    run_operations()
    board = fin.get(f"{answer['Location']}result/").json()
    assert board["period"] == month
    files = f"/api/v1/bills/{month}/files/csv/"
    answer = Client().get(files, headers={**fin.headers, **LATER})
    assert answer.status_code == 202
    run_operations()
    result = fin.get(f"{answer['Location']}result/")
    at_once = fin.get(files)
    assert result["Content-Type"] == at_once["Content-Type"]
    assert result["Content-Disposition"] == at_once["Content-Disposition"]
    assert result.content == b"".join(at_once)


@pytest.mark.django_db
def test_an_address_that_is_quick_answers_at_once(leader: Asker) -> None:
    assert leader.later("/api/v1/workloads/", workload("a")).status_code == 201
    assert not Operation.objects.exists()


# ---- once, and at most once --------------------------------------------------------------------
@pytest.mark.django_db
def test_the_same_key_is_one_operation(leader: Asker) -> None:
    first, second = (leader.later(BULK, TWO, **{"Idempotency-Key": "k"}) for _ in range(2))
    assert first["Location"] == second["Location"]
    assert Operation.objects.count() == 1


@pytest.mark.django_db
def test_one_whose_worker_was_lost_is_done_by_another(leader: Asker) -> None:
    leader.later(BULK, TWO)
    silent = clock.now() - running.SILENT - timedelta(seconds=1)
    Operation.objects.update(state="running", attempts=1, changed_at=silent)
    run_operations()
    assert (Operation.objects.get().state, Workload.objects.count()) == ("done", 2)


@pytest.mark.django_db
def test_one_that_loses_its_worker_again_and_again_fails(leader: Asker) -> None:
    where = leader.later(BULK, TWO)["Location"]
    silent = clock.now() - running.SILENT - timedelta(seconds=1)
    Operation.objects.update(state="running", attempts=MOST_ATTEMPTS, changed_at=silent)
    run_operations()
    problem = leader.get(where).json()["problem"]
    assert (problem["status"], problem["errors"][0]["code"]) == (500, "OPERATION_LOST")


@pytest.mark.django_db
def test_a_fault_of_ours_ends_it_and_keeps_nothing(
    leader: Asker, monkeypatch: pytest.MonkeyPatch
) -> None:
    where = leader.later(BULK, TWO)["Location"]
    ask = running.ask

    def broken(*args: Any) -> Any:
        ask(*args)
        raise RuntimeError("the power went out")

    monkeypatch.setattr(running, "ask", broken)
    run_operations()
    problem = leader.get(where).json()["problem"]
    assert problem["errors"][0]["code"] == "OPERATION_FAILED"
    assert "the power went out" in problem["detail"]
    assert not Workload.objects.exists()


# ---- cancelling --------------------------------------------------------------------------------
@pytest.mark.django_db
def test_one_that_waits_is_cancelled_once(leader: Asker) -> None:
    where = leader.later(BULK, TWO)["Location"]
    assert leader.delete(where).status_code == 204
    run_operations()
    assert leader.get(where).json()["state"] == "cancelled"
    again = leader.delete(where)
    assert (again.status_code, again.json()["errors"][0]["code"]) == (409, "already_finished")
    assert not Workload.objects.exists()


def beside(act: Callable[[], Any]) -> Any:
    """Do something on another connection."""

    def alone() -> Any:
        try:
            return act()
        finally:
            connection.close()

    with ThreadPoolExecutor(1) as pool:
        return pool.submit(alone).result()


@pytest.mark.django_db(transaction=True)
def test_one_that_is_cancelled_while_it_runs_takes_back_what_it_did(
    leader: Asker, monkeypatch: pytest.MonkeyPatch
) -> None:
    if connection.vendor != "postgresql":
        pytest.skip("only on PostgreSQL: SQLite has one writer")
    where = leader.later(BULK, TWO)["Location"]
    ask, seen = running.ask, []

    def cancelled_meanwhile(*args: Any) -> Any:
        answer = ask(*args)
        seen.append(beside(lambda: leader.get(where).json())["progress"])
        beside(lambda: leader.delete(where))
        return answer

    monkeypatch.setattr(running, "ask", cancelled_meanwhile)
    run_operations()
    assert seen == [{"done": 0, "of": 2}]  # told beside the work, about once a second
    assert (Operation.objects.get().state, Workload.objects.count()) == ("cancelled", 0)


# ---- rights ------------------------------------------------------------------------------------
@pytest.mark.django_db
def test_rights_count_when_it_is_done(leader: Asker) -> None:
    where = leader.later(BULK, TWO)["Location"]
    Membership.objects.all().delete()
    run_operations()
    assert leader.get(where).json()["problem"]["status"] == 422  # the queue is not there for her
    assert not Workload.objects.exists()


@pytest.mark.django_db
def test_with_a_token_that_is_gone_nothing_is_done(
    asker: Callable[[str], Asker], leader: Asker
) -> None:
    where = leader.later(BULK, TWO)["Location"]
    ApiToken.objects.all().delete()
    run_operations()
    problem = asker("lea").get(where).json()["problem"]
    assert (problem["status"], problem["errors"][0]["code"]) == (401, "OPERATION_TOKEN_GONE")


@pytest.mark.django_db
def test_a_person_may_not_have_too_many_open(leader: Asker) -> None:
    for _ in range(MOST_OPEN):
        assert leader.later(BULK, TWO).status_code == 202
    refused = leader.later(BULK, TWO)
    assert (refused.status_code, refused.json()["errors"][0]["code"]) == (422, "OPERATIONS_BUSY")


@pytest.mark.django_db
def test_old_ones_are_forgotten(leader: Asker) -> None:
    leader.later(BULK, TWO)
    run_operations()
    Operation.objects.update(finished_at=clock.now() - running.KEPT - timedelta(hours=1))
    run_operations()
    assert not Operation.objects.exists()


# ---- replays -----------------------------------------------------------------------------------
@pytest.mark.django_db
def test_a_replay_is_an_operation(cast: Any, token_of: Callable[..., str]) -> None:
    platform()
    busy_week()
    ada = Asker(token_of(cast.ada))
    days = {"first_day": str(date(2026, 6, 1)), "last_day": str(date(2026, 6, 7))}
    answer = ada.now("/api/v1/replays/", days)
    where, uid = answer["Location"], answer.json()["uid"]
    assert (answer.status_code, where) == (202, f"{OPERATIONS}{uid}/")
    told = ada.get(where).json()
    assert (told["kind"], told["state"], told["result"]) == ("replay", "waiting", None)
    assert [one["uid"] for one in ada.get(OPERATIONS).json()] == [uid]
    assert ada.delete(where).status_code == 204
    assert ada.get(f"/api/v1/replays/{uid}/").json()["state"] == "cancelled"
    assert ada.delete(where).status_code == 409
    assert Asker(token_of(cast.lea)).get(where).status_code == 404
