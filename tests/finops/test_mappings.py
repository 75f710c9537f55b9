"""Mappings through their doors: what may be, who may, what follows of it on the bill."""

from datetime import timedelta
from decimal import Decimal

import pytest
import time_machine
from django.core.files.uploadedfile import SimpleUploadedFile

from finops import billing
from finops.mapping_services import end_mapping, set_mapping, set_mappings
from finops.models import Bill, BillingPeriod, BillLine, Mapping
from finops.selectors.mappings import unmatched, unmatched_total
from finops.specs import MappingSpec
from gpuplatform.common.models import AuditEntry
from gpuplatform.common.problems import Rejected
from queues.models import Team

from . import rows

pytestmark = pytest.mark.django_db
AFTER = rows.JULY + timedelta(days=1)
BODY = {"kind": "namespace", "value": "ns", "team": "ia"}
HALF = rows.JUNE + timedelta(days=15)
COMING = AFTER + timedelta(days=9)


@pytest.fixture
def june():
    with time_machine.travel(AFTER):
        yield rows.june()


def refused(**fields):
    with pytest.raises(Rejected) as caught:
        set_mapping(MappingSpec(**BODY | fields), None)
    return {(problem.path, problem.code) for problem in caught.value.problems}


def bill(name):
    return Bill.objects.get(team__name=name).total if name else Bill.objects.get(team=None).total


# ---- rules --------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({"kind": "pod"}, ("kind", "BAD_VALUE")),
        ({"value": ""}, ("value", "REQUIRED")),
        ({"value": "__unmounted__"}, ("value", "BAD_VALUE")),
        ({"value": "x" * 256}, ("value", "TOO_LONG")),
        ({"value": "a\x00b"}, ("value", "BAD_TEXT")),
        ({"team": ""}, ("team", "REQUIRED")),
        ({"team": "nobody"}, ("team", "TEAM_NOT_FOUND")),
        ({"key": "equipo"}, ("key", "MUST_BE_EMPTY")),
        ({"mode": "direct"}, ("mode", "MUST_BE_EMPTY")),
        ({"kind": "label"}, ("key", "REQUIRED")),
        ({"kind": "litellm_team", "cluster": "b"}, ("cluster", "MUST_BE_EMPTY")),
        ({"kind": "mode", "team": ""}, ("mode", "REQUIRED")),
        ({"kind": "mode", "team": "", "mode": "free"}, ("mode", "BAD_VALUE")),
        ({"kind": "deployment", "team": ""}, ("namespace", "REQUIRED")),
        (
            {"kind": "deployment", "team": "", "namespace": "n", "gpus": Decimal(0)},
            ("gpus", "OUT_OF_RANGE"),
        ),
        (
            {"kind": "deployment", "team": "", "namespace": "n", "gpus": Decimal("0.00001")},
            ("gpus", "TOO_PRECISE"),
        ),
        (
            {"kind": "deployment", "team": "", "namespace": "n", "gpus": Decimal("NaN")},
            ("gpus", "BAD_TYPE"),
        ),
        ({"valid_from": AFTER, "valid_to": HALF}, ("valid_to", "WINDOW_BACKWARDS")),
    ],
)
def test_what_is_no_mapping_is_refused_with_its_field(june, fields, problem):
    assert refused(**fields) == {problem}
    assert not Mapping.objects.exists()


def test_windows_of_one_thing_never_overlap_but_one_may_follow_another(june):
    set_mapping(MappingSpec("namespace", "ns", "ia"), None)
    assert refused(team="datos") == {("valid_from", "MAPPING_OVERLAPS")}
    set_mapping(MappingSpec("namespace", "ns", "datos", valid_from=HALF), None)
    set_mapping(MappingSpec("namespace", "ns", "datos", cluster="b"), None)  # another thing
    found = Mapping.objects.filter(value="ns", cluster="").order_by("valid_from")
    assert [(row.team.name, row.valid_to) for row in found] == [("ia", HALF), ("datos", None)]
    third = {"team": "plataforma", "valid_from": rows.JUNE, "valid_to": HALF}
    assert refused(**third) == {("valid_from", "MAPPING_OVERLAPS")}


def test_one_that_has_not_begun_is_taken_back_and_the_one_before_it_goes_on(june):
    ia = set_mapping(MappingSpec("namespace", "ns", "ia"), None)
    wrong = set_mapping(MappingSpec("namespace", "ns", "datos", valid_from=COMING), None)
    end_mapping(wrong.pk, None, "a typing mistake")
    ia.refresh_from_db()
    assert (Mapping.objects.get(value="ns"), ia.valid_to) == (ia, None)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (
            {"kind": "deployment", "value": "m", "cluster": "a", "namespace": "x"},
            {"kind": "deployment", "value": "m", "cluster": "b", "namespace": "y"},
        ),
        (
            {"kind": "cost_center", "value": "CC-1", "team": "ia"},
            {"kind": "cost_center", "value": "CC-2", "team": "ia"},
        ),
    ],
)
def test_a_model_has_one_deployment_and_a_team_one_cost_centre_at_a_time(june, first, second):
    set_mapping(MappingSpec(**first), None)
    with pytest.raises(Rejected) as caught:
        set_mapping(MappingSpec(**second), None)
    assert [one.code for one in caught.value.problems] == ["MAPPING_OVERLAPS"]


