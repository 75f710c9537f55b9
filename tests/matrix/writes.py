"""Every way to change something, with a body that would succeed, and who may.

A new POST, PUT, PATCH or DELETE needs a row here; what has none must be refused.
Columns as in ``doors``: anonymous, eve, ian, lea, fin, aud, ada; ``ok`` is 2xx or a redirect to
the result.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from django.test.client import MULTIPART_CONTENT

from queues.models import ApiToken
from tests.conftest import PASSWORD
from tests.matrix.doors import AGAIN, API, NODE, PEOPLE, ZEBU, ZEBU_RUNS
from tests.matrix.world import (
    AGENT,
    AGENT_NODE,
    BUDGET,
    CHECK,
    DELIVERY,
    GATE,
    GRANT,
    LICENCES,
    MAPPING_ID,
    MONTH,
    OPERATION_WAITS,
    PRICE_ID,
    REPLAY_WAITS,
    REQUEST,
    SOURCE,
    SOURCE_DAY,
    WEBHOOK,
    word,
)
from tests.scheduling.loop.world import FLAVOR

REASON = "Agreed in the June review"
JSON, YAML = "application/json", "application/yaml"


@dataclass(frozen=True)
class Write:
    """One way to change something; ``body`` is sent, or makes it with an admin's browser."""

    method: str
    route: str
    path: str
    answers: tuple[str, ...]
    body: Any
    content_type: str = MULTIPART_CONTENT
    headers: Mapping[str, str] | None = None

    @property
    def is_rest(self) -> bool:
        """Return whether programs come here, with tokens."""
        return self.path.startswith("/api/")

    def answer_to(self, who: str) -> str:
        """Return the expected answer."""
        return self.answers[PEOPLE.index(who)]

    def body_by(self, admin: Client) -> Any:
        """Return what to send."""
        return self.body(admin) if callable(self.body) else self.body

    def send(self, client: Client, body: Any) -> Any:
        """Send ``body``; return the response."""
        ask = getattr(client, self.method.lower())
        return ask(self.path, body, content_type=self.content_type, headers=self.headers)

    def __str__(self) -> str:
        return f"{self.method} {self.path}"


def mapping_file(_admin: Client) -> dict[str, Any]:
    """Return a file of mappings, as a browser sends it."""
    file = SimpleUploadedFile("mappings.csv", b"kind,value,team\nqueue,cq-new,ia\n")
    return {"file": file, "reason": REASON}


def form_of(path: str, **typed: str) -> Callable[[Client], dict[str, Any]]:
    """Return what a browser would send from the form at ``path`` with some values typed over."""

    def read(admin: Client) -> dict[str, Any]:
        page = admin.get(path)
        rows = page.context.get("rows")
        data = {}
        for form in (page.context["form"], *(rows or ())):
            for name in form.fields:
                value = form[name].value()
                if value is not None:  # a browser sends nothing for what is not chosen
                    shown = value if isinstance(value, list) else str(value)
                    data[form[name].html_name] = shown
        if rows is not None:
            management = rows.management_form
            names = management.fields
            data |= {management[name].html_name: str(management[name].value()) for name in names}
        return data | {"reason": REASON} | typed

    return read


def token_of_ada(_admin: Client) -> dict[str, str]:
    """Return what revokes a token of the admin."""
    return {"key": ApiToken.objects.filter(user__username="ada")[0].token_key}


def page(route: str, answers: str, body: Any, path: str = "") -> Write:
    """Return a form of a page."""
    return Write("POST", route, path or f"/{route}", tuple(answers.split()), body)


def rest(method: str, route: str, answers: str, body: Any, **more: Any) -> Write:
    """Return a way to write over REST."""
    path = more.pop("path", f"/{API}{route}")
    kind = more.pop("content_type", JSON)
    sent = json.dumps(body) if kind == JSON else body
    return Write(method, API + route, path, tuple(answers.split()), sent, kind, **more)


