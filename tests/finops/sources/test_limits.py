"""LiteLLM's own limits over a real socket: read, compared, and changed by a push alone."""

import json
from datetime import UTC, datetime
from decimal import Decimal

import pytest
import time_machine
from werkzeug import Response

from finops.budgets.limits import compared_limits, push_limit, read_gateways
from finops.budgets.saving import BudgetSpec, save_budget
from finops.ingest.configuring import save_source
from finops.mapping_services import set_mapping
from finops.models import GatewayLimit
from finops.specs import MappingSpec, SourceSpec
from gpuplatform.common.models import AuditEntry
from gpuplatform.common.problems import Rejected, Stale
from queues.access import Actor
from tests.finops.rows import make_team

pytestmark = pytest.mark.django_db
NOW = datetime(2026, 6, 20, tzinfo=UTC)
ALL = Actor(None, frozenset({"finance"}))
DATOS, IA, PLATAFORMA = "equipo-datos", "equipo-ia", "equipo-plataforma"


@pytest.fixture(autouse=True)
def late_in_june():
    with time_machine.travel(NOW, tick=False):
        yield


class GatewayDouble:
    """Answers ``/v2/team/list`` page by page, and takes ``/team/update`` as LiteLLM does."""

    def __init__(self, teams):
        self.teams = {team["team_id"]: team for team in teams}
        self.page_size = 2
        self.asked, self.orders = [], []
        self.fault = None
        self.takes = True

    def answer(self, request):
        self.asked.append(request)
        if self.fault:
            return Response(*self.fault)
        if request.method == "POST":
            return self.update(request)
        number, rows = int(request.args["page"]), list(self.teams.values())
        first = (number - 1) * self.page_size
        pages = -(-len(rows) // self.page_size)
        found = {"teams": rows[first : first + self.page_size], "total_pages": pages}
        return Response(json.dumps(found | {"total": len(rows), "page": number}))

    def update(self, request):
        order = json.loads(request.data, parse_float=Decimal)
        self.orders.append(order)
        team = self.teams.get(order.pop("team_id"))
        if team is None:
            return Response(b'{"error": {"message": "no such team"}}', 404)
        if self.takes:
            team |= json.loads(request.data)
        return Response(json.dumps({"team_id": team["team_id"], "data": team}))


@pytest.fixture
def gateway(httpserver, shared):
    text = (shared / "samples" / "litellm" / "v2_team_list.json").read_text()
    double = GatewayDouble(json.loads(text)["teams"])
    for path in ("v2/team/list", "team/update"):
        httpserver.expect_request(f"/model/{path}").respond_with_handler(double.answer)
    return double


@pytest.fixture
def source(here, gateway):
    made = save_source(SourceSpec("gateway", "litellm_api", url=here), actor=None)
    for team in ("datos", "ia"):
        make_team(team)
        set_mapping(MappingSpec("litellm_team", f"equipo-{team}", team), None)
    return made


def budget(fin, team, limit, **more):
    fields = {"duration": "1mo", "is_hard": True} | more
    return save_budget(BudgetSpec(team, "team", team, "money", Decimal(limit), **fields), fin)


def verdicts():
    return {row.limit.team_id: row.verdict for row in compared_limits(ALL)}


def row_of(team):
    return next(row for row in compared_limits(ALL) if row.limit.team_id == team)


def test_the_limits_of_all_pages_are_read_and_no_counter(source, gateway):
    assert read_gateways() == {"gateway": {"teams": 3}}
    found = {row.team_id: (row.hard, row.soft, row.duration) for row in GatewayLimit.objects.all()}
    assert found == {DATOS: (800, None, "30d"), IA: (80, 60, "30d"), PLATAFORMA: (None, None, "")}
    assert len(gateway.asked) == 2
    assert all(request.method == "GET" for request in gateway.asked)


def test_each_limit_stands_beside_the_budget_that_should_say_the_same(source, fin):
    budget(fin, "datos", 800)
    read_gateways()
    assert verdicts() == {DATOS: "same", IA: "no_budget", PLATAFORMA: "same"}
    budget(fin, "datos", 900)
    budget(fin, "ia", 60, is_hard=False)
    assert verdicts() == {DATOS: "differs", IA: "same", PLATAFORMA: "same"}
    budget(fin, "ia", 60, is_hard=False, duration="7d")
    assert verdicts()[IA] == "differs"
    with time_machine.travel(datetime(2026, 7, 2, tzinfo=UTC)):
        assert verdicts()[DATOS] == "late"  # its counter was to begin anew on the first


def test_a_team_that_is_gone_there_is_gone_here_and_an_outage_changes_nothing(source, gateway):
    read_gateways()
    gateway.fault = (b"<html>bad gateway</html>", 400)
    assert read_gateways()["gateway"]["code"] == "SOURCE_ANSWERED"
    assert GatewayLimit.objects.count() == 3
    gateway.fault = None
    del gateway.teams[IA]
    read_gateways()
    assert {row.team_id for row in GatewayLimit.objects.all()} == {DATOS, PLATAFORMA}


def test_a_push_sends_one_order_looks_again_and_is_audited(source, gateway, fin):
    budget(fin, "datos", "950.50")
    read_gateways()
    after = push_limit(row_of(DATOS).limit.pk, fin, "agreed in June")
    assert gateway.orders == [{"max_budget": Decimal("950.5"), "budget_duration": "1mo"}]
    assert after.verdict == verdicts()[DATOS] == "same"
    entry = AuditEntry.objects.get(action="litellm_limit.pushed")
    assert (entry.before["hard"], entry.after["hard"]) == ("800", "950.5")
    assert entry.after["sent"]["max_budget"] == "950.5"
    assert (entry.reason, entry.team, entry.actor_name) == ("agreed in June", "datos", "fin")


def test_a_push_that_is_refused_or_changes_nothing_says_so(source, gateway, fin):
    budget(fin, "datos", 900)
    read_gateways()
    pk = row_of(DATOS).limit.pk
    gateway.takes = False
    assert push_limit(pk, fin).verdict == "differs"
    gateway.fault = (b'{"error": {"type": "auth_error"}}', 401)
    with pytest.raises(Rejected) as caught:
        push_limit(pk, fin)
    assert caught.value.problems[0].code == "SOURCE_REFUSED_US"
    assert AuditEntry.objects.filter(action="litellm_limit.pushed").count() == 1
    with pytest.raises(Rejected):
        push_limit(row_of(PLATAFORMA).limit.pk, fin)  # nothing says anything else
    with pytest.raises(Stale):
        push_limit(pk, fin, seen={"max_budget": "800"})


def test_an_order_is_never_sent_twice_by_itself(source, gateway, fin):
    budget(fin, "datos", 900)
    read_gateways()
    gateway.asked.clear()
    gateway.fault = (b"timeout", 504)  # asking would be tried again
    with pytest.raises(Rejected):
        push_limit(row_of(DATOS).limit.pk, fin)
    assert [request.method for request in gateway.asked] == ["POST"]


def test_page_and_rest_show_compare_preview_and_push(source, gateway, fin, signed_in, token_of):
    budget(fin, "datos", 900)
    browser = signed_in(fin)
    assert "Nothing was read yet" in browser.get("/budgets/").text
    assert browser.post("/budgets/limits/read/").status_code == 302
    page = browser.get("/budgets/").text
    assert "differs" in page
    address = f"/budgets/limits/{row_of(DATOS).limit.pk}/push/"
    assert address in page
    preview = browser.get(address).text
    assert 'name="max_budget" value="900"' in preview
    assert gateway.orders == []
    seen = {
        "team_id": DATOS,
        "max_budget": "900",
        "budget_duration": "1mo",
        "reason": "x, and why so",
    }
    assert browser.post(address, seen | {"max_budget": "1"}).status_code == 422
    assert browser.post(address, seen).status_code == 302
    assert len(gateway.orders) == 1
    assert browser.get(address).status_code == 404  # nothing is left to push


def test_rest_lists_reads_and_pushes_with_a_dry_run(source, fin, token_of, client, gateway):
    budget(fin, "datos", 900)
    headers = {"Authorization": token_of(fin, "cost:read", "cost:close")}
    base = "/api/v1/litellm-limits/"
    assert client.post(base, headers=headers).json() == {"gateway": {"teams": 3}}
    rows = {row["litellm_team"]: row for row in client.get(base, headers=headers).json()}
    assert (rows[DATOS]["verdict"], rows[DATOS]["hard"]) == ("differs", "800.000000")
    address = f"{base}{rows[DATOS]['id']}/push/"
    more = {"headers": headers, "content_type": "application/json"}
    told = client.post(address, {"dry_run": True}, **more).json()
    assert told["sent"] == {"team_id": DATOS, "max_budget": "900", "budget_duration": "1mo"}
    assert gateway.orders == []
    answer = client.post(address, {"reason": "agreed, and why so"}, **more)
    assert answer.json()["limit"]["verdict"] == "same"
    assert client.post(address, {}, **more).status_code == 422
    assert client.post(f"{base}999999/push/", {}, **more).status_code == 404


def test_leads_see_the_limits_of_their_teams_and_push_none(source, lea, fin, signed_in):
    read_gateways()
    team = make_team("datos")
    lead = Actor(lea, teams={team.pk: "lead"})
    assert [row.limit.team_id for row in compared_limits(lead)] == [DATOS]
    browser = signed_in(lea)
    assert browser.post("/budgets/limits/read/").status_code == 403
    assert browser.get(f"/budgets/limits/{row_of(DATOS).limit.pk}/push/").status_code == 403
