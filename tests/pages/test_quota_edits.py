"""Amounts of many queues at once: as a table and as a file, checked, guarded, all or nothing."""

import csv
import io

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.urls import reverse

from gpuplatform.common.models import AuditEntry
from queues.descriptions import describe_cluster_queue
from queues.models import ClusterQueue, FlavorQuota
from queues.services.queues import save_cluster_queue
from tests.scheduling.loop.world import FLAVOR

pytestmark = pytest.mark.django_db
GPU = "nvidia.com/gpu"
REASON = "Agreed in the June review"
PAGE = "/quotas/"


def sent(nominals, *, seen=None, version=1, **more):
    """Return what a browser sends: yours, what stood when the form was made, and versions."""
    data = {"reason": REASON} | more
    for queue, text in nominals.items():
        name = f"{queue}|{FLAVOR}|{GPU}"
        data |= {
            f"{name}-nominal": text,
            f"{name}-borrowing_limit": "4" if queue == "cq-datos" else "",
            f"{name}-lending_limit": "",
            f"{name}-seen": (seen or {}).get(queue, "8/4/" if queue == "cq-datos" else "8//"),
            f"version|{queue}": str(version),
        }
    return data


def nominals():
    cells = FlavorQuota.objects.order_by("cluster_queue__name")
    return dict(cells.values_list("cluster_queue__name", "nominal"))


@pytest.fixture
def browser(platform, ada, signed_in):
    return signed_in(ada)


def test_two_queues_are_changed_in_one_go_with_one_request_id(browser):
    answer = browser.post(PAGE, sent({"cq-datos": "6", "cq-ia": "10"}, confirm="2"))
    assert (answer.status_code, answer["Location"]) == (302, PAGE)
    assert nominals() == {"cq-datos": 6, "cq-ia": 10}
    entries = AuditEntry.objects.filter(action="cluster_queue.updated")
    assert [entry.reason for entry in entries] == [REASON, REASON]
    assert len({entry.request_id for entry in entries}) == 1


def test_every_amount_has_a_label_and_nothing_else_does(browser):
    page = browser.get(PAGE).text
    assert f'aria-label="cq-ia {FLAVOR}: Nominal"' in page
    assert ": None" not in page


# ---- what costs others work is confirmed --------------------------------------------------------
@pytest.mark.parametrize(
    ("wanted", "typed", "names"),
    [
        ({"cq-ia": "1"}, "cq-ia", "type cq-ia to apply it"),
        ({"cq-datos": "9", "cq-ia": "1"}, "2", "type 2 to apply it"),
    ],
)
def test_a_nominal_below_what_is_held_is_confirmed_by_name_or_number(
    browser, wanted, typed, names
):
    for wrong in ("", "cq-other"):
        answer = browser.post(PAGE, sent(wanted, confirm=wrong))
        assert (answer.status_code, nominals()) == (422, {"cq-datos": 8, "cq-ia": 8})
        assert names in answer.text
        assert "EDIT_BELOW_USE" in answer.text
        assert f'value="{wanted["cq-ia"]}"' in answer.text  # nothing that was typed is lost
    assert browser.post(PAGE, sent(wanted, confirm=f" {typed} ")).status_code == 302
    assert nominals()["cq-ia"] == 1


# ---- one amount for the selected rows ----------------------------------------------------------
def filled(browser, amount, *picked, column="nominal", **nominals_typed):
    """Return the page after an amount was put into rows, and what their inputs say then."""
    typed = {"cq-datos": "8", "cq-ia": "8"} | nominals_typed
    rows = [f"{queue}|{FLAVOR}|{GPU}" for queue in picked]
    more = {"fill": "1", "fill-column": column, "fill-amount": amount, "pick": rows}
    page = browser.post(PAGE, sent(typed) | more)
    shown = {form.cell.queue: form[column].value() for form in page.context["cells"].forms}
    return page, shown


@pytest.mark.parametrize(
    ("amount", "says"), [("12", "12"), ("+4", "12"), ("-3", "5"), ("50%", "4"), ("33%", "2")]
)
def test_an_amount_is_put_into_the_selected_rows_and_nothing_is_saved(browser, amount, says):
    page, shown = filled(browser, amount, "cq-ia")
    assert (page.status_code, shown) == (200, {"cq-datos": "8", "cq-ia": says})
    assert nominals() == {"cq-datos": 8, "cq-ia": 8}
    answer = browser.post(PAGE, sent(shown))
    assert answer.status_code == 302
    assert nominals() == {"cq-datos": 8, "cq-ia": int(says)}


def test_what_was_typed_before_counts_and_stays(browser):
    _page, shown = filled(browser, "+2", "cq-datos", **{"cq-datos": "5", "cq-ia": "7"})
    assert shown == {"cq-datos": "7", "cq-ia": "7"}


def test_a_limit_is_taken_off_many_rows_at_once(browser):
    _page, shown = filled(browser, "", "cq-datos", "cq-ia", column="borrowing_limit")
    assert shown == {"cq-datos": "", "cq-ia": ""}


