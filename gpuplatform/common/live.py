"""Tell open pages that something they show has changed: topics only, never rows.

A page asks again for what it shows, so that every answer is authorised anew. What changed is
read from the rows by feeds, which the rooms register: one question per second and process,
however many pages are open, and none while no page is. A page that was away names the last
mark it has seen and is told what has changed since.
"""

import asyncio
import contextvars
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable, Mapping
from contextlib import aclosing
from dataclasses import dataclass

from asgiref.sync import sync_to_async
from django.db import close_old_connections

from gpuplatform.common import clock

POLL_S = 1.0
BEAT_S = 15  # a silent stream says that it is alive, and what time it is
STREAM_S = 600  # then the page connects anew, and its rights are looked at again
MOST_TOPICS = 20

# What has changed after a row number, and the newest number; None asks for the number only.
Feed = Callable[[int | None], tuple[int, frozenset[str]]]
_feeds: dict[str, Feed] = {}
_topics: set[str] = set()  # that anybody may listen to, told by rooms above the scheduler


@dataclass(frozen=True, slots=True)
class News:
    """Topics that have changed, and the mark up to which that is told."""

    mark: str
    topics: frozenset[str]


def register_feed(name: str, feed: Feed) -> None:
    """Register where changes are read from; ``name`` is one letter or more, no digit."""
    _feeds[name] = feed


def register_topics(*names: str) -> None:
    """Register topics that everybody may hear: what has changed is asked for by who may see it."""
    _topics.update(names)


def open_topics() -> frozenset[str]:
    """Return the topics that were registered."""
    return frozenset(_topics)


def read_news(mark: str = "") -> News:
    """Return what has changed since ``mark``; from a mark that is none, nothing, but a mark."""
    since = numbers_of(mark)
    read = {name: feed(since.get(name)) for name, feed in sorted(_feeds.items())}
    topics = frozenset[str]().union(*(found for _number, found in read.values()))
    return News("-".join(f"{name}{number}" for name, (number, _found) in read.items()), topics)


def numbers_of(mark: str) -> Mapping[str, int]:
    """Return the newest row of each feed that a mark names; nothing for one that is none."""
    parts = (part for part in mark.split("-") if part)
    numbers = {part.rstrip("0123456789"): part for part in parts}
    return {
        name: int(part[len(name) :])
        for name, part in numbers.items()
        if name in _feeds and part[len(name) :].isascii() and len(part) - len(name) in range(1, 19)
    }


class Hub:
    """The open streams of one process, and the one reader that serves them all."""

    def __init__(self) -> None:
        self._waiting: set[asyncio.Queue[News]] = set()
        self._reader: asyncio.Task[None] | None = None

    async def stream(self, topics: Iterable[str], mark: str = "") -> AsyncIterator[bytes]:
        """Yield server-sent events: ``topic`` with the names that changed, ``beat`` in silence.

        Args:
            topics: names that the page wants to hear of.
            mark: the last event that it has seen; "" begins with what changes from now on.
        """
        first = True
        async with aclosing(self.listen(topics, mark)) as heard:
            async for news in heard:
                if news is None:
                    yield event_of("beat", _clock())
                    continue
                if first:
                    yield event_of("beat", _clock(), news.mark, retry=True)
                if news.topics:
                    yield event_of("topic", " ".join(sorted(news.topics)), news.mark)
                first = False

    async def listen(self, topics: Iterable[str], mark: str = "") -> AsyncGenerator[News | None]:
        """Yield what changes of these topics, for ten minutes at most; None in silence.

        The first one tells what has changed since ``mark``, be it nothing. Of who listens slowly
        the news pile up into one.
        """
        wanted = frozenset(topics)
        box: asyncio.Queue[News] = asyncio.Queue()
        self._waiting.add(box)
        try:
            missed = await _read(mark)
            yield News(missed.mark, wanted & missed.topics)
            self._wake()
            async for news in _told(box, wanted):
                yield news
        finally:
            self._waiting.discard(box)

    def _wake(self) -> None:
        if self._reader is None or self._reader.done():
            # In a context of its own: it outlives the request that it begins with, whose thread
            # goes to another one.
            fresh = contextvars.Context()
            self._reader = asyncio.get_running_loop().create_task(self._read_on(), context=fresh)

    async def _read_on(self) -> None:
        """Ask the rows once a second until nobody listens any more."""
        mark = ""
        while self._waiting:
            news = await _read(mark)
            mark = news.mark
            if news.topics:
                for box in self._waiting:
                    box.put_nowait(news)
            await asyncio.sleep(POLL_S)


async def _told(box: asyncio.Queue[News], wanted: frozenset[str]) -> AsyncIterator[News | None]:
    loop = asyncio.get_running_loop()
    until = loop.time() + STREAM_S
    while loop.time() < until:
        try:
            news = await asyncio.wait_for(box.get(), BEAT_S)
        except TimeoutError:
            yield None
            continue
        while not box.empty():
            newer = box.get_nowait()
            news = News(newer.mark, news.topics | newer.topics)
        if found := wanted & news.topics:
            yield News(news.mark, found)


@sync_to_async
def _read(mark: str) -> News:
    close_old_connections()
    try:
        return read_news(mark)
    finally:
        close_old_connections()


def _clock() -> str:
    return clock.now().isoformat(timespec="seconds")


def event_of(kind: str, data: str, mark: str = "", *, retry: bool = False) -> bytes:
    """Return a server-sent event; ``mark`` is what a reader names that was away."""
    lines = [f"event: {kind}", f"data: {data}"]
    lines += [f"id: {mark}"] if mark else []
    lines += ["retry: 3000"] if retry else []
    return ("\n".join(lines) + "\n\n").encode()


hub = Hub()
