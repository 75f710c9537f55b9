"""Open pages hear of what has changed: which topics, once, and nothing that is not theirs."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any
from uuid import UUID

import pytest

from gpuplatform.common import live
from gpuplatform.common.models import Change
from scheduling import services
from scheduling.live import topic_of
from scheduling.models import Workload
from tests.pages.conftest import decide
from tests.scheduling.loop import world

pytestmark = pytest.mark.django_db


def test_nobody_is_told_of_what_was_before_they_came(platform):
    assert live.read_news().topics == frozenset()


def test_a_mark_brings_what_has_changed_since_and_only_once(platform):
    mark = live.read_news().mark
    cohort_edit = Change.objects.create(topic="cohort", key="llm")
    news = live.read_news(mark)
    assert news.topics == {"queues", "capacity", "nodes"}
    assert f"edit{cohort_edit.pk}" in news.mark
    assert live.read_news(news.mark).topics == frozenset()


def test_every_step_of_a_workload_reaches_its_page_and_the_lists(platform, ada):
    mark = live.read_news().mark
    services.cancel_workload(platform.train.uid, actor=ada)
    topics = live.read_news(mark).topics
    assert {topic_of(platform.train.uid), "workloads", "queues", "capacity"} <= topics
    assert topic_of(platform.secret.uid) not in topics


def test_a_cycle_that_starts_somebody_tells_nodes_and_ledger(platform, ada):
    services.cancel_workload(platform.train.uid, actor=ada)
    decide()
    mark = live.read_news().mark
    world.work("ia", "next", gpus=2)
    decide()
    assert {"nodes", "ledger", "workloads", "capacity"} <= live.read_news(mark).topics


@pytest.mark.parametrize(
    "mark", ["nonsense", "edit", "edit-", "edit1e9", "story²", "edit" + "9" * 40]
)
def test_a_mark_that_is_none_begins_anew(platform, mark):
    assert live.read_news(mark).topics == frozenset()


@pytest.mark.parametrize(
    "topics", ["", "nonsense", "capacity " * 21, f"capacity workload:{UUID(int=7)}", "workload:x"]
)
def test_topics_that_are_none_are_refused(platform, ada, signed_in, topics):
    code = 404 if "workload:" in topics else 400
    assert signed_in(ada).get("/events/", {"topics": topics}).status_code == code


def test_a_server_without_streams_says_so_and_the_page_asks_by_itself(platform, ada, signed_in):
    assert signed_in(ada).get("/events/", {"topics": "capacity queues"}).status_code == 204


def events_of(stream: AsyncIterator[bytes], until: str) -> list[str]:
    """Return the events of a stream up to the first of a kind."""

    async def read() -> list[str]:
        found = []
        async for event in stream:
            found.append(event.decode())
            if f"event: {until}" in found[-1]:
                break
        await stream.aclose()  # type: ignore[attr-defined]
        return found

    return asyncio.run(asyncio.wait_for(read(), 5))


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Feeds that need no database, so that a loop in a thread of its own may read them."""
    numbers = {"n": 7, "asked": 0}

    def feed(since: int | None) -> tuple[int, frozenset[str]]:
        numbers["asked"] += 1
        changed = since is not None and since < numbers["n"]
        return numbers["n"], frozenset({"queues", "nodes"} if changed else ())

    monkeypatch.setattr(live, "_feeds", {"row": feed})
    monkeypatch.setattr(live, "POLL_S", 0.01)
    monkeypatch.setattr(live, "BEAT_S", 0.05)
    return numbers


def test_a_page_that_was_away_hears_at_once_what_it_missed(quick):
    beat, topic = events_of(live.Hub().stream(["queues"], "row3"), "topic")
    assert "event: beat" in beat
    assert "id: row7" in beat
    assert topic == "event: topic\ndata: queues\nid: row7\n\n"


def test_silence_is_broken_by_the_time(quick):
    quick["n"] = 9
    first, second = events_of_two(live.Hub().stream(["ledger"], "row9"))
    assert "retry: 3000" in first
    assert second.startswith("event: beat\ndata: 20")


def events_of_two(stream: AsyncIterator[bytes]) -> list[str]:
    async def read() -> list[str]:
        found = [(await anext(stream)).decode(), (await anext(stream)).decode()]
        await stream.aclose()  # type: ignore[attr-defined]
        return found

    return asyncio.run(asyncio.wait_for(read(), 5))


def test_all_streams_share_one_reader_and_it_stops_with_the_last(quick):
    async def scene() -> int:
        hub = live.Hub()
        streams = [hub.stream(["queues"]) for _ in range(20)]
        for stream in streams:
            await anext(stream)
        told = [asyncio.ensure_future(anext(stream)) for stream in streams]
        await asyncio.sleep(0.02)
        quick["n"] += 1
        assert all(b"topic" in event for event in await asyncio.gather(*told))
        for stream in streams:
            await stream.aclose()  # type: ignore[attr-defined]
        await asyncio.sleep(0.05)
        before = quick["asked"]
        await asyncio.sleep(0.05)
        return quick["asked"] - before

    assert asyncio.run(asyncio.wait_for(scene(), 5)) == 0


def test_work_of_others_is_no_topic_of_mine(platform, ian, signed_in):
    theirs = Workload.objects.get(name="train")
    own = Workload.objects.get(name="secret")
    browser = signed_in(ian)
    assert browser.get("/events/", {"topics": topic_of(theirs.uid)}).status_code == 404
    assert browser.get("/events/", {"topics": topic_of(own.uid)}).status_code == 204