@pytest.mark.parametrize(
    ("amount", "picked", "column", "words"),
    [
        ("4", [], "nominal", "Select at least one row"),
        ("", ["cq-ia"], "nominal", "say how much"),
        ("-9", ["cq-ia"], "nominal", "less than nothing"),
        ("some", ["cq-ia"], "nominal", "some is not an amount"),
        ("+1", ["cq-datos", "cq-ia"], "borrowing_limit", "cq-ia h100-sxm: it has no limit"),
    ],
)
def test_an_amount_that_cannot_be_put_there_says_so_and_loses_nothing(
    browser, amount, picked, column, words
):
    page, shown = filled(browser, amount, *picked, column=column, **{"cq-ia": "7"})
    assert page.status_code == 422
    assert words in " ".join(line["message"] for line in page.context["problems"])
    assert 'value="7"' in page.text
    assert shown["cq-datos"] == ("8" if column == "nominal" else "4")


def test_a_check_tells_what_it_means_for_all_of_them_and_saves_nothing(browser):
    answer = browser.post(PAGE, sent({"cq-datos": "4", "cq-ia": "12"}, check="1", reason=""))
    assert answer.status_code == 200
    assert nominals() == {"cq-datos": 8, "cq-ia": 8}
    codes = {finding.code for finding in answer.context["findings"]}
    assert codes & {"EDIT_EVICTS", "EDIT_KEEPS_WAITING", "EDIT_GIVES_LOAN", "EDIT_STARTS"}
    assert 'value="12"' in answer.text  # what was typed stays


@pytest.mark.parametrize(
    ("data", "words"),
    [
        ({"cq-datos": "6.5"}, "only comes in whole pieces"),
        ({"cq-datos": "many"}, "is not an amount"),
        ({"cq-datos": "-1"}, "is not an amount"),
        ({"cq-datos": "8"}, "Nothing differs"),
        ({"cq-datos": "6", "cq-ia": ""}, "This field is required"),
    ],
)
def test_what_is_wrong_is_told_at_its_cell_and_nothing_is_saved(browser, data, words):
    answer = browser.post(PAGE, sent(data))
    assert answer.status_code == 422
    assert words in answer.text
    assert nominals() == {"cq-datos": 8, "cq-ia": 8}


def test_a_rule_that_one_queue_breaks_keeps_all_as_they_were(browser):
    data = sent({"cq-datos": "6", "cq-ia": "10"})
    data[f"cq-ia|{FLAVOR}|{GPU}-lending_limit"] = "11"
    answer = browser.post(PAGE, data)
    assert answer.status_code == 422
    (problem,) = answer.context["problems"]
    assert problem["code"] == "lending_above_nominal"
    assert problem["field"] == f"id_cq-ia|{FLAVOR}|{GPU}-lending_limit"
    assert nominals() == {"cq-datos": 8, "cq-ia": 8}


def test_a_reason_is_needed_to_save(browser):
    assert browser.post(PAGE, sent({"cq-datos": "6"}, reason="short")).status_code == 422
    assert nominals()["cq-datos"] == 8


def test_two_editors_collide_and_nothing_is_lost(browser):
    row = ClusterQueue.objects.get(name="cq-ia")
    FlavorQuota.objects.filter(cluster_queue=row).update(nominal=9)
    ClusterQueue.objects.filter(pk=row.pk).update(version=2)
    answer = browser.post(PAGE, sent({"cq-datos": "6", "cq-ia": "10"}))
    assert answer.status_code == 412
    clashes = {row.label: row for row in answer.context["conflict"]["clashes"]}
    ours = clashes[f"cq-ia {FLAVOR}"]
    assert (ours.seen.nominal, ours.theirs.nominal, ours.yours.nominal) == (8, 9, 10)
    assert ours.is_clash
    assert not clashes[f"cq-datos {FLAVOR}"].is_clash
    assert nominals() == {"cq-datos": 8, "cq-ia": 9}
    as_shown = again(answer, confirm="2")
    assert browser.post(PAGE, as_shown).status_code == 302
    assert nominals() == {"cq-datos": 6, "cq-ia": 10}


def test_what_only_they_changed_is_taken_from_them(browser):
    save_cluster_queue(describe_cluster_queue(ClusterQueue.objects.get(name="cq-ia")), actor=None)
    FlavorQuota.objects.filter(cluster_queue__name="cq-ia").update(nominal=9)
    ClusterQueue.objects.update(version=2)
    answer = browser.post(PAGE, sent({"cq-datos": "6", "cq-ia": "8"}))
    assert answer.status_code == 412
    assert browser.post(PAGE, again(answer, confirm="cq-datos")).status_code == 302
    assert nominals() == {"cq-datos": 6, "cq-ia": 9}


def again(answer, **more):
    """Return what the shown form would send."""
    data = {"reason": REASON} | more
    for form in answer.context["cells"].forms:
        data |= {form[name].html_name: form[name].value() or "" for name in form.fields}
    versions = answer.context["versions"].items()
    return data | {f"version|{name}": str(version) for name, version in versions}


