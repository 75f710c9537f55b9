"""The week of the public trace comes out as published, to the second."""

import gzip
import json
from pathlib import Path

import pytest
from django.conf import settings

from scheduling.bench import philly
from scheduling.replay.reading import read_trace
from scheduling.replay.site import node_gpus, read_site

pytestmark = pytest.mark.shared


@pytest.fixture(scope="module")
def week() -> philly.Data:
    folder = Path(settings.SHARED_DATA, "philly")
    site = read_site("cluster.json", (folder / "cluster.json").read_text("utf-8"))
    rows = gzip.decompress((folder / "jobs.csv.gz").read_bytes()).decode()
    reference = json.loads((folder / "reference.json").read_text("utf-8"))["results"]
    return philly.Data(site, read_trace("jobs.csv", rows, node_gpus(site)), reference).cut("week")


def published(data: philly.Data, name: str):
    return next(one for one in data.reference["week"] if one["policy"] == name)


def test_the_rules_that_are_not_the_products_give_the_published_waits(week):
    found = philly.by_rules(week)
    assert len(found) == 6
    assert {n: one.differs_from(published(week, n)) for n, one in found.items() if n} == (
        dict.fromkeys(found, 0)
    )


STRICT, *OTHERS = philly.BY_ENGINE


@pytest.mark.parametrize(
    "name", [STRICT, *(pytest.param(name, marks=pytest.mark.long) for name in OTHERS)]
)
def test_the_engine_gives_the_published_waits_of_isolated_queues(week, name):
    found = philly.by_engine(week, name)
    assert found.differs_from(published(week, name)) == 0
    broken = philly.Found(found.mean_s + 0.1, found.percentiles, 0.0)
    assert broken.differs_from(published(week, name)) == 1


@pytest.mark.long
def test_the_whole_bench_counts_everybody_and_names_its_goals(week):
    report = philly.bench(week, "full", ["recommended"])
    assert report.work["jobs"] == 12_751
    assert {goal.id for goal in report.goals} >= {"wait-mean-floor", "wait->8", "wait-5-8"}
