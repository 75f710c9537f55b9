"""A trace is played from instant to instant: all that is told can be worked out by hand."""

from dataclasses import replace

import pytest

from scheduling.engine.profile import Profile
from scheduling.engine.queue_rules import MinimumRuntime
from scheduling.engine.snapshot import Preemption
from scheduling.engine.terms import ReclaimWithinCohort
from scheduling.replay.figures import figures_of
from scheduling.replay.player import play
from scheduling.replay.policies import policy
from tests.scheduling.replay.scenes import comes, of, site, waited

BOTH = pytest.mark.parametrize("profile", [Profile.recommended(), Profile.kueue()])


@BOTH
def test_who_finds_no_room_waits_until_somebody_ends(profile):
    tape = play(site(), of(comes("first", 0, 100, 3), comes("second", 10, 50, 2)), profile)
    assert waited(tape) == {"first": 0, "second": 90}
    assert (tape.end_s, tape.most_waiting, tape.unfinished) == (150, 1, ())


@BOTH
def test_what_ends_at_an_instant_makes_room_for_what_comes_then(profile):
    tape = play(site(), of(comes("first", 0, 100, 4), comes("second", 100, 50, 4)), profile)
    assert waited(tape) == {"first": 0, "second": 0}


@BOTH
def test_best_effort_passes_a_gang_that_does_not_fit_and_strict_does_not(profile):
    work = of(comes("runs", 0, 100, 3), comes("large", 1, 10, 4), comes("small", 2, 10, 1))
    assert waited(play(site(), work, profile)) == {"runs": 0, "small": 0, "large": 99}
    strict = policy("strict").site(site())
    assert waited(play(strict, work, profile)) == {"runs": 0, "large": 99, "small": 108}


@BOTH
def test_quota_of_a_cohort_is_lent_and_isolated_quota_is_not(profile):
    work = of(comes("own", 0, 100, 2), comes("more", 0, 100, 2))
    two = site(a=2, b=2)
    tape = play(two, work, profile)
    assert waited(tape) == {"own": 0, "more": 0}
    assert figures_of("x", two, tape).use.borrowed_gpu_hours == pytest.approx(2 * 100 / 3600)
    alone = policy("isolated").site(two)
    tape = play(alone, work, profile)
    assert sorted(waited(tape).values()) == [0, 100]
    assert figures_of("x", alone, tape).use.borrowed_gpu_hours == 0


@BOTH
def test_an_owner_takes_back_what_it_lent_and_the_borrower_begins_again(profile):
    two = policy("reclaim").site(site(a=2, b=2))
    work = of(comes("borrows", 0, 100, 4), comes("owner", 40, 30, 2, "b"))
    tape = play(two, work, profile)
    assert waited(tape) == {"owner": 0, "borrows": 70}  # 40 s thrown away, 30 s of the owner
    assert (tape.evictions, tape.evicted["a"]) == (1, 1)
    assert tape.lost_gpu_hours["a"] == pytest.approx(4 * 40 / 3600)
    assert tape.used["a"] == pytest.approx(4 * 140 / 3600)


def test_a_victim_is_taken_when_its_protection_ends_though_nothing_else_happens_then():
    two = policy("reclaim").site(site(a=2, b=2))
    queues = dict(two.cluster_queues)
    queues["a"] = replace(queues["a"], minimum_runtime=MinimumRuntime(60.0))
    two = replace(two, cluster_queues=queues)
    work = of(comes("borrows", 0, 100, 4), comes("owner", 40, 30, 2, "b"))
    assert waited(play(two, work))["owner"] == 20


def test_work_that_can_never_start_is_told_and_keeps_nobody():
    tape = play(site(), of(comes("huge", 0, 10, 5), comes("small", 1, 10)))
    assert (tape.unfinished, waited(tape)) == (("huge",), {"small": 0})


def test_pods_need_nodes_but_not_where_quota_alone_counts():
    work = of(comes("a", 0, 100, 3), comes("b", 0, 100, 3), comes("c", 0, 100, 2))
    two = site(2)
    assert waited(play(two, work)) == {"a": 0, "b": 0, "c": 100}
    assert set(waited(play(policy("quota-only").site(two), work)).values()) == {0}


def test_a_scheduler_that_knows_ends_lets_short_work_use_what_a_gang_waits_for():
    work = of(
        comes("long", 0, 1000, 4),
        comes("gang", 1, 100, 4, pods=2),
        comes("short", 2, 500, 4),
        comes("too long", 3, 5000, 4),
    )
    known = policy("durations-declared")
    assert waited(play(site(2), known.trace(work)))["gang"] == 999
    assert waited(play(site(2), known.trace(work)))["short"] == 0
    assert waited(play(site(2), work))["gang"] > 999  # short work has taken the second node


def test_progress_is_told_up_to_the_end():
    told = []
    play(site(), of(comes("a", 0, 5), comes("b", 3, 9)), heed=lambda *now: told.append(now))
    assert told == [(1, 2), (2, 2), (2, 2), (2, 2)]


def test_rights_that_nobody_has_evict_nobody():
    two = policy("reclaim+no-preemption").site(site(a=2, b=2))
    assert {queue.preemption for queue in two.cluster_queues.values()} == {Preemption()}
    reclaims = policy("reclaim").site(site(a=2, b=2)).cluster_queues["a"].preemption
    assert reclaims.reclaim_within_cohort is ReclaimWithinCohort.ANY
