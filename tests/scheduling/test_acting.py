"""Many workloads at once: each by the service of a single one, each with its own answer."""

import pytest

from gpuplatform.common.models import AuditEntry
from scheduling.acting import MOST, Act, act_on
from scheduling.models import Workload
from tests.scheduling.loop import world

pytestmark = pytest.mark.django_db
PATH = "/workloads/act/"


@pytest.fixture
def works(datos, ia):
    """Three of Datos that wait, one that has ended, and one of IA."""
    rows = [world.work("datos", name) for name in ("one", "two", "three", "over")]
    Workload.objects.filter(pk=rows[3].pk).update(status="finished", outcome="succeeded")
    world.work("ia", "secret")
    return {row.name: row for row in Workload.objects.all()}


def uids(works, *names):
    return [str(works[name].uid) for name in names]


def states():
    return dict(Workload.objects.values_list("name", "status"))


def test_one_that_cannot_be_changed_leaves_the_others_alone(works, ada):
    told = act_on([works["one"], works["over"]], Act.CANCEL, actor=ada, reason="No longer needed")
    assert [(one.done, one.is_refused) for one in told] == [(True, False), (False, True)]
    assert "ended already" in told[1].words
    assert states()["one"] == "finished"
    entry = AuditEntry.objects.get(action="workload.cancelled")
    assert (entry.subject, entry.reason) == ("ns-datos/one", "No longer needed")


@pytest.mark.parametrize("act", list(Act))
def test_what_is_told_before_is_what_happens_then_and_keeps_nothing(works, ada, act):
    Workload.objects.filter(name="two").update(status="inactive")
    rows = list(Workload.objects.order_by("name"))
    before = states()
    foretold = act_on(rows, act, actor=ada, keep=False)
    assert states() == before
    assert not AuditEntry.objects.exists()
    done = act_on(rows, act, actor=ada)
    answers = [
        [(one.workload.name, one.done, one.words) for one in told] for told in (foretold, done)
    ]
    assert answers[0] == answers[1]
    assert {name for name, is_done, _words in answers[1] if is_done} == {
        name for name, state in states().items() if state != before[name]
    }


def test_what_is_so_already_is_no_change(works, ada):
    [told] = act_on([works["one"]], Act.REACTIVATE, actor=ada)
    assert (told.done, told.is_refused) == (False, False)


# ---- the page ----------------------------------------------------------------------------------
def test_a_lead_is_told_first_and_confirms_then(works, lea, signed_in):
    browser = signed_in(lea)
    chosen = {"act": "deactivate", "uid": uids(works, "one", "two", "over")}
    page = browser.post(PATH, chosen)
    assert (len(page.context["done"]), len(page.context["refused"])) == (2, 1)
    assert states()["one"] == "pending"
    page = browser.post(PATH, chosen | {"confirm": "1", "reason": "The data are wrong"})
    assert "2 workloads done, 1 cannot be" in " ".join(page.text.split())
    assert {n for n, state in states().items() if state == "inactive"} == {"one", "two"}
    entries = AuditEntry.objects.filter(action="workload.deactivated")
    assert set(entries.values_list("reason", "request_id")) == {
        ("The data are wrong", page["X-Request-ID"])
    }


def test_all_that_the_filter_keeps_are_those_that_have_not_ended(works, lea, signed_in):
    browser = signed_in(lea)
    for text, names in (("ns-datos", {"one", "two", "three"}), ("thr", {"three"})):
        page = browser.post(f"{PATH}?q={text}", {"act": "cancel", "all": "1"})
        assert {one.workload.name for one in page.context["answers"]} == names


@pytest.mark.parametrize("text", ["state=impossible", "team=nope", "nonsense=1"])
def test_a_filter_that_is_not_understood_chooses_nobody(works, ada, signed_in, text):
    before = states()
    body = {"act": "cancel", "all": "1", "confirm": "1", "reason": "All of them, please"}
    assert signed_in(ada).post(f"{PATH}?{text}", body).status_code == 422
    assert states() == before


def test_too_many_none_or_nonsense_is_refused_and_nothing_done(works, ada, signed_in):
    browser, before = signed_in(ada), states()
    for index in range(MOST):
        world.work("datos", f"more-{index}")
    for body, words in (
        ({"act": "cancel"}, "Select at least one workload"),
        ({"act": "explode", "uid": uids(works, "one")}, "Choose what is to be done"),
        ({"act": "cancel", "all": "1", "confirm": "1"}, f"At most {MOST} workloads"),
    ):
        page = browser.post(PATH, body)
        assert (page.status_code, words in page.text) == (422, True)
    assert browser.post(PATH, {"act": "cancel", "uid": "nonsense"}).status_code == 404
    assert {name: states()[name] for name in before} == before


def test_nobody_acts_on_what_is_not_theirs(works, ian, aud, signed_in):
    chosen = {"act": "cancel", "uid": uids(works, "one"), "confirm": "1"}
    assert signed_in(ian).post(PATH, chosen).status_code == 404
    assert signed_in(aud).post(PATH, chosen).status_code == 403
    mixed = chosen | {"uid": uids(works, "one", "secret")}
    page = signed_in(ian).post(PATH, mixed)
    assert [one.workload.name for one in page.context["answers"]] == ["secret"]
    assert states()["one"] == "pending"


def test_boxes_stand_only_where_the_reader_may_act(works, lea, aud, signed_in):
    text = signed_in(lea).get("/workloads/").text
    assert {name for name in works if f'aria-label="Select {name}"' in text} == {
        "one",
        "two",
        "three",
    }
    text = signed_in(aud).get("/workloads/").text
    assert 'name="uid"' not in text
    assert PATH not in text
