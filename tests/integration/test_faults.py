"""Whatever is killed, paused or told twice: nothing half done, nothing twice, work goes on.

All cases share one running set of processes; each mends at its end what it has broken. They take
minutes, so ``make test-long`` runs them; tests/scheduling/loop/test_faults.py is fast.
"""

import random
import signal
import time
from collections.abc import Iterator

import pytest
import redis

from tests.integration.cluster import assert_whole
from tests.integration.site import SLOW_S, Site, running_site

pytestmark = [pytest.mark.services, pytest.mark.long]
ANSWERS_S = 5.0  # within which a page answers, whatever is away
LEASE = "SELECT * FROM common_lease WHERE name = 'cycle' FOR UPDATE"
PLACEMENTS = "LOCK TABLE scheduling_placement IN SHARE MODE"


@pytest.fixture(scope="module")
def shared_site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """The processes; whatever all cases have submitted has run once at their end."""
    with running_site(tmp_path_factory.mktemp("site")) as site:
        site.tend()
        site.goes_on()
        yield site
        site.tend()
        site.assert_all_has_run_once()


@pytest.fixture
def site(shared_site: Site) -> Site:
    shared_site.tend()
    return shared_site


@pytest.mark.parametrize(
    ("lock", "table"),
    [
        pytest.param(LEASE, "common_lease", id="before it writes"),
        pytest.param(PLACEMENTS, "scheduling_placement", id="while it writes"),
    ],
)
def test_a_worker_killed_before_it_commits_leaves_nothing(site: Site, lock, table) -> None:
    with site.standing_at(lock, table):
        uid = site.submitted[-1]
        site.kill("worker")
        assert site.status(uid) == "pending"
    assert site.one("SELECT count(*) FROM scheduling_admission WHERE workload_id = %s", uid) == 0
    site.tend()
    site.goes_on()
    assert site.status(uid) != "pending"


def test_a_worker_killed_after_it_has_committed_has_decided(site: Site) -> None:
    uid = site.submit()
    site.until(lambda: site.status(uid) != "pending", "it is decided")
    site.kill("worker")
    site.tend()
    site.goes_on()
    site.assert_all_has_run_once()


def test_without_beat_wake_ups_do_and_a_beat_that_was_killed_goes_on(site: Site) -> None:
    site.kill("beat")
    uid = site.submit()
    site.until(lambda: site.status(uid) == "running", "a wake-up is enough", SLOW_S)
    site.tend()
    site.until(lambda: site.status(uid) == "finished", "beat sees the end")


def test_a_broker_that_is_away_delays_no_page_and_comes_back_empty(site: Site) -> None:
    site.broker.end(signal.SIGKILL)
    began = time.monotonic()
    site.submit()
    assert time.monotonic() - began < ANSWERS_S
    site.broker.start()
    site.goes_on(to_its_end=True)


def test_a_broker_that_hangs_delays_no_page_for_long(site: Site) -> None:
    site.broker.process.send_signal(signal.SIGSTOP)
    try:
        began = time.monotonic()
        site.submit()
        took = time.monotonic() - began
    finally:
        site.wake_all()
    assert took < ANSWERS_S
    site.goes_on()


def test_messages_that_are_lost_or_doubled_change_nothing_but_the_delay(site: Site) -> None:
    from gpuplatform.common.wakeup import CYCLE_TASK  # noqa: PLC0415

    with redis.Redis.from_url(site.broker.url) as client:
        client.flushall()  # also who listens to which queue
        site.goes_on(to_its_end=True)
        site.assert_all_has_run_once()
        cycles = site.one("SELECT count(*) FROM scheduling_cycle")
        site.pause("worker")
        site.until(lambda: client.llen("cycle"), "a message waits")
        (message,) = client.lrange("cycle", 0, 0)
        assert CYCLE_TASK in message.decode()
        client.rpush("cycle", *[message] * 20)
        site.wake_all()
        site.until(lambda: not client.llen("cycle"), "all are taken")
    assert site.one("SELECT count(*) FROM scheduling_cycle") == cycles
    site.goes_on()


def test_a_database_that_crashes_under_a_running_worker_comes_back(site: Site) -> None:
    site.submit()
    site.database.end(signal.SIGQUIT)  # as if it were killed: it recovers from its log
    assert site.call("GET", "/readyz").status == 503
    site.database.start()
    site.goes_on()


def test_a_worker_that_is_paused_beyond_its_lease_wakes_up_and_writes_nothing(site: Site) -> None:
    with site.standing_at(PLACEMENTS, "scheduling_placement"):
        site.pause("worker")
    uid = site.submitted[-1]
    site.run("other")
    site.until(lambda: site.status(uid) == "finished", "another goes on")
    site.wake_all()
    for _ in range(8):  # two workers at once admit nobody twice
        site.submit()
        assert_whole(site)
    site.goes_on()
    site.assert_all_has_run_once()


def test_a_clock_that_steps_an_hour_stops_nothing(site: Site) -> None:
    for seconds in (3600, 0):  # ahead, and back again
        site.step(seconds)
        site.goes_on(to_its_end=True)


def test_workers_killed_and_paused_at_any_instant_change_nothing_but_the_delay(site: Site) -> None:
    dice = random.Random(20_260_601)
    for _ in range(12):
        for _ in range(3):
            site.submit(pods=dice.randint(1, 8))
        other = site.run("other")
        time.sleep(dice.uniform(2, 5))  # any instant
        if dice.random() < 0.5:
            site.pause("worker")
            time.sleep(3)
            site.wake_all()
        site.kill("worker")
        site.processes["worker"] = site.processes.pop("other")
        assert other.poll() is None
        assert_whole(site)
    site.goes_on()
