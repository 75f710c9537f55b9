"""Lists of what was done: the audit trail, loans, evictions, one's tokens; each row for whom."""

import csv
import io
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import time_machine
from django.test import Client

from gpuplatform.common import audit, clock
from queues.services import save_priority_class
from queues.specs import PriorityClassSpec
from scheduling import lifecycle
from scheduling.cycle import run_cycle
from scheduling.models import UsageInterval
from scheduling.reconciler import reconcile
from tests.scheduling.loop.world import nodes, queue, work

pytestmark = pytest.mark.django_db
Get = Callable[..., Any]


@pytest.fixture
def get(cast: Any, token_of: Callable[..., str]) -> Get:
    def ask(path: str, who: str = "lea", *scopes: str) -> Any:
        token = token_of(getattr(cast, who), *(scopes or ("read", "audit:read")))
        return Client().get(f"/api/v1/{path}", headers={"Authorization": token})

    return ask


def rows(answer: Any) -> list[dict[str, Any]]:
    assert answer.status_code == 200, answer.content
    found: list[dict[str, Any]] = answer.json()["results"]
    return found


def test_the_audit_trail_is_read_by_filter_newest_first(cast: Any, get: Get) -> None:
    for team, name in (("datos", "a"), ("ia", "b"), ("datos", "c")):
        audit.record(cast.ada, "thing.made", ("Thing", name), after={"n": 1}, team=team)
    audit.record(None, "thing.lost", ("Thing", "d"), before={"n": 1}, reason="Age")

    assert [row["subject"] for row in rows(get("audit/?action=thing.made", "aud"))] == list("cba")
    assert [row["subject"] for row in rows(get("audit/?kind=Thing"))] == ["c", "a"]  # lea's team
    (row,) = rows(get("audit/?actor=system&kind=Thing", "ada"))
    assert (row["subject"], row["reason"], row["before"], row["after"]) == (
        "d",
        "Age",
        {"n": 1},
        None,
    )
    page = get("audit/?kind=Thing&limit=1", "aud").json()
    assert page["next"]
    table = list(csv.DictReader(io.StringIO(get("audit/?format=csv&kind=Thing").content.decode())))
    assert [line["after"] for line in table] == ['{"n": 1}', '{"n": 1}']


def test_an_entry_that_was_written_late_stands_where_its_time_is(
    cast: Any, get: Get, signed_in: Callable[..., Client]
) -> None:
    for name, day in (("first", 3), ("last", 9), ("late", 5)):
        with time_machine.travel(datetime(2026, 6, day, tzinfo=UTC), tick=False):
            audit.record(cast.ada, "thing.made", ("Thing", name))
    page = get("audit/?kind=Thing&limit=2", "aud")
    assert [row["subject"] for row in rows(page)] == ["last", "late"]
    following = page.json()["next"].partition("/v1/")[2]
    assert [row["subject"] for row in rows(get(following, "aud"))] == ["first"]
    shown = signed_in(cast.aud).get("/audit/?subject_kind=Thing").text
    assert shown.index(">last</td>") < shown.index(">late</td>") < shown.index(">first</td>")


@pytest.mark.parametrize(
    ("who", "scopes", "code"),
    [("ian", (), 403), ("fin", (), 403), ("ada", ("read",), 403), ("aud", (), 200)],
)
def test_the_audit_trail_is_for_those_who_may(
    get: Get, who: str, scopes: tuple[str, ...], code: int
) -> None:
    assert get("audit/", who, *scopes).status_code == code


@pytest.fixture
def loan(cast: Any) -> None:
    """Datos borrows two GPUs of IA."""
    nodes(1)
    queue("datos", 2, cohort="all")
    queue("ia", 2, cohort="all")
    work("datos", "large", gpus=4)
    run_cycle()
    reconcile()


@pytest.mark.usefixtures("loan")
def test_a_loan_stands_in_the_ledger_of_both_sides(cast: Any, get: Get) -> None:
    (mine,) = rows(get("ledger/?open=true"))
    assert (mine["borrower"], mine["lender"], mine["gpus"]) == ("cq-datos", "cq-ia", 2)
    assert mine["workload"]
    (theirs,) = rows(get("ledger/", "ian"))
    assert (theirs["borrower"], theirs["workload"]) == ("cq-datos", "")  # whose, but not what
    assert rows(get("ledger/", "eve")) == []
    assert rows(get("ledger/?lender=cq-datos")) == []
    assert get("ledger/?open=perhaps").status_code == 400


@pytest.mark.usefixtures("loan")
def test_pages_of_the_ledger_lead_through_all_loans(cast: Any, get: Get) -> None:
    one = UsageInterval.objects.get(holding="borrowed", resource="nvidia.com/gpu")
    for hours in (1, 2):
        one.pk, one.ended_at = None, one.started_at
        one.started_at -= timedelta(hours=hours)
        one.save()
    page = get("ledger/?limit=2").json()
    assert len(page["results"]) == 2
    last = rows(get(page["next"].partition("/api/v1/")[2]))
    assert len(last) == 1


def test_what_was_taken_away_is_listed_with_its_reason(cast: Any, get: Get) -> None:
    nodes(1)
    queue("datos", 4)
    queue("ia", 4)
    mine, theirs = work("datos", "mine"), work("ia", "theirs", namespace="ns-ia")
    for row, other in ((mine, theirs), (theirs, mine)):
        lifecycle.tell(row, "evicted", at=clock.now(), reason="Preempted", other=other)

    won, lost = rows(get("evictions/?reason=Preempted"))
    assert (lost["workload"], lost["team"], lost["for_workload"]) == (str(mine), "datos", "")
    assert (won["workload"], won["team"], won["for_workload"]) == ("", "", str(mine))
    both = rows(get("evictions/", "fin"))
    assert [(one["workload"], one["for_workload"]) for one in both] == [
        (str(theirs), str(mine)),
        (str(mine), str(theirs)),
    ]
    assert rows(get("evictions/?reason=NodeFailures")) == []


def test_ones_own_tokens_are_listed_without_secrets(cast: Any, get: Get) -> None:
    answer = get("tokens/", "ian")
    (row,) = rows(answer)
    assert set(row) == {
        *("key", "name", "scopes", "team", "created_at", "expires_at", "last_used_at")
    }
    assert "digest" not in answer.content.decode()


def test_priority_classes_are_everybodys_highest_first(cast: Any, get: Get) -> None:
    for name, value in (("low", -5), ("high", 100)):
        save_priority_class(PriorityClassSpec("workload", name, value), actor=None)
    save_priority_class(PriorityClassSpec("pod", "other", 7), actor=None)
    assert [row["name"] for row in rows(get("workload-priority-classes/", "eve"))] == [
        "high",
        "low",
    ]
    text = b"".join(get("workload-priority-classes/?format=yaml")).decode()
    assert text.count("kind: WorkloadPriorityClass") == 2
