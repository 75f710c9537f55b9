"""Requests from an ASGI server to Django's views and back, through one thread each.

Every view and half of the middleware is synchronous. Django's own handler would go to a thread and
back to the loop at each border between the two kinds, in a thread that it starts and ends with the
request, whose database connection is made anew; for a small request that costs as much as its
answer. Here a request goes to a thread once, as a whole, and threads are kept. Answers that stream
go on in the loop, and keep their thread for what they read. Source: ``docs/adr/0034-serving.md``.
"""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import IO, Any

from asgiref.sync import ThreadSensitiveContext, sync_to_async
from django.core import signals
from django.core.exceptions import RequestAborted
from django.core.handlers.asgi import ASGIHandler, get_script_prefix
from django.core.handlers.base import BaseHandler
from django.http.response import FileResponse, HttpResponseBase
from django.urls import set_script_prefix

Scope = dict[str, Any]
Receive = Callable[[], Awaitable[Mapping[str, Any]]]
Send = Callable[[Mapping[str, Any]], Awaitable[None]]
MOST_IDLE = 40  # threads that wait for a request; more are ended once their request is answered


class ThreadedHandler(ASGIHandler):
    """Django's ASGI application, with all of its middleware in the thread of the view."""

    def __init__(self) -> None:
        BaseHandler.__init__(self)
        self.load_middleware()
        self._threads = _Threads()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request."""
        if scope["type"] != "http":
            raise ValueError(f"Only HTTP is spoken here, not {scope['type']}.")
        with self._threads.one() as thread:
            async with ThreadSensitiveContext(executor=thread):
                await self.handle(scope, receive, send)

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Take the body in, have the request answered in the thread, and send the answer."""
        try:
            body = await self.read_body(receive)
        except RequestAborted:
            return
        with body:
            response = await sync_to_async(self._answer)(scope, body)
            if response.streaming:
                await self._stream(response, receive, send)
            else:
                await self.send_response(response, send)

    def _answer(self, scope: Scope, body: IO[bytes]) -> HttpResponseBase:
        """Return the answer; one that does not stream is done with the thread and the database."""
        set_script_prefix(get_script_prefix(scope))
        signals.request_started.send(sender=self.__class__, scope=scope)
        request, refusal = self.create_request(scope, body)
        response: Any = refusal if request is None else self.get_response(request)
        response._handler_class = self.__class__  # noqa: SLF001  # what its signal says
        if isinstance(response, FileResponse):
            response.block_size = self.chunk_size
        if not response.streaming:
            response.close()
        return response  # type: ignore[no-any-return]

    async def _stream(self, response: HttpResponseBase, receive: Receive, send: Send) -> None:
        """Send an answer piece by piece, until it ends or nobody listens any more."""
        gone = asyncio.create_task(self.listen_for_disconnect(receive))
        sent = asyncio.create_task(self.send_response(response, send))
        try:
            await asyncio.wait((gone, sent), return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in (gone, sent):
                task.cancel()
            with contextlib.suppress(asyncio.CancelledError, RequestAborted):
                await gone
            try:
                with contextlib.suppress(asyncio.CancelledError):
                    await sent
            finally:
                await sync_to_async(response.close)()


class _Threads:
    """Threads that wait for requests; the one that was used last comes first. For one loop."""

    def __init__(self) -> None:
        self._idle: list[ThreadPoolExecutor] = []

    @contextmanager
    def one(self) -> Iterator[ThreadPoolExecutor]:
        """Lend a thread that nobody else uses meanwhile."""
        thread = self._idle.pop() if self._idle else ThreadPoolExecutor(1, "request")
        try:
            yield thread
        finally:
            if len(self._idle) < MOST_IDLE:
                self._idle.append(thread)
            else:
                thread.shutdown(wait=False)
