"""A request is answered in one thread, which then waits for the next one."""

import asyncio
import threading
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.core import signals
from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase

from gpuplatform.common.serving import ThreadedHandler

View = Callable[[HttpRequest], HttpResponseBase]
SCOPE = {"type": "http", "method": "GET", "path": "/x", "query_string": b"", "headers": []}
STREAM_S = 30.0  # longer than any test


@pytest.fixture(autouse=True)
def _no_database() -> Any:
    """Keep what closes connections out: these requests have none."""
    kept = signals.request_started.receivers, signals.request_finished.receivers
    signals.request_started.receivers, signals.request_finished.receivers = [], []
    for signal in (signals.request_started, signals.request_finished):
        signal.sender_receivers_cache.clear()
    yield
    signals.request_started.receivers, signals.request_finished.receivers = kept
    for signal in (signals.request_started, signals.request_finished):
        signal.sender_receivers_cache.clear()


class Server:
    """A handler whose every request is answered by one view."""

    def __init__(self, view: View) -> None:
        self.handler = ThreadedHandler()
        self.handler.get_response = view  # type: ignore[method-assign,assignment]

    async def ask(self, stays_s: float = STREAM_S) -> bytes:
        """Return the body of an answer to somebody who listens for so long."""
        parts, asked = list[bytes](), False

        async def receive() -> dict[str, Any]:
            nonlocal asked
            if asked:
                await asyncio.sleep(stays_s)
                return {"type": "http.disconnect"}
            asked = True
            return {"type": "http.request", "body": b"", "more_body": False}

        async def send(message: Any) -> None:
            parts.append(message.get("body", b""))

        await self.handler(dict(SCOPE), receive, send)
        return b"".join(parts)


def here() -> bytes:
    return str(threading.get_ident()).encode()


def at_the_end(response: HttpResponseBase, do: Callable[[], None]) -> None:
    """Have something done when an answer is closed."""
    close = response.close

    def closed() -> None:
        close()
        do()

    response.close = closed  # type: ignore[method-assign]


def test_a_thread_answers_one_request_after_the_other() -> None:
    server = Server(lambda _: HttpResponse(here()))

    async def twice() -> set[bytes]:
        return {await server.ask(), await server.ask()}

    assert len(asyncio.run(twice())) == 1


def test_requests_at_the_same_time_have_threads_of_their_own() -> None:
    both = threading.Barrier(2, timeout=STREAM_S)  # breaks where one waits for the other

    def view(_: HttpRequest) -> HttpResponse:
        both.wait()
        return HttpResponse(here())

    server = Server(view)

    async def at_once() -> list[bytes]:
        return await asyncio.gather(server.ask(), server.ask())

    assert len(set(asyncio.run(at_once()))) == 2


def test_a_plain_answer_is_done_with_in_its_thread_before_it_is_sent() -> None:
    done = list[bytes]()

    def view(_: HttpRequest) -> HttpResponse:
        response = HttpResponse(here())
        at_the_end(response, lambda: done.append(here()))
        return response

    assert asyncio.run(Server(view).ask()) == done[0]


@pytest.mark.parametrize("leaves", [True, False], ids=["whoever left", "who stayed"])
def test_a_stream_reads_in_its_requests_thread_until_it_ends_for(leaves: bool) -> None:
    begun, ended = list[bytes](), list[bytes]()

    async def parts() -> AsyncIterator[bytes]:
        try:
            yield await sync_to_async(here)()
            if leaves:
                await asyncio.sleep(STREAM_S)
        finally:
            ended.append(b"generator")

    def view(_: HttpRequest) -> StreamingHttpResponse:
        begun.append(here())
        response = StreamingHttpResponse(parts())
        at_the_end(response, lambda: ended.append(here()))
        return response

    assert asyncio.run(Server(view).ask(0.05 if leaves else STREAM_S)) == begun[0]
    assert ended == [b"generator", begun[0]]


def test_a_failing_stream_says_so_and_is_done_with() -> None:
    ended = list[bytes]()

    async def parts() -> AsyncIterator[bytes]:
        raise ValueError("nothing to read")
        yield b""

    def view(_: HttpRequest) -> StreamingHttpResponse:
        response = StreamingHttpResponse(parts())
        at_the_end(response, lambda: ended.append(b"closed"))
        return response

    with pytest.raises(ValueError, match="nothing to read"):
        asyncio.run(Server(view).ask())
    assert ended == [b"closed"]


def test_what_is_no_request_of_http_is_refused() -> None:
    with pytest.raises(ValueError, match="websocket"):
        asyncio.run(ThreadedHandler()({"type": "websocket"}, None, None))  # type: ignore[arg-type]