ADMIN = "login 403 403 403 403 403 ok"
ANYBODY = "login ok ok ok ok ok ok"
FINANCE = "login 403 403 403 ok 403 ok"
NO_GATEWAY = "login 403 403 403 404 403 404"  # there is none in this world
REST_NO_GATEWAY = "401 403 403 403 404 403 404"
REST_FINANCE = "401 403 403 403 ok 403 ok"
LEAD_OF_DATOS = "login 404 404 ok 403 403 ok"
WEBHOOKS = "login 403 403 ok 403 403 ok"  # of Datos
REST_WEBHOOKS = "401 403 403 ok 403 403 ok"
AT_HOOK, HOOK = f"/webhooks/{WEBHOOK}/", "webhooks/<uid>/"
LISTENER = {"name": "chat", "url": "https://example.org/", "events": ["workload.finished"]}
NEW_PASSWORD = {
    "old_password": PASSWORD,
    "new_password1": "staple battery horse",
    "new_password2": "staple battery horse",
}
WORKLOAD = {
    "name": "new",
    "namespace": word("datos", "namespace"),
    "queue": word("datos", "door"),
    "pod_sets": [{"name": "main", "count": 1, "requests": {"nvidia.com/gpu": 1}}],
}
ONBOARDING = {
    f"{rows}-{name}": "0"
    for rows in ("people", "doors", "quota")
    for name in ("TOTAL_FORMS", "INITIAL_FORMS")
} | {
    "name": "guided",
    "display_name": "Guided",
    "accounting_mode": "showback",
    "queue-which": "none",
    "budget-limit": "100",
    "budget-thresholds": "50, 80",
}
CELL = f"{ZEBU}|{FLAVOR}|nvidia.com/gpu"
QUOTAS = {
    f"{CELL}-nominal": "5",
    f"{CELL}-seen": "4//",
    f"version|{ZEBU}": "1",
    "reason": REASON,
}
AMOUNTS = {f"{CELL}-{name}": "" for name in ("borrowing_limit", "lending_limit")}
ASKED = {f"{CELL}-nominal": "5", "reason": REASON} | AMOUNTS
MANIFEST = f"""
apiVersion: batch/v1
kind: Job
metadata:
  name: new
  namespace: {word("datos", "namespace")}
  labels: {{kueue.x-k8s.io/queue-name: {word("datos", "door")}}}
spec:
  template:
    spec:
      containers:
      - name: main
        resources: {{limits: {{nvidia.com/gpu: 1}}}}
"""
COHORT = {
    "parent": None,
    "groups": [],
    "fair_weight": "1",
    "fairness": "share",
    "reclaim_to": "quota",
    "quota_source": "declared",
}
QUEUE = {
    "cohort": "commons",
    "namespace_selector": {},
    "queueing_strategy": "BestEffortFIFO",
    "stop_policy": "None",
    "fair_weight": "1",
    "preemption": {
        "within_cluster_queue": "Never",
        "reclaim_within_cohort": "Never",
        "borrow_within_cohort": "Never",
        "max_priority_threshold": None,
    },
    "reclaimable": True,
    "undeclared": "BlockUndeclared",
    "fungibility": {
        "when_can_borrow": "MayStopSearch",
        "when_can_preempt": "TryNextFlavor",
        "preference": "BorrowingOverPreemption",
    },
    "minimum_runtime_s": 0,
    "yields_to_own": False,
    "admission_order": "priority",
    "priority_first": False,
    "carried": {},
    "groups": [
        {
            "resources": ["nvidia.com/gpu"],
            "flavors": [
                {
                    "flavor": "h100-sxm",
                    "quotas": [{"resource": "nvidia.com/gpu", "nominal": "3"}],
                }
            ],
        }
    ],
}
FLAVOR = {
    "node_labels": {"accelerator": "h100-sxm"},
    "node_taints": [],
    "tolerations": [],
    "topology": "",
    "policy": "spread",
}
AT = "http://localhost:9"  # where nobody answers
ANY_VERSION = {"If-Match": "*"}  # for admins
FIRST_VERSION = {"If-Match": '"v1"'}
PRICE = {"unit": "gpu_hour", "subject": "*", "amount": "2.00"}

