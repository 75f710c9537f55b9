"""Past use that fades: the arithmetic, what is remembered, and how it is compared."""

from dataclasses import replace
from math import inf, log

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduling.engine.atlas import Atlas
from scheduling.engine.books import Books
from scheduling.engine.cycle import decide
from scheduling.engine.decay import Decayed
from scheduling.engine.history import History, brought_forward
from scheduling.engine.tree import cohort_key, queue_key
from tests.engine.builders import World, world

WEEK = 7 * 86400.0
HOUR = 3600.0
NODE = {"h100-node-01": 1}


@pytest.mark.parametrize(
    ("amount", "rate", "seconds", "half_life", "expected"),
    [
        (8.0, 0.0, 0.0, WEEK, 8.0),
        (8.0, 0.0, WEEK, WEEK, 4.0),
        (8.0, 0.0, 2 * WEEK, WEEK, 2.0),
        (0.0, 4.0, HOUR, inf, 4.0),
        (3.0, 4.0, 2 * HOUR, inf, 11.0),
        (0.0, 1.0, WEEK, WEEK, 168 / log(2) / 2),  # half of what for ever would come to
        (0.0, 1.0, 100 * WEEK, WEEK, 168 / log(2)),
        (5.0, 2.0, HOUR, 0.0, 0.0),  # without half-life nothing is remembered
        (5.0, 2.0, -HOUR, WEEK, 5.0),  # a clock that went back adds nothing
    ],
)
def test_gpu_hours_fade_by_half_in_each_half_life(
    amount, rate, seconds, half_life, expected
) -> None:
    past = Decayed(amount, rate, 1000.0)
    assert brought_forward(past, 1000.0 + seconds, half_life) == pytest.approx(expected)


@given(
    st.floats(0, 1e6),
    st.floats(0, 1e4),
    st.floats(0, 1e7),
    st.floats(0, 1e7),
    st.sampled_from([HOUR, WEEK, inf]),
)
def test_it_does_not_matter_how_often_it_is_brought_forward(
    amount, rate, first, second, half_life
) -> None:
    past = Decayed(amount, rate, 0.0)
    halfway = Decayed(brought_forward(past, first, half_life), rate, first)
    at_once = brought_forward(past, first + second, half_life)
    assert brought_forward(halfway, first + second, half_life) == pytest.approx(at_once)


def two(**changes: object) -> World:
    made = world().nodes(2).cohort("llm").queue("cq-datos", 4, **changes).queue("cq-ia", 2)
    return made.used(cq_datos=8.0, cq_ia=8.0)


def history(made: World) -> History:
    snapshot = made.build()
    ledger = Books(snapshot, Atlas(snapshot)).soon.ledger
    return History(snapshot, ledger)


@pytest.mark.parametrize(
    ("changes", "figure"),
    [
        ({}, (2.0, 0.0, 0.0)),
        ({"fair_weight": 2.0}, (1.0, 0.0, 0.0)),
        ({"fair_weight": 0.0}, (inf, inf, 8.0)),
    ],
)
def test_use_counts_for_each_promised_gpu_and_weight(changes, figure) -> None:
    assert history(two(**changes)).figure(queue_key("cq-datos")) == figure


def test_past_use_without_promise_is_infinite_and_compared_by_hours() -> None:
    made = world().cohort("llm", nominal=4).queue("cq-a").queue("cq-b").queue("cq-new")
    past = history(made.used(cq_a=3.0, cq_b=5.0))
    a, b, new = (past.figure(queue_key(name)) for name in ("cq-a", "cq-b", "cq-new"))
    assert new == (0.0, 0.0, 0.0)
    assert new < a < b
    assert a[0] == inf


def test_a_cohort_has_the_sum_of_its_queues() -> None:
    past = history(two())
    assert past.hours(cohort_key("llm")) == 16.0
    assert past.promised(cohort_key("llm")) == 6


def test_work_that_starts_counts_at_once_as_five_minutes() -> None:
    past = history(two())
    past.charge(queue_key("cq-ia"), 6)
    assert past.hours(queue_key("cq-ia")) == 8.5
    assert past.hours(cohort_key("llm")) == 16.5


def test_the_plan_remembers_what_everybody_holds_from_now_on() -> None:
    made = two().running("d", "cq-datos", on=NODE).pending("i", "cq-ia", gpus=2)
    snapshot = made.running("gone", "cq-datos", on=NODE, releasing=True).build()
    memory = decide(snapshot).memory
    assert memory.history == {
        "cq-datos": Decayed(8.0, 2.0, 1000.0),  # what is leaving still stands
        "cq-ia": Decayed(8.0, 2.0, 1000.0),
    }
    quiet = replace(snapshot, memory=memory, now=5000.0, workloads=snapshot.workloads[:1])
    assert decide(quiet).memory.history["cq-datos"].rate == 1.0  # one has left
    later = replace(snapshot, memory=memory, now=5000.0, workloads=())
    after = decide(later).memory.history["cq-ia"]
    assert after.rate == 0.0
    assert after.amount == pytest.approx(8.0 + 2 * 4000 / HOUR, rel=0.01)


def test_a_queue_that_never_held_a_gpu_and_one_that_is_gone_have_no_entry() -> None:
    made = world().queue("cq-a", 4).used(cq_gone=7.0)
    assert decide(made.build()).memory.history == {}


def test_an_entry_stays_as_it_is_while_nothing_changes() -> None:
    snapshot = two().running("d", "cq-datos", on=NODE).build()
    memory = decide(snapshot).memory
    again = decide(replace(snapshot, memory=memory, now=9000.0)).memory
    assert again.history == memory.history
