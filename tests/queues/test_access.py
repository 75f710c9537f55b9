"""Who sees and does what: the whole matrix, by browser and by token."""

from types import SimpleNamespace

import pytest
from django.contrib.auth.models import AnonymousUser
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpResponse
from django.test import RequestFactory
from rest_framework.request import Request

from gpuplatform.common.models import AuditEntry
from queues import access, selectors, services
from queues.access import actor_for, actor_of, visible, visible_audit
from queues.models import Team, User
from queues.specs import CohortSpec, LocalQueueSpec, NamespaceSpec
from tests.queues.promises import queue

pytestmark = pytest.mark.django_db

# May they ...? (columns), by role. ``ia`` and ``datos`` are teams; lea leads datos, ian is in ia.
QUESTIONS = {
    "sees everything": lambda a, t: a.sees_everything,
    "edits quota": lambda a, t: a.may_edit_quota,
    "operates": lambda a, t: a.may_operate,
    "sets prices": lambda a, t: a.may_price,
    "reads the audit trail": lambda a, t: a.may_see_audit,
    "sees datos": lambda a, t: a.sees_team(t.datos),
    "sees ia": lambda a, t: a.sees_team(t.ia),
    "sees what is nobody's": lambda a, t: a.sees_team(None),
    "submits for datos": lambda a, t: a.may_submit(t.datos),
    "submits for ia": lambda a, t: a.may_submit(t.ia),
    "submits for nobody": lambda a, t: a.may_submit(None),
    "sees datos' bill": lambda a, t: a.may_see_bill(t.datos),
    "sees ia's bill": lambda a, t: a.may_see_bill(t.ia),
    "sees all bills": lambda a, t: a.may_see_bills,
}
READS_ALL = {
    "sees everything",
    "sees datos",
    "sees ia",
    "sees what is nobody's",
    "sees datos' bill",
    "sees ia's bill",
    "sees all bills",
}
MATRIX = {
    "ada": set(QUESTIONS),
    "lea": {"sees datos", "submits for datos", "sees datos' bill"},
    "ian": {"sees ia", "submits for ia"},
    "fin": READS_ALL | {"sets prices"},
    "aud": READS_ALL | {"reads the audit trail"},
    "eve": set(),
}


@pytest.fixture
def teams(datos, ia):
    return SimpleNamespace(datos=datos.pk, ia=ia.pk)


def yes(actor, teams):
    return {question for question, answer in QUESTIONS.items() if answer(actor, teams)}


def by_token(user, *scopes, team=None):
    token, _ = services.issue_token(user, "t", list(scopes), actor=None, team=team)
    return actor_for(user, token)


@pytest.mark.parametrize("name", MATRIX)
def test_what_each_of_the_cast_may(cast, teams, name):
    assert yes(actor_for(getattr(cast, name)), teams) == MATRIX[name]


def test_strangers_and_the_inactive_may_nothing(ada, teams):
    ada.is_active = False
    for user in (AnonymousUser(), ada):
        assert yes(actor_for(user), teams) == set()


def test_a_superuser_of_django_is_an_admin(teams):
    root = User.objects.create_superuser("root")
    assert yes(actor_for(root), teams) == set(QUESTIONS)


@pytest.mark.parametrize(
    ("scopes", "lost"),
    [
        (["admin"], set()),
        (
            ["read"],
            set(QUESTIONS)
            - (READS_ALL - {"sees datos' bill", "sees ia's bill", "sees all bills"}),
        ),
        (["read", "cost:read"], set(QUESTIONS) - READS_ALL),
    ],
)
def test_scopes_narrow_what_an_admins_token_may(ada, teams, scopes, lost):
    assert yes(by_token(ada, *scopes), teams) == set(QUESTIONS) - lost


def test_a_submitters_token_submits_for_the_owners_teams_only(lea, teams):
    actor = by_token(lea, "read", "workloads:submit")
    assert yes(actor, teams) == {"sees datos", "submits for datos"}
    assert not by_token(lea, "read").may_submit(teams.datos)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("ada", {"sees datos", "submits for datos", "sees datos' bill"}),
        ("lea", {"sees datos", "submits for datos", "sees datos' bill"}),
        ("fin", {"sees datos"}),
        ("ian", set()),
    ],
)
def test_a_token_for_one_team_reaches_no_further(cast, datos, teams, name, expected):
    services.set_membership(Team.objects.get(name="ia"), cast.lea, "lead", None)
    actor = by_token(getattr(cast, name), "admin", team=datos)
    assert yes(actor, teams) == expected


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("ada", ["datos", "ia"]),
        ("fin", ["datos", "ia"]),
        ("aud", ["datos", "ia"]),
        ("lea", ["datos"]),
        ("ian", ["ia"]),
        ("eve", []),
    ],
)
def test_the_row_filter(cast, name, expected):
    actor = actor_for(getattr(cast, name))
    assert [team.name for team in visible(Team.objects.all(), actor, "pk")] == expected