def test_the_same_again_changes_nothing_and_leaves_no_trace(june, ada):
    spec = MappingSpec("litellm_team", "team-1", "ia", valid_from=rows.JUNE)
    first = set_mapping(spec, ada, "asked for by IA")
    assert set_mapping(spec, ada, "asked for by IA") == first
    entry = AuditEntry.objects.get(action="cost_mapping.set")
    assert (entry.team, entry.reason, entry.after["team"]) == ("ia", "asked for by IA", "ia")


def test_nothing_begins_or_ends_in_a_closed_month(june):
    row = set_mapping(MappingSpec("namespace", "ns", "ia"), None)
    BillingPeriod.objects.create(
        name="2026-06", starts_at=rows.JUNE, ends_at=rows.JULY, status="closed"
    )
    assert refused(value="other", valid_from=HALF) == {("valid_from", "PERIOD_CLOSED")}
    with pytest.raises(Rejected) as caught:
        end_mapping(row.pk, None, "no", HALF)
    assert [one.code for one in caught.value.problems] == ["PERIOD_CLOSED"]
    made = set_mapping(MappingSpec("namespace", "other", "ia"), None)
    assert made.valid_from == rows.JULY  # without a start: all that is not closed


def test_of_several_all_hold_or_none(june):
    good, bad = MappingSpec("queue", "q", "ia"), MappingSpec("queue", "r", "nobody")
    with pytest.raises(Rejected) as caught:
        set_mappings([good, bad], None)
    assert [one.path for one in caught.value.problems] == ["mappings[1].team"]
    assert not Mapping.objects.exists()


# ---- what follows -------------------------------------------------------------------------------
def test_a_queue_that_changes_hands_is_billed_to_each_for_its_time(june):
    billing.rebuild_draft("2026-06", now=AFTER)
    assert (bill("ia"), bill("plataforma")) == (Decimal("604.80"), Decimal("352.80"))
    # From hour 360 on, a quarter of a day into ia's 432 h that begin at hour 270.
    set_mapping(MappingSpec("queue", "cq-ia", "plataforma", valid_from=HALF), None)
    assert BillingPeriod.objects.get().rebuilt_at is None  # out of date at once
    billing.rebuild_draft("2026-06", now=AFTER)
    assert (bill("ia"), bill("plataforma")) == (Decimal("126.00"), Decimal("831.60"))


def test_what_nobody_owns_is_named_with_its_money_until_it_is_assigned(june, fin, signed_in):
    rows.use(None, 1, rows.JUNE + timedelta(hours=710), rows.JULY, queue="", namespace="orphan")
    period = billing.rebuild_draft("2026-06", now=AFTER)
    (found,) = unmatched(period)
    assert (found.kind, found.value, found.amount) == ("namespace", "orphan", Decimal("14.00"))
    browser = signed_in(fin)
    page = browser.get("/mappings/").content.decode()
    assert "orphan" in page
    assert "14.00" in page
    click = {"kind": "namespace", "value": "orphan", "cluster": "", "team": "ia"}
    assert browser.post("/mappings/assign/", click).status_code == 302
    period = billing.rebuild_draft("2026-06", now=AFTER)
    assert unmatched(period) == []
    assert bill("ia") == Decimal("618.80")
    assert not BillLine.objects.filter(bucket="unallocated_namespace").exists()


def test_a_team_of_litellm_that_nobody_knows_stands_there_once(june):
    gateway = rows.source("litellm_api")
    rows.tokens(gateway, "t-gone", "gpt", 1000, "2.00")
    set_mapping(MappingSpec("deployment", "gpt", namespace="out"), None)
    set_mapping(MappingSpec("mode", "out", mode="external"), None)
    period = billing.rebuild_draft("2026-06", now=AFTER)
    (found,) = unmatched(period)
    assert (found.kind, found.value, found.amount) == ("litellm_team", "t-gone", Decimal(2))
    assert unmatched_total(period) == Decimal("2.00")


def test_labels_go_before_the_namespace_and_the_queue_before_both(june):
    workload = rows.use(None, 1, rows.JUNE, rows.JULY, queue="", namespace="shared")
    workload.labels = {"equipo": "d"}
    workload.save()
    set_mapping(MappingSpec("namespace", "shared", "ia"), None)
    billing.rebuild_draft("2026-06", now=AFTER)
    assert bill("ia") == Decimal("604.80") + Decimal("1008.00")
    set_mapping(MappingSpec("label", "d", "plataforma", key="equipo"), None)
    billing.rebuild_draft("2026-06", now=AFTER)
    assert bill("plataforma") == Decimal("352.80") + Decimal("1008.00")


