"""Every address of the platform, and who gets what there. A new address needs a row here.

Columns of a row: anonymous, eve (no team), ian (member of IA), lea (lead of Datos), fin, aud, ada.
Codes: a status, ``login`` (302 to the login page), ``home`` (302 to the overview) or
``again`` (302 to the page that asks for the password once more).
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from django.urls import get_resolver

from tests.matrix.world import (
    AGENT,
    BUDGET,
    CHECK,
    DELIVERY,
    LICENCES,
    MAPPING_ID,
    MONTH,
    OPERATION,
    PRICE_ID,
    REPLAY,
    REQUEST,
    SOURCE,
    SOURCE_DAY,
    WEBHOOK,
    uid,
    word,
)

PEOPLE = ("anonymous", "eve", "ian", "lea", "fin", "aud", "ada")
READERS_OF_ALL = ("fin", "aud", "ada")
TEAM_OF = {"ian": "ia", "lea": "datos"}

# Names of partners (never of strangers) that a team may read, by kind, and why.
LEDGER = {"queue": "a loan names lender and borrower: the ledger is what both sides agree on"}
BORROWER = LEDGER | {"team": "files of loans name the team that owns the borrowing queue"}
LENDER = {"queue": "the borrower is told whose quota it holds"}
HOLDER = {"queue": "why pending: which queues of the cohort hold what is asked for"}


MANIFESTS = {  # below ``/api/v1/``
    f"{name}{one}"
    for name, key in {
        "teams": "<name>",
        "cohorts": "<name>",
        "cluster-queues": "<name>",
        "local-queues": "<namespace>/<name>",
        "flavors": "<name>",
        "topologies": "<name>",
        "admission-checks": "<name>",
        "nodes": "<name>",
        "workloads": "<uid>",
    }.items()
    for one in ("", f"/{key}")
}
CONVERTER = re.compile(r"<\w+:")

OWN_LIMIT = {"team": "a token of one's own says which team it is limited to"}
OWN_TOKEN = {"shown": "a token of one's own says which team it is limited to"}


@dataclass(frozen=True)
class Door:
    """One address: its pattern, a concrete path, the answer to each of ``PEOPLE``.

    ``files``: whether it answers ``?format=csv`` and ``json`` with files. ``shows``: kinds of
    names that everybody who gets 200 finds there of what is theirs, so that an empty answer is
    no success. ``allowed``: kinds of partners' names that may stand there.
    """

    route: str
    path: str
    answers: tuple[str, ...]
    files: bool = False
    shows: tuple[str, ...] = ()
    allowed: Mapping[str, str] = field(default_factory=dict)
    takes_scope: bool = False  # reading it takes another scope than ``read``
    shows_examples: bool = False  # names of this world that were recorded once, and are no rows

    @property
    def is_rest(self) -> bool:
        """Return whether programs come here, with tokens."""
        return self.path.startswith("/api/")

    @property
    def is_manifest(self) -> bool:
        """Return whether it answers with manifests, too."""
        return self.is_rest and self.route.removeprefix("api/v1/").rstrip("/") in MANIFESTS

    @property
    def is_money(self) -> bool:
        """Return whether it shows the money of a team."""
        parts = ("/bills/", "/summary/", "/budgets/", "/v1/cost/")
        ends = ("/prices/", "/mappings/", "/litellm-limits/")
        return any(part in self.path for part in parts) or self.path.endswith(ends)

    @property
    def takes_cost_scope(self) -> bool:
        """Return whether reading it takes ``cost:read``, or another scope than ``read``."""
        parts = ("/sources/", "/periods/", "/mappings/", "/prices/tokens/", "/drift/")
        parts += ("/shared-costs/",)
        is_of_readers = any(part in self.path for part in parts)
        is_of_readers = is_of_readers and "200" in self.answers
        return self.is_money or is_of_readers or self.takes_scope

    def answer_to(self, who: str) -> str:
        """Return the expected answer."""
        return self.answers[PEOPLE.index(who)]

    def __str__(self) -> str:
        return self.path


def door(route: str, path: str, answers: str, **more: Any) -> Door:
    """Return a row of the matrix; one answer stands for all people."""
    codes = tuple(answers.split())
    return Door(route, path, codes * len(PEOPLE) if len(codes) == 1 else codes, **more)


ZEBU, YAKS = word("datos", "queue"), word("ia", "queue")
ZEBU_RUNS, YAKS_WAITS = uid("datos", "running"), uid("ia", "waiting")
ZEBU_EVICTED, YAKS_RECLAIMS = uid("datos", "evicted"), uid("ia", "reclaimer")
UNKNOWN = "00000000-0000-0000-0000-000000000000"
NODE = "h100-node-01"
# Who gets what, for the usual kinds of pages.
EVERYBODY = "200"
SIGNED_IN = "login 200 200 200 200 200 200"
AGAIN = "login again again again again again again"
OF_DATOS = "login 404 404 200 200 200 200"
OF_IA = "login 404 200 404 200 200 200"
OF_BOTH = "login 404 200 200 200 200 200"
OF_READERS = "login 404 404 404 200 200 200"
OF_NOBODY = "login 404 404 404 404 404 404"
BILL_OF_IA = "login 404 404 404 200 200 200"  # ian is no lead
EDITORS = "login 403 403 403 403 403 200"  # 403 whether the object is there or not
SEEING_ALL = "login 403 403 403 200 200 200"
PRICERS = "login 403 403 403 200 403 200"
NOTHING_TO_PUSH = "login 403 403 403 404 403 404"  # no gateway in this world
ONLY_POST = "405"
NO_STREAM = "login 204 204 204 204 204 204"  # a synchronous server cannot keep one open
STREAM_OF_DATOS = "login 404 404 204 204 204 204"

WEBHOOKS = "login 403 403 200 403 403 200"  # of Datos

PAGES = (
    door("login/", "/login/", "200 home home home home home home"),
    door("login/code/", "/login/code/", "login home home home home home home"),
    door("login/provider/", "/login/provider/", "404"),  # none in this world
    door("login/provider/callback/", "/login/provider/callback/", "404"),
    door("logout/", "/logout/", ONLY_POST),
    door("language/", "/language/", "home home home home home home home"),
    door("healthz", "/healthz", EVERYBODY),
    door("readyz", "/readyz", EVERYBODY),
    door("metrics", "/metrics", "404"),
    door("", "/", SIGNED_IN, allowed=LEDGER),
    door("search/", f"/search/?q={ZEBU[:3]}", SIGNED_IN),
    door("search/", "/search/?q=", SIGNED_IN),
    door("events/", "/events/?topics=capacity", NO_STREAM),
    door("events/", f"/events/?topics=workload:{ZEBU_RUNS}", STREAM_OF_DATOS),
    door("events/", "/events/?topics=nonsense", "login 400 400 400 400 400 400"),
    door("charts/quota-use/", "/charts/quota-use/", SIGNED_IN),
    door("charts/quota-use/", f"/charts/quota-use/?queue={ZEBU}", SIGNED_IN),
    door("charts/borrowed/", "/charts/borrowed/", SIGNED_IN),
    door("queues/", "/queues/", SIGNED_IN, files=True, shows=("queue",), allowed=LEDGER),
    door("queues/<name>/", f"/queues/{ZEBU}/", OF_DATOS, files=True, allowed=LEDGER),
    door("queues/<name>/", f"/queues/{YAKS}/", OF_IA, files=True, allowed=LEDGER),
    door("queues/<name>/", "/queues/nobody/", OF_NOBODY),
    door("queues/new/", "/queues/new/", EDITORS),
    door("queues/<name>/edit/", f"/queues/{ZEBU}/edit/", EDITORS),
    door("cohorts/new/", "/cohorts/new/", EDITORS),
    door("cohorts/<name>/edit/", "/cohorts/commons/edit/", EDITORS),
    door("cohorts/<name>/", "/cohorts/commons/", OF_BOTH, shows=("queue",), allowed=LEDGER),
    door("cohorts/<name>/", f"/cohorts/{word('ia', 'cohort')}/", OF_IA, allowed=LEDGER),
    door("cohorts/<name>/", f"/cohorts/{word('datos', 'cohort')}/", OF_DATOS, allowed=LEDGER),
    door(
        "workloads/",
        "/workloads/",
        SIGNED_IN,
        files=True,
        shows=("running", "waiting", "ended"),
    ),
    door("workloads/", "/workloads/?q=a", SIGNED_IN, files=True),
    door("workloads/<uid>/", f"/workloads/{ZEBU_RUNS}/", OF_DATOS, allowed=LENDER),
    door("workloads/<uid>/", f"/workloads/{ZEBU_EVICTED}/", OF_DATOS, allowed=HOLDER),
    door("workloads/<uid>/", f"/workloads/{YAKS_WAITS}/", OF_IA),
    door("workloads/<uid>/", f"/workloads/{YAKS_RECLAIMS}/", OF_IA),
    door("workloads/<uid>/", f"/workloads/{UNKNOWN}/", OF_NOBODY),
    door("workloads/act/", "/workloads/act/", ONLY_POST),
    door("workloads/<uid>/cancel/", f"/workloads/{ZEBU_RUNS}/cancel/", ONLY_POST),
    door("workloads/<uid>/active/", f"/workloads/{ZEBU_RUNS}/active/", ONLY_POST),
    door("workloads/<uid>/gate/", f"/workloads/{ZEBU_RUNS}/gate/", ONLY_POST),
    door("workloads/<uid>/checks/<name>/", f"/workloads/{ZEBU_RUNS}/checks/{CHECK}/", ONLY_POST),
    door("alerts/", "/alerts/", SIGNED_IN),
    door("admission-checks/", "/admission-checks/", SEEING_ALL),
    door("admission-checks/save/", "/admission-checks/save/", ONLY_POST),
    door("admission-checks/<name>/delete/", f"/admission-checks/{CHECK}/delete/", ONLY_POST),
    door("agents/", "/agents/", "login 403 403 403 200 200 200", files=True),
    door("agents/forget/", "/agents/forget/", ONLY_POST),
    door("nodes/", "/nodes/", SIGNED_IN, files=True),
    door("nodes/<name>/", f"/nodes/{NODE}/", SIGNED_IN),
    door("nodes/<name>/cordon/", f"/nodes/{NODE}/cordon/", ONLY_POST),
    door("fragments/", "/fragments/", SIGNED_IN, files=True),
    door("reservations/", "/reservations/", SIGNED_IN, files=True),
    door("charts/fragments/", "/charts/fragments/", SIGNED_IN),
    door("flavors/", "/flavors/", SIGNED_IN, files=True),
    door("flavors/new/", "/flavors/new/", EDITORS),
    door("flavors/<name>/", "/flavors/h100-sxm/", SIGNED_IN),
    door("flavors/<name>/edit/", "/flavors/h100-sxm/edit/", EDITORS),
    door("priority-classes/", "/priority-classes/", SIGNED_IN, files=True),
    door("priority-classes/new/", "/priority-classes/new/", EDITORS),
    door(
        "priority-classes/<kind>/<name>/edit/",
        "/priority-classes/workload/urgent/edit/",
        EDITORS,
    ),
    door("topology/", "/topology/", SIGNED_IN, files=True),
    door("topologies/new/", "/topologies/new/", EDITORS),
    door("topologies/<name>/", "/topologies/nowhere/", OF_NOBODY),
    door("topologies/<name>/edit/", "/topologies/nowhere/edit/", "login 403 403 403 403 403 404"),
    door("nodes/<name>/delete/", f"/nodes/{NODE}/delete/", ONLY_POST),
    door("fair-share/", "/fair-share/", SIGNED_IN, files=True),
    door("replays/", "/replays/", SEEING_ALL),
    door("replays/new/", "/replays/new/", EDITORS),
    door("replays/<uid>/", f"/replays/{REPLAY}/", SEEING_ALL, files=True),
    door("replays/<uid>/cancel/", f"/replays/{REPLAY}/cancel/", ONLY_POST),
    door("replays/<uid>/<kind>.json", f"/replays/{REPLAY}/waits.json", SEEING_ALL),
    door("replays/<uid>/<kind>.json", f"/replays/{REPLAY}/cost.json", SEEING_ALL),
    door("borrowing/", "/borrowing/", SIGNED_IN, files=True, shows=("queue",), allowed=BORROWER),
    door("evictions/", "/evictions/", SIGNED_IN, files=True),
    door("teams/", "/teams/", SIGNED_IN, files=True, shows=("shown",)),
    door("teams/new/", "/teams/new/", EDITORS),
    door("teams/onboard/", "/teams/onboard/", EDITORS),
    door("settings/", "/settings/", EDITORS),
    door("settings/", "/settings/?format=yaml", EDITORS),
    door("teams/<name>/begin/", "/teams/datos/begin/", OF_DATOS),
    door("teams/<name>/begin/", "/teams/ia/begin/", OF_IA),
    door("teams/<name>/", "/teams/datos/", OF_DATOS),
    door("teams/<name>/", "/teams/ia/", OF_IA),
    door("teams/<name>/edit/", "/teams/ia/edit/", EDITORS),
    door("teams/<name>/members/", "/teams/ia/members/", ONLY_POST),
    door("teams/<name>/namespaces/", "/teams/ia/namespaces/", ONLY_POST),
    door("teams/<name>/local-queues/", "/teams/ia/local-queues/", ONLY_POST),
    door("requests/", "/requests/", SIGNED_IN, files=True),
    door("requests/new/", "/requests/new/", "login 403 403 200 403 403 200"),
    door("requests/<pk>/", f"/requests/{REQUEST}/", OF_DATOS),
    door("requests/<pk>/decide/", f"/requests/{REQUEST}/decide/", ONLY_POST),
    door("requests/<pk>/withdraw/", f"/requests/{REQUEST}/withdraw/", ONLY_POST),
    door("quotas/", "/quotas/", EDITORS, files=True, shows=("queue",)),
    door("people/", "/people/", "login 403 403 403 403 200 200", files=True, shows=("colleague",)),
    door("people/new/", "/people/new/", EDITORS),
    door("people/groups/", "/people/groups/", EDITORS),
    door("people/groups/remove/", "/people/groups/remove/", ONLY_POST),
    door("people/<username>/edit/", "/people/eve/edit/", EDITORS),
    door("people/<username>/password/", "/people/eve/password/", ONLY_POST),
    door("people/<username>/second-factor/", "/people/eve/second-factor/", ONLY_POST),
    door("account/", "/account/", SIGNED_IN, allowed=OWN_TOKEN),
    door("account/password/", "/account/password/", SIGNED_IN),
    door("account/password/again/", "/account/password/again/", SIGNED_IN),
    door("account/second-factor/", "/account/second-factor/", SIGNED_IN),
    door("account/second-factor/app/", "/account/second-factor/app/", AGAIN),
    door("account/second-factor/code/", "/account/second-factor/code/", AGAIN),
    door("account/second-factor/remove/", "/account/second-factor/remove/", OF_NOBODY),
    door("account/second-factor/codes/", "/account/second-factor/codes/", OF_NOBODY),
    door("account/second-factor/codes/new/", "/account/second-factor/codes/new/", AGAIN),
    door("account/tokens/", "/account/tokens/", ONLY_POST),
    door("account/mail/", "/account/mail/", ONLY_POST),
    door("account/language/", "/account/language/", ONLY_POST),
    door("account/tokens/revoke/", "/account/tokens/revoke/", ONLY_POST),
    door("submit/", "/submit/", "login 403 200 200 403 403 200"),
    door("cost/", "/cost/", "login 404 404 200 200 200 200", files=True, allowed=LENDER),
    door("cost/by/", "/cost/by/?window=2026-06", "login 404 404 200 200 200 200", files=True),
    door("cost/<kind>.json", "/cost/team.json", OF_DATOS, shows=("shown",)),
    door("cost/<kind>.json", "/cost/idle.json", OF_DATOS),
    door("gpu-hours/", "/gpu-hours/?window=2026-06", SIGNED_IN, files=True),
    door("bills/", "/bills/", OF_DATOS, files=True),
    door(
        "bills/<month>/",
        f"/bills/{MONTH}/",
        OF_DATOS,
        files=True,
        shows=("shown",),
        allowed=LENDER,
    ),
    door("bills/<month>/close/", f"/bills/{MONTH}/close/", OF_READERS, files=True),
    door(
        "bills/<month>/close/acknowledge/",
        f"/bills/{MONTH}/close/acknowledge/",
        ONLY_POST,
    ),
    door("bills/<month>/close/adjust/", f"/bills/{MONTH}/close/adjust/", ONLY_POST),
    door(
        "bills/<month>/close/adjust/<pk>/take-back/",
        f"/bills/{MONTH}/close/adjust/1/take-back/",
        ONLY_POST,
    ),
    door(
        "bills/<month>/close/<step>/",
        f"/bills/{MONTH}/close/put_forward/",
        ONLY_POST,
    ),
    door(
        "bills/<month>/summary/",
        f"/bills/{MONTH}/summary/",
        OF_DATOS,
        files=True,
        shows=("shown",),
    ),
    door(
        "bills/<month>/<scope>/",
        f"/bills/{MONTH}/datos/",
        OF_DATOS,
        files=True,
        allowed=LENDER,
    ),
    door("bills/<month>/<scope>/", f"/bills/{MONTH}/ia/", BILL_OF_IA, files=True),
    door("bills/<month>/<scope>/", f"/bills/{MONTH}/__central__/", OF_READERS, files=True),
    door(
        "bills/<month>/<scope>/chart.json",
        f"/bills/{MONTH}/datos/chart.json",
        OF_DATOS,
    ),
    door(
        "bills/<month>/<scope>/chart.json",
        f"/bills/{MONTH}/ia/chart.json",
        BILL_OF_IA,
    ),
    door("bills/<month>/rules/", f"/bills/{MONTH}/rules/", OF_READERS),
    door("failures/", "/failures/", OF_READERS, files=True),
    door("shared-costs/", "/shared-costs/", OF_READERS, files=True),
    door("shared-costs/new/", "/shared-costs/new/", PRICERS),
    door("shared-costs/<name>/edit/", f"/shared-costs/{LICENCES}/edit/", PRICERS),
    door("shared-costs/<name>/end/", f"/shared-costs/{LICENCES}/end/", PRICERS),
    door("prices/", "/prices/", OF_DATOS, files=True),
    door("prices/new/", "/prices/new/", PRICERS),
    door("prices/<pk>/end/", f"/prices/{PRICE_ID}/end/", PRICERS),
    door("prices/tokens/", "/prices/tokens/", OF_READERS, files=True),
    door("prices/calculator/", "/prices/calculator/", OF_DATOS),
    door("mappings/", "/mappings/", OF_DATOS, files=True),
    door("mappings/new/", "/mappings/new/", PRICERS),
    door("mappings/import/", "/mappings/import/", PRICERS),
    door("mappings/assign/", "/mappings/assign/", ONLY_POST),
    door("mappings/<pk>/end/", f"/mappings/{MAPPING_ID}/end/", PRICERS),
    door("drift/", "/drift/", OF_READERS, files=True),
    door("budgets/", "/budgets/", OF_DATOS, files=True),
    door("budgets/new/", "/budgets/new/", "login 403 403 403 200 403 200"),
    door("budgets/<name>/edit/", f"/budgets/{BUDGET}/edit/", "login 403 403 403 200 403 200"),
    door("budgets/limits/read/", "/budgets/limits/read/", ONLY_POST),
    door("budgets/limits/<pk>/push/", "/budgets/limits/1/push/", NOTHING_TO_PUSH),
    door("budgets/<name>/delete/", f"/budgets/{BUDGET}/delete/", ONLY_POST),
    door("sources/", "/sources/", OF_READERS, files=True),
    door("sources/new/", "/sources/new/", EDITORS),
    door("sources/<name>/", f"/sources/{SOURCE}/", OF_READERS, files=True),
    door("sources/<name>/edit/", f"/sources/{SOURCE}/edit/", EDITORS),
    door("sources/<name>/test/", f"/sources/{SOURCE}/test/", ONLY_POST),
    door("sources/<name>/load/", f"/sources/{SOURCE}/load/", ONLY_POST),
    door(
        "sources/<name>/days/<day>/<verdict>/",
        f"/sources/{SOURCE}/days/{SOURCE_DAY}/accept/",
        ONLY_POST,
    ),
    door(
        "audit/",
        "/audit/",
        "login 403 403 200 403 200 200",
        files=True,
        shows=("reason", "description"),
    ),
    door("webhooks/", "/webhooks/", WEBHOOKS),
    door("webhooks/new/", "/webhooks/new/", WEBHOOKS),
    door("webhooks/<uid>/", f"/webhooks/{WEBHOOK}/", WEBHOOKS),
    door("webhooks/<uid>/edit/", f"/webhooks/{WEBHOOK}/edit/", WEBHOOKS),
    door("webhooks/<uid>/test/", f"/webhooks/{WEBHOOK}/test/", ONLY_POST),
    door("webhooks/<uid>/secret/", f"/webhooks/{WEBHOOK}/secret/", ONLY_POST),
    door("webhooks/<uid>/delete/", f"/webhooks/{WEBHOOK}/delete/", ONLY_POST),
    door("webhooks/<uid>/again/", f"/webhooks/{WEBHOOK}/again/", ONLY_POST),
    door("api/docs/", "/api/docs/", EVERYBODY),
    door("api/redoc/", "/api/redoc/", EVERYBODY),
)
REST_SIGNED_IN = "401 200 200 200 200 200 200"
REST_OF_DATOS = "401 404 404 200 200 200 200"
REST_OF_IA = "401 404 200 404 200 200 200"
REST_OF_BOTH = "401 404 200 200 200 200 200"
REST_OF_READERS = "401 404 404 404 200 200 200"
REST_SEEING_ALL = "401 403 403 403 200 200 200"
REST_ONLY_POST = "401 405 405 405 405 405 405"
REST_BILL_OF_IA = "401 404 404 404 200 200 200"
REST_OF_ASKER = "401 404 404 200 404 404 200"  # Lea asked
REST_WEBHOOKS = "401 403 403 200 403 403 200"
REST_OF_ADMINS = "401 403 403 403 403 403 200"
API = "api/v1/"
HOOK = f"{API}webhooks/<uid>/"
REST = (
    door(f"{API}settings/", f"/{API}settings/", REST_OF_ADMINS, takes_scope=True),
    door(f"{API}webhooks/", f"/{API}webhooks/", REST_WEBHOOKS, takes_scope=True),
    door(HOOK, f"/{API}webhooks/{WEBHOOK}/", REST_WEBHOOKS, takes_scope=True),
    door(
        f"{HOOK}deliveries/",
        f"/{API}webhooks/{WEBHOOK}/deliveries/",
        REST_WEBHOOKS,
        takes_scope=True,
    ),
    door(
        f"{HOOK}deliveries/<delivery>/again/",
        f"/{API}webhooks/{WEBHOOK}/deliveries/{DELIVERY}/again/",
        REST_ONLY_POST,
    ),
    door(f"{HOOK}test/", f"/{API}webhooks/{WEBHOOK}/test/", REST_ONLY_POST),
    door(f"{HOOK}secret/", f"/{API}webhooks/{WEBHOOK}/secret/", REST_ONLY_POST),
    door(f"{API}openapi.json", "/api/v1/openapi.json", EVERYBODY, shows_examples=True),
    door("^api/", "/api/v1/nothing/", "404"),
    door(f"{API}manifests/", "/api/v1/manifests/", "401 405 405 405 405 405 405"),
    door(
        f"{API}workloads/",
        "/api/v1/workloads/",
        REST_SIGNED_IN,
        shows=("running", "waiting", "ended"),
    ),
    door(
        f"{API}workloads/<uid>/",
        f"/api/v1/workloads/{ZEBU_RUNS}/",
        REST_OF_DATOS,
        allowed=LENDER,
    ),
    door(
        f"{API}workloads/<uid>/",
        f"/api/v1/workloads/{ZEBU_EVICTED}/",
        REST_OF_DATOS,
        allowed=HOLDER,
    ),
    door(
        f"{API}workloads/<uid>/",
        f"/api/v1/workloads/{YAKS_RECLAIMS}/",
        REST_OF_IA,
    ),
    door(f"{API}workloads/bulk/", "/api/v1/workloads/bulk/", REST_ONLY_POST),
    door(
        f"{API}workloads/<uid>/checkpoint/",
        f"/api/v1/workloads/{ZEBU_RUNS}/checkpoint/",
        REST_ONLY_POST,
    ),
    door(
        f"{API}workloads/<uid>/checks/<name>/",
        f"/api/v1/workloads/{ZEBU_RUNS}/checks/{CHECK}/",
        REST_ONLY_POST,
    ),
    door(f"{API}admission-checks/", "/api/v1/admission-checks/", REST_SEEING_ALL),
    door(f"{API}admission-checks/<name>/", f"/api/v1/admission-checks/{CHECK}/", REST_SEEING_ALL),
    door(f"{API}nodes/", "/api/v1/nodes/", REST_SIGNED_IN),
    door(f"{API}agents/", "/api/v1/agents/", "401 403 403 403 200 200 200"),
    door(f"{API}agents/<name>/", f"/api/v1/agents/{AGENT}/", REST_ONLY_POST),
    door(f"{API}agent/<name>/hello/", f"/api/v1/agent/{AGENT}/hello/", REST_ONLY_POST),
    door(f"{API}agent/<name>/reports/", f"/api/v1/agent/{AGENT}/reports/", REST_ONLY_POST),
    door(
        f"{API}agent/<name>/desired/",
        f"/api/v1/agent/{AGENT}/desired/?epoch=1",
        "401 403 403 403 403 403 200",
        takes_scope=True,
    ),
    door(f"{API}teams/", "/api/v1/teams/", REST_SIGNED_IN, shows=("shown",)),
    door(f"{API}teams/<name>/", "/api/v1/teams/ia/", REST_OF_IA),
    door(f"{API}cohorts/", "/api/v1/cohorts/", REST_SIGNED_IN, shows=("cohort",)),
    door(f"{API}cohorts/<name>/", "/api/v1/cohorts/commons/", REST_OF_BOTH),
    door(f"{API}cohorts/<name>/", f"/api/v1/cohorts/{word('ia', 'cohort')}/", REST_OF_IA),
    door(f"{API}cluster-queues/", "/api/v1/cluster-queues/", REST_SIGNED_IN, shows=("queue",)),
    door(f"{API}cluster-queues/<name>/", f"/api/v1/cluster-queues/{ZEBU}/", REST_OF_DATOS),
    door(f"{API}local-queues/", "/api/v1/local-queues/", REST_SIGNED_IN, shows=("door",)),
    door(
        f"{API}local-queues/<namespace>/<name>/",
        f"/api/v1/local-queues/{word('ia', 'namespace')}/{word('ia', 'door')}/",
        REST_OF_IA,
    ),
    door(f"{API}flavors/", "/api/v1/flavors/", REST_SIGNED_IN),
    door(f"{API}flavors/<name>/", "/api/v1/flavors/h100-sxm/", REST_SIGNED_IN),
    door(f"{API}nodes/<name>/", f"/api/v1/nodes/{NODE}/", REST_SIGNED_IN),
    door(f"{API}whoami/", "/api/v1/whoami/", REST_SIGNED_IN),
    door(f"{API}availability/", "/api/v1/availability/", REST_SIGNED_IN, shows=("queue",)),
    door(f"{API}alerts/", "/api/v1/alerts/", REST_SIGNED_IN),
    door(f"{API}fair-share/", "/api/v1/fair-share/", REST_SIGNED_IN),
    door(f"{API}operations/", "/api/v1/operations/", REST_SIGNED_IN),
    door(
        f"{API}operations/<uid>/",
        f"/api/v1/operations/{OPERATION}/",
        REST_OF_ASKER,
        takes_scope=True,
    ),
    door(
        f"{API}operations/<uid>/result/",
        f"/api/v1/operations/{OPERATION}/result/",
        REST_OF_ASKER,
        takes_scope=True,
    ),
    door(f"{API}periods/<month>/rebuild/", f"/api/v1/periods/{MONTH}/rebuild/", REST_ONLY_POST),
    door(f"{API}replays/", "/api/v1/replays/", REST_SEEING_ALL),
    door(f"{API}replays/<uid>/", f"/api/v1/replays/{REPLAY}/", REST_OF_READERS),
    door(
        f"{API}audit/",
        "/api/v1/audit/",
        "401 403 403 200 403 200 200",
        takes_scope=True,
    ),
    door(f"{API}tokens/", "/api/v1/tokens/", REST_SIGNED_IN, allowed=OWN_LIMIT),
    door(f"{API}workload-priority-classes/", "/api/v1/workload-priority-classes/", REST_SIGNED_IN),
    door(f"{API}ledger/", "/api/v1/ledger/", REST_SIGNED_IN, shows=("queue",), allowed=BORROWER),
    door(f"{API}evictions/", "/api/v1/evictions/", REST_SIGNED_IN),
    door(f"{API}fragments/", "/api/v1/fragments/", REST_SIGNED_IN),
    door(f"{API}topologies/", "/api/v1/topologies/", REST_SIGNED_IN),
    door(f"{API}topologies/<name>/", "/api/v1/topologies/nowhere/", "401 404 404 404 404 404 404"),
    door(f"{API}prices/tokens/", "/api/v1/prices/tokens/", REST_OF_READERS),
    door(f"{API}prices/", "/api/v1/prices/", REST_OF_DATOS),
    door(f"{API}cost/", "/api/v1/cost/", REST_OF_DATOS),
    door(f"{API}gpu-hours/", "/api/v1/gpu-hours/", REST_SIGNED_IN),
    door(f"{API}mappings/", "/api/v1/mappings/", REST_OF_DATOS),
    door(f"{API}mappings/unmatched/", "/api/v1/mappings/unmatched/", REST_OF_READERS),
    door(f"{API}mappings/<pk>/end/", f"/api/v1/mappings/{MAPPING_ID}/end/", REST_ONLY_POST),
    door(f"{API}shared-costs/", "/api/v1/shared-costs/", REST_OF_READERS),
    door(f"{API}shared-costs/<name>/", f"/api/v1/shared-costs/{LICENCES}/", REST_OF_READERS),
    door(f"{API}sources/", "/api/v1/sources/", REST_OF_READERS),
    door(f"{API}sources/<name>/", f"/api/v1/sources/{SOURCE}/", REST_OF_READERS),
    door(f"{API}sources/<name>/days/", f"/api/v1/sources/{SOURCE}/days/", REST_OF_READERS),
    door(f"{API}sources/<name>/test/", f"/api/v1/sources/{SOURCE}/test/", REST_ONLY_POST),
    door(
        f"{API}sources/<name>/days/<day>/",
        f"/api/v1/sources/{SOURCE}/days/{SOURCE_DAY}/",
        REST_ONLY_POST,
    ),
    door(
        f"{API}sources/<name>/days/<day>/<verdict>/",
        f"/api/v1/sources/{SOURCE}/days/{SOURCE_DAY}/accept/",
        REST_ONLY_POST,
    ),
    door(
        f"{API}bills/<month>/files/<kind>/",
        f"/api/v1/bills/{MONTH}/files/csv/",
        REST_OF_DATOS,
        allowed=LENDER,
    ),
    door(
        f"{API}bills/<month>/<scope>/files/<kind>/",
        f"/api/v1/bills/{MONTH}/datos/files/csv/",
        REST_OF_DATOS,
        allowed=LENDER,
    ),
    door(f"{API}drift/<month>/", f"/api/v1/drift/{MONTH}/", REST_OF_READERS),
    door(f"{API}budgets/", "/api/v1/budgets/", REST_OF_DATOS),
    door(f"{API}litellm-limits/", "/api/v1/litellm-limits/", REST_OF_DATOS),
    door(f"{API}litellm-limits/<pk>/push/", "/api/v1/litellm-limits/1/push/", REST_ONLY_POST),
    door(f"{API}budgets/<name>/", f"/api/v1/budgets/{BUDGET}/", REST_OF_DATOS),
    door(f"{API}periods/", "/api/v1/periods/", REST_OF_READERS),
    door(f"{API}periods/<month>/", f"/api/v1/periods/{MONTH}/", REST_OF_READERS),
    door(f"{API}periods/<month>/policy/", f"/api/v1/periods/{MONTH}/policy/", REST_OF_READERS),
    door(f"{API}periods/<month>/summary/", f"/api/v1/periods/{MONTH}/summary/", REST_OF_DATOS),
    *(
        door(f"{API}periods/<month>/{name}/", f"/api/v1/periods/{MONTH}/{path}/", REST_ONLY_POST)
        for name, path in (
            ("acknowledgements", "acknowledgements"),
            ("adjustments", "adjustments"),
            ("adjustments/<pk>", "adjustments/1"),
            ("<step>", "put_forward"),
        )
    ),
    door(f"{API}bills/<month>/", f"/api/v1/bills/{MONTH}/", REST_OF_DATOS),
    door(
        f"{API}bills/<month>/<scope>/",
        f"/api/v1/bills/{MONTH}/datos/",
        REST_OF_DATOS,
        allowed=LENDER,
    ),
    door(
        f"{API}bills/<month>/<scope>/",
        f"/api/v1/bills/{MONTH}/ia/",
        REST_BILL_OF_IA,
        allowed=LENDER,
    ),
)
DOORS = (*PAGES, *REST)


def routes() -> Iterator[str]:
    """Yield the pattern of every address that Django answers."""
    yield from _below(get_resolver(), "")


def _below(resolver: Any, prefix: str) -> Iterator[str]:
    for pattern in resolver.url_patterns:
        route = prefix + str(pattern.pattern)
        if hasattr(pattern, "url_patterns"):
            yield from _below(pattern, route)
        else:
            yield CONVERTER.sub("<", route)  # how a part is read is no business of this table