# ---- selectors -------------------------------------------------------------------------------
@pytest.fixture
def promises(datos, ia):
    services.save_cohort(CohortSpec("llm-platform", "org"), actor=None)
    services.save_cluster_queue(queue(team="datos"), actor=None)
    services.save_cluster_queue(queue(name="cq-ia", team="ia", cohort="other"), actor=None)
    services.save_cluster_queue(queue(name="cq-nobody", cohort="third"), actor=None)
    services.save_namespace(NamespaceSpec("ns-datos", team="datos"), actor=None)
    services.save_local_queue(LocalQueueSpec("ns-datos", "lq-own", "cq-ia"), actor=None)
    services.save_local_queue(LocalQueueSpec("ns-x", "lq-datos", "cq-datos"), actor=None)
    services.save_local_queue(LocalQueueSpec("ns-x", "lq-ia", "cq-ia"), actor=None)


def names(rows):
    return {row.name for row in rows}


def test_a_lead_sees_own_promises_only(promises, lea):
    actor = actor_for(lea)
    assert names(selectors.visible_teams(actor)) == {"datos"}
    assert names(selectors.visible_cluster_queues(actor)) == {"cq-datos"}
    assert names(selectors.visible_cohorts(actor)) == {"llm-platform", "org"}
    assert names(selectors.visible_namespaces(actor)) == {"ns-datos"}
    assert names(selectors.visible_local_queues(actor)) == {"lq-own", "lq-datos"}


def test_an_auditor_sees_all_promises(promises, aud):
    actor = actor_for(aud)
    assert names(selectors.visible_cluster_queues(actor)) == {"cq-datos", "cq-ia", "cq-nobody"}
    assert names(selectors.visible_cohorts(actor)) == {"llm-platform", "org", "other", "third"}
    assert len(selectors.visible_local_queues(actor)) == 3
    assert len(selectors.visible_namespaces(actor)) == 2


def test_nobody_sees_nothing_but_the_kinds_of_nodes(promises, eve):
    actor = actor_for(eve)
    for rows in (
        selectors.visible_teams,
        selectors.visible_cluster_queues,
        selectors.visible_cohorts,
        selectors.visible_namespaces,
        selectors.visible_local_queues,
    ):
        assert not rows(actor)


def test_an_admin_sees_everybodys_tokens_and_others_their_own(ada, lea):
    services.issue_token(lea, "hers", ["read"], actor=None)
    services.issue_token(ada, "his", ["read"], actor=None)
    assert names(selectors.tokens_of(actor_for(lea))) == {"hers"}
    assert names(selectors.tokens_of(actor_for(ada))) == {"hers", "his"}


def test_the_audit_trail_is_read_by_leads_for_their_teams(promises, cast):
    def seen(user):
        return set(visible_audit(AuditEntry.objects.all(), actor_for(user)).values_list("subject"))

    everything = set(AuditEntry.objects.values_list("subject"))
    assert seen(cast.ada) == seen(cast.aud) == everything
    assert seen(cast.lea) == {("cq-datos",), ("ns-datos",), ("ns-x/lq-datos",)}
    assert seen(cast.ian) == seen(cast.fin) == seen(cast.eve) == set()


# ---- adapters --------------------------------------------------------------------------------
def request_of(user):
    request = RequestFactory().get("/queues/?page=2")
    request.user = user
    return request


@access.require(lambda actor: actor.may_edit_quota)
def editing(request, name):
    return HttpResponse(name)


@access.require()
def reading(request):
    return HttpResponse("hello")


def test_a_page_sends_strangers_to_the_login_and_back(settings):
    settings.LOGIN_URL = "/login/"
    response = reading(request_of(AnonymousUser()))
    assert response.status_code == 302
    assert response["Location"].endswith("?next=/queues/%3Fpage%3D2")


def test_a_page_lets_in_who_may_and_refuses_who_may_not(ada, eve):
    assert reading(request_of(eve)).content == b"hello"
    assert editing(request_of(ada), name="cq").content == b"cq"
    with pytest.raises(PermissionDenied):
        editing(request_of(eve), name="cq")


def test_demands():
    access.demand(True)
    access.demand_visible(True)
    with pytest.raises(PermissionDenied):
        access.demand(False)
    with pytest.raises(Http404):
        access.demand_visible(False)


def test_who_asks_is_read_once_a_request(ada, eve, django_assert_num_queries):
    request = request_of(ada)
    with django_assert_num_queries(1):
        first = actor_of(request)
        assert actor_of(request) is first
    request.user = eve
    assert actor_of(request).user == eve


def test_a_token_does_not_get_the_rights_of_a_session_on_the_same_request(ada):
    request = request_of(ada)
    assert actor_of(request).may_edit_quota
    token, _ = services.issue_token(ada, "t", ["read"], actor=None)
    rest = Request(request)
    rest.user, rest.auth = ada, token
    assert not actor_of(rest).may_edit_quota
