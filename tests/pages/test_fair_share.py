"""Fair share of every tree: the engine's figures on page, in file and over REST."""

import csv
import io

import pytest
from django.urls import reverse

from gpuplatform.common import clock
from queues.access import actor_for
from queues.models import ClusterQueue, Cohort
from scheduling.engine.view import quota_rows
from scheduling.loader import load_snapshot
from scheduling.models import Workload
from scheduling.selectors import folding
from scheduling.selectors.fair_share import fair_cells, fair_trees
from scheduling.selectors.fairness import View
from scheduling.selectors.line import waiting_sums
from scheduling.selectors.quotas import load_board
from tests.pages.conftest import decide
from tests.scheduling.loop import world

pytestmark = pytest.mark.django_db
PAGE = "/fair-share/"


@pytest.fixture
def shared(platform):
    """Datos and IA share by history, Datos with twice the weight; both wait for more."""
    Cohort.objects.update(fairness="history")
    ClusterQueue.objects.filter(name="cq-datos").update(fair_weight=2)
    world.work("ia", "more", gpus=4)
    decide()
    return platform


def rows_of(answer):
    return list(csv.DictReader(io.StringIO(answer.text)))


def test_every_sister_has_its_figures_and_who_stands_first_is_said(shared, ada, signed_in):
    page = signed_in(ada).get(PAGE)
    (tree,) = page.context["trees"]
    (cohort,) = tree.cohorts
    assert (tree.root, tree.mode.value, cohort.level) == ("llm", "history", 1)
    first = cohort.turns.children[0]
    assert (first.name, first.turn) == ("cq-ia", 1)
    assert "cq-ia stands first: what it asks for is its own quota." in page.text
    assert "cq-datos comes after: it would have to borrow." in page.text
    found = cohort.turns.children
    assert {one.name: (one.weight, one.promised, one.held) for one in found} == {
        "cq-datos": (2.0, 8, 12),
        "cq-ia": (1.0, 8, 2),
    }


def test_who_waits_in_vain_is_named_for_its_figure_is_no_contradiction(shared, ada, signed_in):
    Workload.objects.filter(name="later").delete()
    world.work("datos", "huge", pods=99, gpus=4)
    decide()
    page = signed_in(ada).get(PAGE).text
    assert "cq-ia stands first" in page
    assert "Nothing that waits there can start, so it has no turn: cq-datos." in page


def test_file_and_rest_answer_the_same_rows(shared, ada, signed_in):
    browser = signed_in(ada)
    listed = browser.get("/api/v1/fair-share/").json()["results"]
    file = rows_of(browser.get(PAGE, {"format": "csv"}))
    assert [row["name"] for row in file] == [row["name"] for row in listed]
    for told, row in zip(listed, file, strict=True):
        assert row["turn"] == ("" if told["turn"] is None else str(told["turn"]))
        hours = pytest.approx(told["gpu_hours_of_late"], abs=0.1)  # it is read a moment later
        assert float(row["gpu_hours_of_late"]) == hours
        assert float(row["weight"]) == told["weight"]


def test_a_lead_sees_the_own_queue_and_no_name_of_others(shared, lea, signed_in):
    browser = signed_in(lea)
    text = browser.get(PAGE).text
    assert "cq-datos" in text
    assert "cq-ia" not in text
    listed = browser.get("/api/v1/fair-share/").json()["results"]
    assert [row["name"] for row in listed] == ["cq-datos"]


def test_a_tree_that_shares_by_nothing_says_so(platform, ada, signed_in):
    Cohort.objects.update(fairness="none")
    page = signed_in(ada).get(PAGE)
    assert "nothing but priority and age decides" in page.text
    assert rows_of(page.client.get(PAGE, {"format": "csv"})) == []


def test_a_tree_may_be_chosen(shared, ada, signed_in):
    Cohort.objects.create(name="other", fairness="share")
    browser = signed_in(ada)
    assert [t.root for t in browser.get(PAGE, {"tree": "other"}).context["trees"]] == ["other"]
    assert "The filter tree knows no none; known are" in browser.get(PAGE, {"tree": "none"}).text


def test_the_rail_leads_here(ada, signed_in):
    assert f'href="{reverse("fair-share")}"' in signed_in(ada).get("/").text