WRITES = (
    page("login/", "200 home home home home home home", {"username": "eve", "password": "no"}),
    page("login/code/", "login home home home home home home", {"code": "1"}),
    page("logout/", "ok ok ok ok ok ok ok", {}),
    page("language/", "home home home home home home home", {"language": "de"}),
    page("queues/new/", ADMIN, form_of("/queues/new/", name="cq-new", team="ia")),
    page(
        "queues/<name>/edit/",
        ADMIN,
        form_of(f"/queues/{ZEBU}/edit/", queueing_strategy="StrictFIFO"),
        f"/queues/{ZEBU}/edit/",
    ),
    page("cohorts/new/", ADMIN, form_of("/cohorts/new/", name="another")),
    page(
        "cohorts/<name>/edit/",
        ADMIN,
        form_of("/cohorts/commons/edit/", quota_source="residual"),
        "/cohorts/commons/edit/",
    ),
    page("flavors/new/", ADMIN, form_of("/flavors/new/", name="l40s", node_labels="kind=l40s")),
    page(
        "flavors/<name>/edit/",
        ADMIN,
        form_of("/flavors/h100-sxm/edit/", policy="binpack"),
        "/flavors/h100-sxm/edit/",
    ),
    page(
        "priority-classes/new/",
        ADMIN,
        form_of("/priority-classes/new/", name="low", value="-5"),
    ),
    page(
        "priority-classes/<kind>/<name>/edit/",
        ADMIN,
        form_of("/priority-classes/workload/urgent/edit/", value="90", reason=REASON),
        "/priority-classes/workload/urgent/edit/",
    ),
    page("topologies/new/", ADMIN, form_of("/topologies/new/", name="dc", levels="rack")),
    page(
        "topologies/<name>/edit/",
        "login 403 403 403 403 403 404",
        {"levels": "rack", "reason": REASON},
        "/topologies/nowhere/edit/",
    ),
    page("teams/onboard/", ADMIN, ONBOARDING),
    page("teams/new/", ADMIN, form_of("/teams/new/", name="another", display_name="Another")),
    page(
        "teams/<name>/edit/",
        ADMIN,
        form_of("/teams/datos/edit/", display_name="Other"),
        "/teams/datos/edit/",
    ),
    page(
        "teams/<name>/members/",
        LEAD_OF_DATOS,
        {"username": "eve", "role": "member"},
        "/teams/datos/members/",
    ),
    page("teams/<name>/namespaces/", ADMIN, {"namespace": "new"}, "/teams/datos/namespaces/"),
    page(
        "teams/<name>/local-queues/",
        ADMIN,
        {"namespace": word("datos", "namespace"), "name": "new", "cluster_queue": ZEBU},
        "/teams/datos/local-queues/",
    ),
    page(
        "people/new/",
        ADMIN,
        form_of("/people/new/", username="another", sign_in="generated"),
    ),
    page(
        "people/<username>/edit/",
        ADMIN,
        form_of("/people/eve/edit/", first_name="Eve"),
        "/people/eve/edit/",
    ),
    page(
        "people/<username>/password/",
        ADMIN,
        {"sign_in": "generated", "reason": REASON},
        "/people/eve/password/",
    ),
    page("people/groups/", ADMIN, {"group": "/new", "gives": "finance"}),
    page("people/groups/remove/", ADMIN, {"key": str(GRANT)}),
    page(
        "people/<username>/second-factor/",
        ADMIN,
        {"reason": REASON},
        f"/people/{word('datos', 'colleague')}/second-factor/",
    ),
    page("account/password/", ANYBODY, NEW_PASSWORD),
    page("account/password/again/", "login home home home home home home", {"password": PASSWORD}),
    page("account/second-factor/app/", AGAIN, {"code": "1"}),
    page("account/second-factor/code/", AGAIN, {"code": "1"}),
    page("account/second-factor/remove/", "login 404 404 404 404 404 404", {}),
    page("account/second-factor/codes/new/", AGAIN, {}),
    page("webhooks/new/", WEBHOOKS, LISTENER | {"team": "datos"}),
    page(f"{HOOK}edit/", WEBHOOKS, LISTENER, f"{AT_HOOK}edit/"),
    page(f"{HOOK}test/", WEBHOOKS, {}, f"{AT_HOOK}test/"),
    page(f"{HOOK}secret/", WEBHOOKS, {}, f"{AT_HOOK}secret/"),
    page(f"{HOOK}delete/", WEBHOOKS, {}, f"{AT_HOOK}delete/"),
    page(f"{HOOK}again/", WEBHOOKS, {"delivery": str(DELIVERY)}, f"{AT_HOOK}again/"),
    rest("POST", "webhooks/", REST_WEBHOOKS, LISTENER | {"team": "datos"}),
    rest("PUT", HOOK, REST_WEBHOOKS, LISTENER, path=f"/api/v1{AT_HOOK}", headers=FIRST_VERSION),
    rest("DELETE", HOOK, REST_WEBHOOKS, None, path=f"/api/v1{AT_HOOK}", headers=FIRST_VERSION),
    rest("POST", f"{HOOK}test/", REST_WEBHOOKS, None, path=f"/api/v1{AT_HOOK}test/"),
    rest("POST", f"{HOOK}secret/", REST_WEBHOOKS, None, path=f"/api/v1{AT_HOOK}secret/"),
    rest(
        "POST",
        f"{HOOK}deliveries/<delivery>/again/",
        REST_WEBHOOKS,
        None,
        path=f"/api/v1{AT_HOOK}deliveries/{DELIVERY}/again/",
    ),
    page("account/tokens/", ANYBODY, {"name": "new", "scopes": ["read"], "days": "30"}),
    page("account/mail/", ANYBODY, {"wanted": "no"}),
    page("account/language/", ANYBODY, {"language": "de"}),
    page("account/tokens/revoke/", "login 404 404 404 404 404 ok", token_of_ada),
    page(
        "workloads/act/",
        LEAD_OF_DATOS,
        {"act": "cancel", "uid": str(ZEBU_RUNS), "confirm": "1"},
    ),
    page("workloads/<uid>/cancel/", LEAD_OF_DATOS, {}, f"/workloads/{ZEBU_RUNS}/cancel/"),
    page(
        "workloads/<uid>/active/",
        LEAD_OF_DATOS,
        {"active": "no"},
        f"/workloads/{ZEBU_RUNS}/active/",
    ),
    page("workloads/<uid>/gate/", LEAD_OF_DATOS, {"gate": GATE}, f"/workloads/{ZEBU_RUNS}/gate/"),
    page(
        "workloads/<uid>/checks/<name>/",
        "login 404 404 403 403 403 ok",
        {"state": "Ready", "message": "agreed"},
        f"/workloads/{ZEBU_RUNS}/checks/{CHECK}/",
    ),
    page(
        "admission-checks/save/",
        ADMIN,
        {"name": "other", "kind": "manual", "queues": ["*"], "reason": REASON},
    ),
    page("admission-checks/<name>/delete/", ADMIN, {}, f"/admission-checks/{CHECK}/delete/"),
    page(
        "nodes/<name>/cordon/",
        ADMIN,
        {"cordoned": "yes", "reason": REASON},
        f"/nodes/{NODE}/cordon/",
    ),
    page("agents/forget/", ADMIN, {"agent": AGENT, "reason": REASON}),
    page("nodes/<name>/delete/", ADMIN, {"reason": REASON}, f"/nodes/{NODE}/delete/"),
    page("submit/", "login 403 422 ok 403 403 ok", {"text": MANIFEST, "submit": "yes"}),
    page(
        "bills/<month>/",
        "login 404 404 403 ok 403 ok",
        {"idle_policy": "even", "reason": REASON, "seen": 1},
        f"/bills/{MONTH}/",
    ),
    page(
        "bills/<month>/close/<step>/",
        "login 404 404 404 422 403 422",  # the month of the world is not over
        {"reason": REASON},
        f"/bills/{MONTH}/close/put_forward/",
    ),
    page(
        "bills/<month>/close/acknowledge/",
        "login 404 404 404 422 403 422",  # nothing stands in its way
        {"code": "drift", "reason": REASON},
        f"/bills/{MONTH}/close/acknowledge/",
    ),
    page(
        "bills/<month>/close/adjust/",
        "login 404 404 404 ok 403 ok",
        {"amount": "1.00", "reason": REASON},
        f"/bills/{MONTH}/close/adjust/",
    ),
    page(
        "bills/<month>/close/adjust/<pk>/take-back/",
        "login 404 404 404 422 403 422",  # the month of the world has none
        {},
        f"/bills/{MONTH}/close/adjust/1/take-back/",
    ),
    page("quotas/", ADMIN, QUOTAS),
    page("requests/new/", "login 403 403 ok 403 403 ok", ASKED, "/requests/new/?team=datos"),
    page(
        "requests/<pk>/decide/",
        "login 404 404 403 403 403 ok",
        {"approve": "1", "note": REASON},
        f"/requests/{REQUEST}/decide/",
    ),
    page("requests/<pk>/withdraw/", LEAD_OF_DATOS, {}, f"/requests/{REQUEST}/withdraw/"),
    page(
        "replays/new/",
        ADMIN,
        form_of("/replays/new/", first_day="2026-06-01", last_day="2026-06-01"),
    ),
    page("replays/<uid>/cancel/", ADMIN, {}, f"/replays/{REPLAY_WAITS}/cancel/"),
    page(
        "budgets/new/",
        "login 403 403 403 ok 403 ok",
        form_of("/budgets/new/", name="all", subject="datos", limit="100"),
    ),
    page(
        "budgets/<name>/edit/",
        "login 403 403 403 ok 403 ok",
        form_of(f"/budgets/{BUDGET}/edit/", limit="101"),
        f"/budgets/{BUDGET}/edit/",
    ),
    page("budgets/limits/read/", NO_GATEWAY, {}, "/budgets/limits/read/"),
    page("budgets/limits/<pk>/push/", NO_GATEWAY, {"reason": REASON}, "/budgets/limits/1/push/"),
    page(
        "budgets/<name>/delete/",
        "login 403 403 403 ok 403 ok",
        {"reason": REASON, "seen": "1"},
        f"/budgets/{BUDGET}/delete/",
    ),
    page(
        "bills/<month>/rules/",
        "login 404 404 404 ok 403 ok",
        form_of(f"/bills/{MONTH}/rules/", borrow_surcharge="1.5", reason=REASON),
        f"/bills/{MONTH}/rules/",
    ),
    page(
        "shared-costs/new/",
        "login 403 403 403 ok 403 ok",
        {"name": "rent", "method": "even", "amount": "100.00", "reason": REASON},
    ),
    page(
        "shared-costs/<name>/edit/",
        "login 403 403 403 ok 403 ok",
        form_of(
            f"/shared-costs/{LICENCES}/edit/",
            amount="120.00",
            valid_from="2026-09-01 00:00",
            reason=REASON,
        ),
        f"/shared-costs/{LICENCES}/edit/",
    ),
    page(
        "shared-costs/<name>/end/",
        "login 403 403 403 ok 403 ok",
        {"valid_to": "2026-10-01 00:00", "reason": REASON},
        f"/shared-costs/{LICENCES}/end/",
    ),
    page(
        "prices/new/",
        "login 403 403 403 ok 403 ok",
        form_of("/prices/new/", unit="gpu_hour", subject="*", amount="2.00"),
    ),
    page(
        "prices/<pk>/end/",
        "login 403 403 403 ok 403 ok",
        {"reason": REASON},
        f"/prices/{PRICE_ID}/end/",
    ),
    page(
        "mappings/new/",
        "login 403 403 403 ok 403 ok",
        {"kind": "litellm_team", "value": "team-new", "team": "ia", "reason": REASON},
    ),
    page(
        "mappings/assign/",
        "login 403 403 403 ok 403 ok",
        {"kind": "namespace", "value": "ns-new", "team": "ia"},
    ),
    page("mappings/import/", "login 403 403 403 ok 403 ok", mapping_file),
    page(
        "mappings/<pk>/end/",
        "login 403 403 403 ok 403 ok",
        {"reason": REASON},
        f"/mappings/{MAPPING_ID}/end/",
    ),
    page("sources/new/", ADMIN, form_of("/sources/new/", name="other", url=AT, cluster="b")),
    page(
        "sources/<name>/edit/",
        ADMIN,
        form_of(f"/sources/{SOURCE}/edit/", currency="USD"),
        f"/sources/{SOURCE}/edit/",
    ),
    page("sources/<name>/test/", FINANCE, {}, f"/sources/{SOURCE}/test/"),
    page("sources/<name>/load/", FINANCE, {"day": SOURCE_DAY}, f"/sources/{SOURCE}/load/"),
    page(
        "sources/<name>/days/<day>/<verdict>/",
        FINANCE,
        {"reason": REASON},
        f"/sources/{SOURCE}/days/{SOURCE_DAY}/reject/",
    ),
    rest(
        "PUT",
        "sources/<name>/",
        "401 403 403 403 403 403 ok",
        {"kind": "litellm_database", "currency": "USD"},
        path="/api/v1/sources/gateway/",
    ),
    rest("POST", "sources/<name>/test/", REST_FINANCE, {}, path=f"/api/v1/sources/{SOURCE}/test/"),
    rest(
        "POST",
        "sources/<name>/days/<day>/",
        REST_FINANCE,
        {},
        path=f"/api/v1/sources/{SOURCE}/days/{SOURCE_DAY}/",
    ),
    rest(
        "POST",
        "sources/<name>/days/<day>/<verdict>/",
        REST_FINANCE,
        {"reason": REASON},
        path=f"/api/v1/sources/{SOURCE}/days/{SOURCE_DAY}/reject/",
    ),
    rest("POST", "workloads/", "401 422 422 ok 403 403 ok", WORKLOAD),
    rest("POST", "workloads/bulk/", "401 422 422 ok 403 403 ok", {"workloads": [WORKLOAD]}),
    rest(
        "PATCH",
        "workloads/<uid>/",
        "401 404 404 ok 403 403 ok",
        {"pod_sets": [{"name": "worker", "finished": 1}]},
        path=f"/api/v1/workloads/{ZEBU_RUNS}/",
    ),
    rest(
        "DELETE",
        "workloads/<uid>/",
        "401 404 404 ok 403 403 ok",
        "",
        path=f"/api/v1/workloads/{ZEBU_RUNS}/",
    ),
    rest(
        "POST",
        "workloads/<uid>/checkpoint/",
        "401 404 404 ok 403 403 ok",
        {},
        path=f"/api/v1/workloads/{ZEBU_RUNS}/checkpoint/",
    ),
    rest(
        "POST",
        "workloads/<uid>/checks/<name>/",
        "401 404 404 403 403 403 ok",
        {"state": "Ready"},
        path=f"/api/v1/workloads/{ZEBU_RUNS}/checks/{CHECK}/",
    ),
    rest(
        "PUT",
        "admission-checks/<name>/",
        "401 403 403 403 403 403 ok",
        {"kind": "manual", "queues": [ZEBU]},
        path=f"/api/v1/admission-checks/{CHECK}/",
        headers=ANY_VERSION,
    ),
    rest(
        "DELETE",
        "admission-checks/<name>/",
        "401 403 403 403 403 403 ok",
        "",
        path=f"/api/v1/admission-checks/{CHECK}/",
        headers=ANY_VERSION,
    ),
    rest("POST", "manifests/", "401 422 422 ok 403 403 ok", MANIFEST, content_type=YAML),
    rest(
        "PUT",
        "cohorts/<name>/",
        "401 404 403 403 403 403 ok",
        COHORT,
        path="/api/v1/cohorts/commons/",
        headers=ANY_VERSION,
    ),
    rest(
        "PUT",
        "cluster-queues/<name>/",
        "401 404 404 403 403 403 ok",
        QUEUE,
        path=f"/api/v1/cluster-queues/{ZEBU}/",
        headers=ANY_VERSION,
    ),
    rest(
        "PUT",
        "flavors/<name>/",
        "401 403 403 403 403 403 ok",
        FLAVOR,
        path="/api/v1/flavors/h100-sxm/",
        headers=ANY_VERSION,
    ),
    rest(
        "PUT",
        "topologies/<name>/",
        "401 404 404 404 404 404 ok",
        {"levels": ["rack"]},
        path="/api/v1/topologies/dc/",
    ),
    rest(
        "DELETE",
        "cohorts/<name>/",
        "401 404 403 403 403 403 409",
        "",
        path="/api/v1/cohorts/commons/",
        headers=ANY_VERSION,
    ),
    rest(
        "DELETE",
        "cluster-queues/<name>/",
        "401 404 404 403 403 403 409",
        "",
        path=f"/api/v1/cluster-queues/{ZEBU}/",
        headers=ANY_VERSION,
    ),
    rest(
        "DELETE",
        "flavors/<name>/",
        "401 403 403 403 403 403 409",
        "",
        path="/api/v1/flavors/h100-sxm/",
        headers=ANY_VERSION,
    ),
    rest(
        "DELETE",
        "topologies/<name>/",
        "401 404 404 404 404 404 404",
        "",
        path="/api/v1/topologies/nowhere/",
        headers=ANY_VERSION,
    ),
    rest(
        "PATCH",
        "nodes/<name>/",
        "401 403 403 403 403 403 ok",
        {"schedulable": False, "reason": REASON},
        path=f"/api/v1/nodes/{NODE}/",
        headers=FIRST_VERSION,
    ),
    rest(
        "DELETE",
        "nodes/<name>/",
        "401 403 403 403 403 403 ok",
        "",
        path=f"/api/v1/nodes/{NODE}/",
        headers=FIRST_VERSION,
    ),
    rest(
        "POST",
        "mappings/",
        "401 403 403 403 ok 403 ok",
        {"kind": "queue", "value": "cq-new", "team": "ia"},
    ),
    rest(
        "POST",
        "mappings/<pk>/end/",
        "401 403 403 403 ok 403 ok",
        {"reason": REASON},
        path=f"/api/v1/mappings/{MAPPING_ID}/end/",
    ),
    rest(
        "DELETE",
        "operations/<uid>/",
        "401 404 404 ok 404 404 ok",
        "",
        path=f"/api/v1/operations/{OPERATION_WAITS}/",
    ),
    rest(
        "POST",
        "replays/",
        "401 403 403 403 403 403 ok",
        {"first_day": "2026-06-01", "last_day": "2026-06-01"},
    ),
    rest(
        "DELETE",
        "replays/<uid>/",
        "401 403 403 403 403 403 ok",
        "",
        path=f"/api/v1/replays/{REPLAY_WAITS}/",
    ),
    rest(
        "PUT",
        "budgets/<name>/",
        "401 403 403 403 ok 403 ok",
        {"scope": "team", "subject": "datos", "measure": "money", "limit": "5.00"},
        path=f"/api/v1/budgets/{BUDGET}/",
        headers=FIRST_VERSION,
    ),
    rest("POST", "litellm-limits/", REST_NO_GATEWAY, {}),
    rest(
        "POST",
        "litellm-limits/<pk>/push/",
        REST_NO_GATEWAY,
        {"reason": REASON},
        path="/api/v1/litellm-limits/1/push/",
    ),
    rest(
        "PUT",
        "shared-costs/<name>/",
        "401 403 403 403 ok 403 ok",
        {"method": "even", "amount": "100.00"},
        path="/api/v1/shared-costs/rent/",
    ),
    rest(
        "DELETE",
        "shared-costs/<name>/",
        "401 403 403 403 404 403 404",  # there is none
        "",
        path="/api/v1/shared-costs/rent/",
        headers=ANY_VERSION,
    ),
    rest(
        "DELETE",
        "budgets/<name>/",
        "401 403 403 403 ok 403 ok",
        "",
        path=f"/api/v1/budgets/{BUDGET}/",
        headers=FIRST_VERSION,
    ),
    rest(
        "PATCH",
        "periods/<month>/policy/",
        "401 403 403 403 ok 403 ok",
        {"idle_basis": "day", "reason": REASON},
        path=f"/api/v1/periods/{MONTH}/policy/",
        headers=FIRST_VERSION,
    ),
    rest(
        "POST",
        "periods/<month>/<step>/",
        "401 404 404 404 422 403 422",  # the month of the world is not over
        {"reason": REASON},
        path=f"/api/v1/periods/{MONTH}/put_forward/",
    ),
    rest(
        "POST",
        "periods/<month>/rebuild/",
        REST_FINANCE,
        "",
        path=f"/api/v1/periods/{MONTH}/rebuild/",
    ),
    rest(
        "POST",
        "periods/<month>/acknowledgements/",
        "401 404 404 404 422 403 422",  # nothing stands in its way
        {"code": "drift", "reason": REASON},
        path=f"/api/v1/periods/{MONTH}/acknowledgements/",
    ),
    rest(
        "POST",
        "periods/<month>/adjustments/",
        "401 404 404 404 ok 403 ok",
        {"amount": "1.00", "reason": REASON},
        path=f"/api/v1/periods/{MONTH}/adjustments/",
    ),
    rest(
        "DELETE",
        "periods/<month>/adjustments/<pk>/",
        "401 404 404 404 404 403 404",  # the month of the world has none
        "",
        path=f"/api/v1/periods/{MONTH}/adjustments/1/",
    ),
    rest(
        "POST",
        "agent/<name>/hello/",
        "401 403 403 403 403 403 ok",
        {},
        path=f"/api/v1/agent/{AGENT}/hello/",
    ),
    rest(
        "POST",
        "agent/<name>/reports/",
        "401 403 403 403 403 403 ok",
        {"epoch": 1, "reports": [{"sequence": 2, "kind": "node", "node": {"name": AGENT_NODE}}]},
        path=f"/api/v1/agent/{AGENT}/reports/",
    ),
    rest(
        "DELETE",
        "agents/<name>/",
        "401 403 403 403 403 403 ok",
        "",
        path=f"/api/v1/agents/{AGENT}/",
    ),
    rest("POST", "prices/", "401 403 403 403 ok 403 ok", PRICE),
)
