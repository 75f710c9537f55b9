"""Whatever shows money: columns of a row add up to its total, bills to what a month cost."""

import csv
import io
import re
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from html import unescape

import pytest
import time_machine

from finops import billing, tasks, words
from finops.allocation.money import round_half_up
from finops.mapping_services import set_mapping
from finops.models import BillingPeriod, Source
from finops.selectors.figures import Figures
from finops.specs import MappingSpec

from . import rows

pytestmark = pytest.mark.django_db
AFTER = rows.JULY + timedelta(days=2)
MONTH = "/bills/2026-06/"


@pytest.fixture
def june():
    """The articles' month with storage that no pod mounts, and tokens of somebody else's model."""
    with time_machine.travel(AFTER, tick=False):
        rows.june()
        rows.cost(rows.source("opencost", cluster="gpu-onprem"), 3, "__unmounted__", pv_cost=14.4)
        rows.tokens(rows.source("litellm_api"), "t-ia", "gpt", 1_000_000, "12.34")
        set_mapping(MappingSpec("litellm_team", "t-ia", "ia"), None)
        set_mapping(MappingSpec("deployment", "gpt", namespace="out"), None)
        set_mapping(MappingSpec("mode", "out", mode="external"), None)
        billing.rebuild_draft("2026-06")
        yield


def text_of(response):
    return unescape(re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", response.content.decode())))


def file_of(browser, path):
    return list(csv.DictReader(io.StringIO(browser.get(f"{path}?format=csv").content.decode())))


def test_the_month_says_what_it_adds_up_from_and_both_sides_are_the_same(june, fin, signed_in):
    browser = signed_in(fin)
    sum_of = (
        "€4,058.74 = capacity 4,032.00 + CPU, memory, storage and network 14.40 + "
        "external tokens 12.34"
    )
    for path in (MONTH, f"{MONTH}close/"):
        assert f"to the cent: {sum_of}" in text_of(browser.get(path))
    answer = browser.get(f"{MONTH}?format=json").json()
    assert sum(map(Decimal, answer["adds_up_from"].values())) == Decimal(answer["total"])
    assert Decimal(answer["total"]) == BillingPeriod.objects.get().total_cost


@pytest.mark.parametrize(
    "path", ["/bills/", f"{MONTH}summary/", "/cost/"], ids=["months", "summary", "so far"]
)
@pytest.mark.parametrize("policy", ["separate", "proportional", "owner"])
def test_the_columns_of_a_row_add_up_to_its_total(june, fin, signed_in, path, policy):
    with time_machine.travel(rows.JULY - timedelta(hours=1), tick=False):
        billing.choose_idle_policy("2026-06", policy, None)
        found = file_of(signed_in(fin), path)
        assert any(Decimal(row["tokens"]) for row in found)
        for row in found:
            parts = (Decimal(row[name]) for name in words.COLUMNS)
            assert sum(parts) == Decimal(row["total"])


def test_the_same_money_has_the_same_name_on_every_page(june, fin, signed_in):
    browser = signed_in(fin)
    month = {one["team"]: one for one in browser.get(f"{MONTH}?format=json").json()["bills"]}
    for row in file_of(browser, f"{MONTH}summary/"):
        shown = {name: row[name] for name in (*words.COLUMNS, "total")}
        assert shown == {name: month[row["team"]][name] for name in shown}
    assert (month["ia"]["tokens"], month["__central__"]["other"]) == ("12.34", "14.40")


def test_a_month_that_ended_a_day_ago_is_put_forward_by_itself(june):
    with time_machine.travel(rows.JULY + timedelta(hours=23), tick=False):
        tasks.rebuild_drafts()
        assert BillingPeriod.objects.get(name="2026-06").status == "open"
    with time_machine.travel(rows.JULY + timedelta(hours=25), tick=False):
        tasks.rebuild_drafts()
        assert BillingPeriod.objects.get(name="2026-06").status == "provisional"


def test_tokens_and_storage_are_no_use_of_gpus_in_the_figure_of_days(june, fin, signed_in):
    for scope, amount in (("ia", "12.34"), ("__central__", "14.40")):
        figure = signed_in(fin).get(f"{MONTH}{scope}/chart.json").json()
        sums = {trace["name"]: round(sum(trace["y"]), 2) for trace in figure["data"]}
        assert sums["tokens and other"] == float(amount)
        assert sums.get("own use", 0) == (604.8 if scope == "ia" else 0)


def test_sources_that_are_off_are_named_beside_days_that_are_there(june, fin, signed_in):
    with time_machine.travel(rows.JULY + timedelta(hours=12), tick=False):
        page = text_of(signed_in(fin).get("/sources/"))
        assert "Every day of every source is there" in page
        Source.objects.filter(name="litellm_api").update(enabled=False)
        page = text_of(signed_in(fin).get("/sources/"))
        assert "litellm_api is off and not asked" in page
        Source.objects.update(enabled=False)
        assert "All sources are off" in text_of(signed_in(fin).get("/sources/"))


@pytest.mark.parametrize(
    ("own", "borrowed", "idle", "tokens"),
    [("13.07", "6.54", "0", "0"), ("12.40", "5.40", "0", "-0.30"), ("1.50", "1.50", "1.50", "0")],
)
def test_whole_amounts_of_tiles_add_up_to_the_whole_total(own, borrowed, idle, tokens):
    parts = [Decimal(own), Decimal(borrowed), Decimal(idle), Decimal(tokens)]
    figures = Figures(own=parts[0], borrowed=parts[1], idle=parts[2], tokens=parts[3])
    whole = replace(figures, total=sum(parts)).whole
    assert sum(whole.values()) == round_half_up(sum(parts), 0)
    assert all(abs(whole[name] - getattr(figures, name)) < 1 for name in whole)