# ---- files -------------------------------------------------------------------------------------
def download(browser):
    text = browser.get(PAGE, {"format": "csv"}).text
    return list(csv.DictReader(io.StringIO(text)))


def upload(browser, rows):
    text = io.StringIO()
    writer = csv.DictWriter(text, list(rows[0]))
    writer.writeheader()
    writer.writerows(rows)
    file = SimpleUploadedFile("quotas.csv", text.getvalue().encode())
    return browser.post(PAGE, {"upload": "1", "file": file})


def test_a_file_that_comes_back_as_it_went_out_changes_nothing(browser):
    rows = download(browser)
    assert [(row["queue"], row["nominal"]) for row in rows] == [("cq-datos", "8"), ("cq-ia", "8")]
    answer = upload(browser, rows)
    assert (answer.status_code, answer["Location"]) == (302, PAGE)


def test_resources_that_are_divided_survive_the_round_trip(browser):
    queue = ClusterQueue.objects.get(name="cq-ia")
    for resource, amount in (("cpu", 1_500), ("memory", 3 * 2**30)):
        FlavorQuota.objects.create(
            cluster_queue=queue, flavor=FLAVOR, resource=resource, nominal=amount
        )
    assert upload(browser, download(browser)).status_code == 302


def test_what_differs_in_a_file_is_shown_checked_and_then_saved(browser):
    rows = download(browser)
    rows[1]["nominal"] = "12"
    shown = upload(browser, rows)
    assert shown.status_code == 200
    assert [form.cell.queue for form in shown.context["cells"].forms] == ["cq-ia"]
    assert nominals()["cq-ia"] == 8  # not before somebody has looked
    assert browser.post(PAGE, again(shown)).status_code == 302
    assert nominals()["cq-ia"] == 12


def test_a_file_from_before_somebody_elses_edit_shows_both_sides(browser):
    rows = download(browser)
    rows[1]["nominal"] = "12"
    FlavorQuota.objects.filter(cluster_queue__name="cq-ia").update(nominal=9)
    ClusterQueue.objects.filter(name="cq-ia").update(version=2)
    shown = upload(browser, rows)
    assert shown.status_code == 412
    (row,) = shown.context["conflict"]["clashes"]
    assert (row.theirs.nominal, row.yours.nominal) == (9, 12)
    assert browser.post(PAGE, again(shown)).status_code == 302
    assert nominals()["cq-ia"] == 12


@pytest.mark.parametrize(
    ("text", "code", "path"),
    [
        (b"\xff\xfe", "BAD_TEXT", "file"),
        (b"queue,nominal\ncq-ia,3\n", "BAD_CSV", "file"),
        (b"\n", "BAD_CSV", "file"),
        (b"queue;flavor;resource;nominal\ncq-ia;f;g;3\n", "BAD_CSV", "file"),
        (b"", "required", "file"),
        ("cq-ia,{f},{g},many,,", "BAD_QUANTITY", "line 2.nominal"),
        ("cq-ia,{f},{g},,,", "REQUIRED", "line 2.nominal"),
        ("cq-ia,{f},{g},9", "REQUIRED", "line 2"),
        ("cq-ia,{f},{g},9,", "REQUIRED", "line 2"),
        ("\n\ncq-ia,{f},{g},many,,", "BAD_QUANTITY", "line 4.nominal"),
        ("cq-none,{f},{g},1,,", "QUOTA_NO_QUEUE", "line 2.queue"),
        ("cq-ia,a100,{g},1,,", "QUOTA_NO_CELL", "line 2.flavor"),
        ("cq-ia,{f},{g},1,,\ncq-ia,{f},{g},2,,", "QUOTA_TWICE", "line 3"),
    ],
)
def test_a_file_that_cannot_be_taken_says_where_and_changes_nothing(browser, text, code, path):
    if isinstance(text, str):
        head = "queue,flavor,resource,nominal,borrowing_limit,lending_limit\n"
        text = (head + text.format(f=FLAVOR, g=GPU) + "\n").encode()
    answer = browser.post(PAGE, {"upload": "1", "file": SimpleUploadedFile("q.csv", text)})
    assert answer.status_code == 422
    assert [(p["code"], p["path"]) for p in answer.context["problems"]] == [(code, path)]
    assert nominals() == {"cq-datos": 8, "cq-ia": 8}
    assert len(answer.context["cells"].forms) == 2, "the table stands as before"


@pytest.mark.parametrize("version", ["abc", "1.0", "-1", "\u0661", "9" * 30])
def test_a_version_that_is_none_is_refused_rather_than_taken_as_the_current_one(browser, version):
    rows = download(browser)
    rows[1] |= {"nominal": "12", "version": version}
    answer = upload(browser, rows)
    assert answer.status_code == 422
    (problem,) = answer.context["problems"]
    assert problem["path"] == "line 3.version"


def test_only_who_edits_promises_comes_here(lea, signed_in, platform):
    assert signed_in(lea).get(reverse("quotas-edit")).status_code == 403
