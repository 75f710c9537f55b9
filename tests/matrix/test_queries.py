"""A list costs the same number of queries however long it is: the numbers are golden.

``make golden`` writes ``query_counts.json`` anew; a number above the goal is a finding.
"""

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from tests.matrix.doors import NODE, ZEBU, ZEBU_RUNS
from tests.matrix.growth import grow
from tests.matrix.world import MONTH, REPLAY, SOURCE, WEBHOOK, uid

pytestmark = pytest.mark.django_db
GOLDEN = Path(__file__).parent / "query_counts.json"
GOAL = 12
FEW, MANY = 3, 30
# Pages and, where they have them, their files.
LISTS = {
    "/": ("",),
    "/queues/": ("", "csv", "json"),
    f"/queues/{ZEBU}/": ("", "csv"),
    "/cohorts/commons/": ("",),
    "/workloads/": ("", "csv", "json"),
    f"/workloads/{ZEBU_RUNS}/": ("",),
    f"/workloads/{uid('datos', 'waiting')}/": ("",),
    f"/workloads/{uid('datos', 'ended')}/": ("",),
    f"/workloads/{uid('datos', 'evicted')}/": ("",),
    "/nodes/": ("", "csv"),
    f"/nodes/{NODE}/": ("",),
    "/fragments/": ("csv", "json"),
    "/reservations/": ("csv", "json"),
    "/alerts/": ("",),
    "/submit/": ("",),
    "/search/?q=zebu": ("",),
    "/cost/idle.json": ("",),
    "/charts/fragments/": ("",),
    "/flavors/": ("", "csv"),
    "/flavors/h100-sxm/": ("",),
    "/borrowing/": ("", "csv"),
    "/evictions/": ("", "csv"),
    "/fair-share/": ("", "csv"),
    "/requests/": ("", "csv"),
    "/teams/": ("", "csv"),
    "/teams/datos/": ("",),
    "/cost/": ("", "csv"),
    "/cost/by/": ("", "csv"),
    "/api/v1/cost/": ("",),
    "/gpu-hours/": ("", "csv"),
    "/bills/": ("", "csv"),
    f"/bills/{MONTH}/": ("", "csv", "json"),
    f"/bills/{MONTH}/datos/": ("", "csv", "json"),
    f"/bills/{MONTH}/summary/": ("", "csv", "json"),
    "/prices/": ("", "csv"),
    "/budgets/": ("", "csv"),
    "/mappings/": ("", "csv"),
    "/api/v1/mappings/": ("",),
    "/audit/": ("", "csv"),
    "/account/": ("",),
    "/charts/quota-use/": ("",),
    "/charts/borrowed/": ("",),
    "/cost/team.json": ("",),
    "/api/v1/workloads/": ("",),
    f"/api/v1/workloads/{ZEBU_RUNS}/": ("",),
    "/api/v1/nodes/": ("",),
    "/api/v1/teams/": ("",),
    "/api/v1/cohorts/": ("",),
    "/api/v1/cluster-queues/": ("",),
    "/api/v1/local-queues/": ("",),
    "/api/v1/flavors/": ("",),
    "/api/v1/fair-share/": ("",),
    "/api/v1/fragments/": ("",),
    "/api/v1/alerts/": ("",),
    "/api/v1/audit/": ("",),
    "/api/v1/evictions/": ("",),
    "/api/v1/ledger/": ("",),
    "/api/v1/tokens/": ("",),
    "/api/v1/workload-priority-classes/": ("",),
    "/api/v1/availability/": ("",),
    "/api/v1/whoami/": ("",),
    "/api/v1/topologies/": ("",),
    "/api/v1/prices/": ("",),
    f"/api/v1/bills/{MONTH}/": ("",),
}
LISTS_OF_ADMINS = {
    f"/queues/{ZEBU}/edit/": ("",),
    "/quotas/": ("", "csv"),
    "/replays/": ("",),
    f"/replays/{REPLAY}/": ("", "csv"),
    "/api/v1/replays/": ("",),
    "/api/v1/operations/": ("",),
    "/agents/": ("", "csv"),
    "/api/v1/agents/": ("",),
    "/people/": ("", "csv"),
    "/webhooks/": ("",),
    f"/webhooks/{WEBHOOK}/": ("",),
    "/api/v1/webhooks/": ("",),
    f"/api/v1/webhooks/{WEBHOOK}/deliveries/": ("",),
    "/api/v1/mappings/unmatched/": ("",),
    f"/bills/{MONTH}/close/": ("", "json"),
    "/drift/": ("", "csv"),
    "/sources/": ("", "csv"),
    f"/sources/{SOURCE}/": ("", "csv"),
    "/api/v1/sources/": ("",),
    f"/api/v1/sources/{SOURCE}/days/": ("",),
}


def count(browser: Client, path: str, form: str) -> int:
    """Return the queries of one answer; savepoints of the test's own transaction do not count."""
    query = {"format": form} if form in {"csv", "json"} else {}
    headers = {"HX-Request": "true"} if form == "fragment" else {}
    with CaptureQueriesContext(connection) as queries:
        response = browser.get(path, query, headers=headers)
        b"".join(response)
    assert response.status_code == 200, path
    return sum("SAVEPOINT" not in query["sql"] for query in queries)


def counts(browser: Client, who: str) -> dict[str, int]:
    lists = LISTS | (LISTS_OF_ADMINS if who == "ada" else {})
    return {
        f"{path} {form}".strip(): count(browser, path, form)
        for path, forms in lists.items()
        for form in forms
    }


@pytest.mark.parametrize("who", ["ada", "lea"])
def test_a_long_list_costs_no_more_queries_than_a_short_one(
    browser: Callable[..., Client], who: str
):
    grow(0, FEW)
    few = counts(browser(who), who)
    grow(FEW, MANY)
    many = counts(browser(who), who)  # fewer is fine: the first page may need less
    assert {page: number for page, number in many.items() if number > few[page]} == {}
    kept = json.loads(GOLDEN.read_text()) if GOLDEN.exists() else {}
    if os.environ.get("GOLDEN") == "write":
        GOLDEN.write_text(json.dumps(kept | {who: few}, indent=1, sort_keys=True) + "\n")
    else:
        assert few == kept[who]


def test_no_page_file_or_answer_costs_more_than_the_goal():
    over = {
        page: number
        for counts in json.loads(GOLDEN.read_text()).values()
        for page, number in counts.items()
        if number > GOAL
    }
    assert not over
