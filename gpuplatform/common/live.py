"""Tell open pages that something they show has changed: topics only, never rows.

A page asks again for what it shows, so that every answer is authorised anew. What changed is
read from the rows by feeds, which the rooms register: one question per second and process,
however many pages are open, and none while no page is. A page that was away names the last
mark it has seen and is told what has changed since.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
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
    since = _parsed(mark)
    read = {name: feed(since.get(name)) for name, feed in sorted(_feeds.items())}
    topics = frozenset[str]().union(*(found for _number, found in read.values()))
    return News("-".join(f"{name}{number}" for name, (number, _found) in read.items()), topics)


def _parsed(mark: str) -> Mapping[str, int]:
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
        wanted = frozenset(topics)
        box: asyncio.Queue[News] = asyncio.Queue()
        self._waiting.add(box)
        try:
            missed = await _read(mark)
            yield _event("beat", _clock(), missed.mark, retry=True)
            if found := wanted & missed.topics:
                yield _event("topic", " ".join(sorted(found)), missed.mark)
            self._wake()
            async for event in _told(box, wanted):
                yield event
        finally:
            self._waiting.discard(box)

    def _wake(self) -> None:
        if self._reader is None or self._reader.done():
            self._reader = asyncio.get_running_loop().create_task(self._read_on())

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


async def _told(box: asyncio.Queue[News], wanted: frozenset[str]) -> AsyncIterator[bytes]:
    loop = asyncio.get_running_loop()
    until = loop.time() + STREAM_S
    while loop.time() < until:
        try:
            news = await asyncio.wait_for(box.get(), BEAT_S)
        except TimeoutError:
            yield _event("beat", _clock())
            continue
        if found := wanted & news.topics:
            yield _event("topic", " ".join(sorted(found)), news.mark)


@sync_to_async
def _read(mark: str) -> News:
    close_old_connections()
    try:
        return read_news(mark)
    finally:
        close_old_connections()


def _clock() -> str:
    return clock.now().isoformat(timespec="seconds")


def _event(kind: str, data: str, mark: str = "", *, retry: bool = False) -> bytes:
    lines = [f"event: {kind}", f"data: {data}"]
    lines += [f"id: {mark}"] if mark else []
    lines += ["retry: 3000"] if retry else []
    return ("\n".join(lines) + "\n\n").encode()


hub = Hub()
