"""What every submission asks is planned once for a connection that is kept."""

from collections.abc import Iterator
from typing import Any

import pytest
from django.db import connection

from scheduling.judging import forget
from scheduling.models import Workload

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("three_teams_once")]

PATH, TIMES = "/api/v1/workloads/", 7
KEPT = ("queues_apitoken", "common_answeredrequest", "scheduling_workload", "queues_team")


@pytest.fixture
def kept_world(settings: Any) -> Iterator[None]:
    settings.WORLD_KEPT = True
    yield
    forget()


@pytest.mark.skipif("connection.vendor != 'postgresql'", reason="only on PostgreSQL: it has plans")
def test_a_kept_connection_plans_a_submission_once(
    ada: Any, client: Any, token_of: Any, kept_world: None, monkeypatch: Any
) -> None:
    connection.ensure_connection()
    monkeypatch.setattr(connection.connection, "prepare_threshold", 0)
    token = token_of(ada)
    for number in range(TIMES):  # PostgreSQL looks at a plan five times before it keeps it
        body = {
            "name": f"w{number}",
            "namespace": "ns-datos",
            "queue": "lq-datos",
            "pod_sets": [
                {"name": f"p{i}", "count": 1, "requests": {"nvidia.com/gpu": 1}}
                for i in range(1 + number % 2)
            ],
        }
        headers = {"Authorization": token, "Idempotency-Key": f"key-{number}"}
        for again in (False, True) if not number else (False,):  # a rollback forgets plans
            answer = client.post(PATH, body, content_type="application/json", headers=headers)
            assert answer.status_code == 201, answer.json()
            assert ("Idempotency-Replayed" in answer.headers) is again
    taken = client.post(
        PATH, body, content_type="application/json", headers={"Authorization": token}
    )
    assert (taken.status_code, Workload.objects.count()) == (409, TIMES)
    with connection.cursor() as cursor:
        cursor.execute("SELECT statement FROM pg_prepared_statements")
        planned = [statement for (statement,) in cursor.fetchall()]
    missing = [table for table in KEPT if not any(table in one for one in planned)]
    assert missing == [], planned
    assert len(planned) == len(set(planned))
