"""A replay may count a window only, and tells who held what, run by run."""

import math

import pytest

from scheduling.engine.machines import GPU
from scheduling.engine.snapshot import FlavorResource
from scheduling.replay.figures import figures_of
from scheduling.replay.player import play
from scheduling.replay.policies import policy
from scheduling.replay.site import KIND
from scheduling.replay.tape import Span
from tests.scheduling.replay.scenes import comes, of, site, waited

COLUMN = FlavorResource(KIND, GPU)


def test_work_from_before_the_window_fills_the_cluster_and_is_in_no_figure():
    work = of(comes("old", 0, 1000, 4), comes("new", 500, 100, 4), comes("late", 900, 10))
    tape = play(site(), work, counted=Span(400, 800))
    assert waited(tape) == {"new": 500}
    assert tape.used == {"a": pytest.approx(4 * 400 / 3600)}
    figures = figures_of("x", site(), tape)
    assert (figures.utilisation, figures.makespan_s) == (pytest.approx(1.0), 400)


def test_evictions_and_what_they_lose_are_counted_in_the_window_alone():
    two = policy("reclaim").site(site(a=2, b=2))
    work = of(comes("borrows", 0, 100, 4), comes("owner", 40, 30, 2, "b"))
    assert play(two, work, counted=Span(0, 40)).evictions == 0
    assert play(two, work, counted=Span(40, 41)).evictions == 1


def test_what_never_starts_counts_if_it_came_in_the_window():
    work = of(comes("huge", 0, 10, 5), comes("giant", 50, 10, 5), comes("small", 60, 10))
    assert play(site(), work, counted=Span(40, math.inf)).unfinished == ("giant",)


def test_every_run_is_held_from_its_start_to_its_end_or_eviction():
    two = policy("reclaim").site(site(a=2, b=2))
    work = of(comes("borrows", 0, 100, 4), comes("owner", 40, 30, 2, "b"))
    holds = play(two, work).holds
    assert [(h.key, h.since_s, h.until_s, h.run_s, h.evicted) for h in holds] == [
        ("borrows", 0, 40, 0, True),
        ("owner", 40, 70, 40, False),
        ("borrows", 70, 170, 70, False),
    ]
    assert [h.charge for h in holds] == [((COLUMN, 4),), ((COLUMN, 2),), ((COLUMN, 4),)]
    assert [h.queue for h in holds] == ["a", "b", "a"]


def test_holds_add_up_to_what_was_used():
    work = of(*(comes(f"w{n}", n * 7, 50 + n, 1 + n % 4) for n in range(30)))
    tape = play(site(2), work)
    held = sum(h.charge[0][1] * (h.until_s - h.since_s) for h in tape.holds)
    assert held / 3600 == pytest.approx(sum(tape.used.values()))