# ---- doors --------------------------------------------------------------------------------------
def test_an_export_can_be_taken_in_again_and_changes_nothing(june, fin, signed_in):
    set_mapping(MappingSpec("queue", "=cmd", "ia", valid_from=rows.JUNE), None)
    deployment = {"namespace": "serve", "tokens_per_second": Decimal(2000), "gpus": Decimal(4)}
    set_mapping(MappingSpec("deployment", "llama", valid_from=rows.JUNE, **deployment), None)
    browser = signed_in(fin)
    file = browser.get("/mappings/?format=csv").content
    assert b"'=cmd" in file
    body = {"file": SimpleUploadedFile("m.csv", file), "reason": "again, and why so"}
    assert browser.post("/mappings/import/", body).status_code == 302
    assert Mapping.objects.count() == 2


def test_a_bad_file_is_refused_row_by_row(june, fin, signed_in):
    file = b"kind,value,team,gpus,valid_from\nqueue,a,ia,,yesterday\nqueue,b,nobody,,\n"
    body = {"file": SimpleUploadedFile("m.csv", file), "reason": "no, and why so"}
    response = signed_in(fin).post("/mappings/import/", body)
    assert response.status_code == 422
    assert "Line 2, valid_from: yesterday cannot be read." in response.content.decode()
    assert not Mapping.objects.exists()


@pytest.mark.parametrize(
    ("more", "line"), [("", 2), ("queue,ok,ia,,\n", 2), ('queue,"two\nlines",ia,,\n', 4)]
)
def test_what_breaks_a_rule_is_told_with_its_line_in_the_file(june, fin, signed_in, more, line):
    bad = "queue,b,nobody,,\n"
    text = "kind,value,team,gpus,valid_from\n" + (more + bad if line > 2 else bad + more)
    body = {"file": SimpleUploadedFile("m.csv", text.encode()), "reason": "no, and why so"}
    page = signed_in(fin).post("/mappings/import/", body).content.decode()
    assert f"Line {line}, team: There is no team nobody." in page
    assert not Mapping.objects.exists()


@pytest.mark.parametrize(
    "rows",
    [
        "queue,a,ia,,0001-01-01T00:00:00+14:00",
        "queue,a,ia,,9999-12-31T23:59:59-14:00",
        f"queue,{'a' * 200_000},ia,,",
    ],
)
def test_a_file_that_no_clock_or_column_can_hold_is_refused(june, fin, signed_in, rows):
    file = f"kind,value,team,gpus,valid_from\n{rows}\n".encode()
    body = {"file": SimpleUploadedFile("m.csv", file), "reason": "no, and why so"}
    assert signed_in(fin).post("/mappings/import/", body).status_code == 422
    assert not Mapping.objects.exists()


@pytest.mark.parametrize(
    ("file", "words"),
    [
        (b"kind,value,team,value\nqueue,a,ia,b\n", "the column value stands twice in the head"),
        (b"kind,value,team\nqueue,a,ia,b\n", "line 2 has more cells than the head"),
    ],
)
def test_a_file_of_which_cells_would_be_lost_is_refused(june, fin, signed_in, file, words):
    body = {"file": SimpleUploadedFile("m.csv", file), "reason": "no, and why so"}
    refused = signed_in(fin).post("/mappings/import/", body)
    assert (refused.status_code, words in refused.text) == (422, True)
    assert not Mapping.objects.exists()


def test_rest_sets_ends_and_lists(june, fin, lea, token_of, client):
    bearer = {"Authorization": token_of(fin, "cost:close", "cost:read")}
    body = {"kind": "queue", "value": "cq-datos", "team": "datos"}

    def post(path, document):
        return client.post(path, document, content_type="application/json", headers=bearer)

    made = post("/api/v1/mappings/", body)
    assert (made.status_code, post("/api/v1/mappings/", body).status_code) == (201, 200)
    assert post("/api/v1/mappings/", body | {"tema": "ia"}).status_code == 400
    ended = post(f"/api/v1/mappings/{made.json()['id']}/end/", {"reason": "over, and why so"})
    assert ended.json()["valid_to"] >= AFTER.isoformat()
    (listed,) = client.get("/api/v1/mappings/", headers=bearer).json()
    assert (listed["value"], listed["state"]) == ("cq-datos", "past")
    others = Team.objects.get(name="ia")
    Mapping.objects.create(
        kind="queue", identity="x", value="secret", team=others, valid_from=rows.JUNE
    )
    own = {"Authorization": token_of(lea, "cost:read")}
    assert "secret" not in client.get("/api/v1/mappings/", headers=own).content.decode()
