"""What could start now leaves out what is kept for a gang that waits, on every page alike."""

import pytest

from tests.scheduling.loop import world

from .conftest import decide

pytestmark = pytest.mark.django_db


@pytest.fixture
def promised(db):
    """Three nodes of 4 GPUs; two are used for an hour, the third waits for a gang of 8."""
    world.nodes(3, gpus=4)
    world.queue("datos", 12)
    for name in ("one", "two"):
        world.work("datos", name, gpus=4, expected_duration_s=3600)
    decide()
    world.work("datos", "gang", pods=2, gpus=4)
    decide()


def test_availability_offers_neither_nodes_nor_quota_that_are_kept(promised, ada, signed_in):
    (row,) = signed_in(ada).get("/api/v1/availability/").json()["results"]
    assert (row["in_quota_now"], row["borrowable_now"], row["free_on_nodes"]) == (0, 0, 0)
    assert {n for sizes in row["largest_gangs"].values() for n in sizes.values()} == {0}


def test_the_nodes_say_that_they_are_free_kept_and_of_no_use(promised, ada, signed_in):
    (piece,) = signed_in(ada).get("/api/v1/fragments/").json()["results"]
    assert (piece["free"], piece["usable"], piece["stranded"]["kept"]) == (4, 0, 4)
    page = signed_in(ada).get("/nodes/").text
    assert "kept for a gang that waits" in page


def test_the_largest_gang_of_a_queue_is_no_larger_than_its_quota_has_left(db, ada, signed_in):
    world.nodes(3, gpus=4)
    world.queue("datos", 3, cohort="llm", borrowing_limit=2)
    world.queue("ia", 4, cohort="llm")
    decide()
    mine, _ = signed_in(ada).get("/api/v1/availability/").json()["results"]
    assert (mine["in_quota_now"], mine["borrowable_now"], mine["free_on_nodes"]) == (3, 2, 12)
    told = {size: max(by_level.values()) for size, by_level in mine["largest_gangs"].items()}
    assert told == {size: 5 // int(size) for size in told}
