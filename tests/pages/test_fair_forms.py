"""Fairness, order and safety in the forms: what is typed is kept, what cannot be is refused."""

from decimal import Decimal

import pytest
from django.urls import reverse

from queues.descriptions import describe_cluster_queue, describe_cohort
from queues.models import ClusterQueue, Cohort, LocalQueue, Namespace
from queues.services import save_cohort
from queues.specs import CohortSpec, FungibilitySpec
from tests.pages.test_editors import REASON, posted

pytestmark = pytest.mark.django_db
QUEUE, COHORT = ["cq-datos"], ["llm"]


@pytest.fixture
def change(platform, ada, signed_in):
    browser = signed_in(ada)

    def send(page, name, **typed):
        path = reverse(page, args=name)
        return browser.post(path, posted(browser.get(path), **{"reason": REASON} | typed))

    return send


def test_weight_order_search_and_safety_of_a_queue_are_kept(change):
    typed = {"fair_weight": "2.5", "minimum_runtime_s": "3600", "yields_to_own": "on"}
    typed |= {"admission_order": "usage", "priority_first": "on"}
    typed |= {"when_can_borrow": "TryNextFlavor", "flavor_preference": "PreemptionOverBorrowing"}
    assert change("queue-edit", QUEUE, **typed).status_code == 302
    spec = describe_cluster_queue(ClusterQueue.objects.get(name="cq-datos"))
    assert (spec.fair_weight, spec.minimum_runtime_s, spec.yields_to_own) == (
        Decimal("2.5"),
        3600,
        True,
    )
    assert (spec.admission_order, spec.priority_first) == ("usage", True)
    assert spec.fungibility == FungibilitySpec(
        "TryNextFlavor", "TryNextFlavor", "PreemptionOverBorrowing"
    )


@pytest.mark.parametrize(
    ("field", "typed"),
    [
        ("fair_weight", "-1"),
        ("fair_weight", "heavy"),
        ("fair_weight", "NaN"),
        ("minimum_runtime_s", "-1"),
        ("minimum_runtime_s", "99999999999"),
        ("admission_order", "luck"),
        ("flavor_preference", "PreemptionOverBorrowing"),
    ],
)
def test_what_a_queue_cannot_be_is_said_at_its_field(change, field, typed):
    answer = change("queue-edit", QUEUE, **{field: typed})
    assert answer.status_code == 422
    assert answer.context["form"].errors.keys() == {field}


def test_a_new_cohort_is_offered_fairness_by_history(platform, ada, signed_in):
    browser, path = signed_in(ada), reverse("cohort-new")
    page = browser.get(path)
    assert page.context["form"]["fairness"].value() == "history"
    browser.post(path, posted(page, name="fresh"))
    assert Cohort.objects.get(name="fresh").fairness == "history"


def test_a_new_cohort_inside_another_leaves_fairness_to_the_top(platform, ada, signed_in):
    browser, path = signed_in(ada), reverse("cohort-new")
    browser.post(path, posted(browser.get(path), name="inner", parent="llm", fair_weight="2"))
    spec = describe_cohort(Cohort.objects.get(name="inner"))
    assert (spec.parent, spec.fairness, spec.fair_weight) == ("llm", "none", 2)


def test_a_cohort_that_moves_inside_another_gives_its_fairness_up(change):
    save_cohort(CohortSpec("top", fairness="share"), actor=None)
    assert change("cohort-edit", COHORT, fairness="history").status_code == 302
    assert Cohort.objects.get(name="llm").fairness == "history"
    assert change("cohort-edit", COHORT, parent="top").status_code == 302
    assert Cohort.objects.get(name="llm").fairness == "none"


def test_a_fairness_chosen_inside_another_cohort_is_refused_and_not_thrown_away(change):
    save_cohort(CohortSpec("top", fairness="share"), actor=None)
    change("cohort-edit", COHORT, parent="top")
    answer = change("cohort-edit", COHORT, fairness="share")
    assert answer.status_code == 422
    assert answer.context["form"].errors.keys() == {"fairness"}


@pytest.mark.parametrize("weight", ["3", "0", ""])
def test_a_local_queue_has_a_weight(platform, ada, signed_in, weight):
    Namespace.objects.filter(name="ns-datos").update(team=platform.datos.team)
    door = {"namespace": "ns-datos", "name": "lq-two", "cluster_queue": "cq-datos"}
    path = reverse("team-local-queue", args=["datos"])
    signed_in(ada).post(path, door | {"fair_weight": weight})
    assert LocalQueue.objects.get(name="lq-two").fair_weight == Decimal(weight or 1)


def test_a_weight_says_which_part_of_all_it_is(platform, ada, signed_in):
    ClusterQueue.objects.filter(name="cq-ia").update(fair_weight=3)
    save_cohort(CohortSpec("inner", "llm", fair_weight=Decimal(4)), actor=None)
    browser = signed_in(ada)
    queue = browser.get(reverse("queue-edit", args=QUEUE)).text
    assert "Now 1 of 8 in llm: 12 %." in queue
    inner = browser.get(reverse("cohort-edit", args=["inner"])).text
    assert "Now 4 of 8 in llm: 50 %." in inner
    assert "Now " not in browser.get(reverse("cohort-edit", args=COHORT)).text.split("<main")[1]


def test_weights_stand_in_the_file_of_queues(platform, ada, signed_in):
    ClusterQueue.objects.filter(name="cq-ia").update(fair_weight=3)
    rows = signed_in(ada).get(reverse("queues"), {"format": "json"}).json()
    found = {row["name"]: row["fair_weight"] for row in rows if row["kind"] == "queue"}
    assert found == {"cq-datos": 1.0, "cq-ia": 3.0}