# ---- what waits is summed by the database, and comes to the same -------------------------------
def test_the_line_that_the_database_sums_is_that_of_the_whole_snapshot(shared, ada):
    world.work("ia", "odd", pods=3, gpus=1, requests={"cpu": 500, "nvidia.com/gpu": 1})
    world.work("datos", "no-queue", queue_name="nowhere")
    decide()
    board, whole = load_board(actor_for(ada)), load_snapshot(clock.now())
    assert {(row.kind, row.name, row.flavor, row.resource): row.pending for row in board.rows} == {
        (row.kind, row.name, row.flavor, row.resource): row.pending for row in quota_rows(whole)
    }
    waiting = [work for work in whole.workloads if work.admission is None]
    assert sum(board.line.workloads.values()) == len(waiting)
    sums = waiting_sums(actor_for(ada))
    assert sums.workloads <= len(waiting)
    pod_sets = [pod_set for work in waiting for pod_set in work.pod_sets]
    asked = sum(one.count * one.requests.get("nvidia.com/gpu", 0) for one in pod_sets)
    assert sums.gpus + sums.never == asked


def test_turns_by_the_first_of_each_line_are_those_of_everybody_who_waits(shared, ada):
    for number in range(8):
        world.work("ia", f"w{number}", gpus=4, priority=number % 3)
        world.work("datos", f"w{number}", gpus=2, priority=number % 2)
    decide()
    board, whole = load_board(actor_for(ada), past=True), load_snapshot(clock.now())
    everybody = [work for work in whole.workloads if work.admission is None]
    few = View(board.snapshot, lambda: board.heads, board.line.workloads)
    all_of_them = View(whole, lambda: everybody, board.line.workloads)
    sisters = few.ledger.children[next(key for key in few.ledger.nodes if key.name == "llm")]

    def places(view):
        return [(c.name, c.turn, c.would_borrow, c.waiting) for c in view.placed(sisters)]

    assert places(few) == places(all_of_them)
    assert len(board.heads) < len(everybody)


def test_trees_cost_no_more_queries_with_more_queues(shared, ada, django_assert_max_num_queries):
    actor = actor_for(ada)
    for number in range(5):
        world.queue(f"team{number}", 1, cohort="llm")
    with django_assert_max_num_queries(30):
        assert len(list(fair_cells(fair_trees(actor)))) == 7


# ---- long trees --------------------------------------------------------------------------------
def test_a_long_tree_shows_its_cohorts_and_the_queues_of_the_one_that_is_opened(
    platform, ada, signed_in, monkeypatch
):
    monkeypatch.setattr(folding, "MOST_ROWS", 3)
    world.queue("alone", 1, cohort="other")
    browser = signed_in(ada)
    rows = browser.get("/queues/").context["rows"]
    assert [(row.name, row.folded, row.has_children) for row in rows] == [
        ("llm", 2, False),
        ("other", 1, False),
    ]
    opened = browser.get("/queues/", {"cohort": "llm"})
    names = [row.name for row in opened.context["rows"]]
    assert names == ["llm", "cq-datos", "lq", "cq-ia", "other"]
    assert [row.folded for row in opened.context["rows"]] == [0, 0, 0, 0, 1]
    assert 'href="?cohort=other"' in opened.text
    file = rows_of(browser.get("/queues/", {"format": "csv"}))
    assert {"cq-datos", "cq-ia", "cq-alone"} <= {row["name"] for row in file}


def test_many_sisters_are_shown_tree_by_tree(shared, ada, signed_in, monkeypatch):
    monkeypatch.setattr(folding, "MOST_SISTERS", 2)
    top = Cohort.objects.get(name="llm")
    Cohort.objects.create(name="inside", parent=top)
    world.queue("deep", 1, cohort="inside")
    Cohort.objects.create(name="second", fairness="share")
    browser = signed_in(ada)
    llm = browser.get(PAGE).context["trees"][0]
    assert (llm.root, len(llm.cohorts), llm.more) == ("llm", 1, 1)
    (whole,) = browser.get(PAGE, {"tree": "llm"}).context["trees"]
    assert [cohort.name for cohort in whole.cohorts] == ["llm", "inside"]
