"""Bodies that are too large or come too slowly, turned away before Django takes them in.

Django's ASGI handler takes a whole body in, on disk if need be, before any view is asked: without
these bounds a stranger could fill the disk, or hold connections open for ever.
"""

import asyncio
import json
from collections.abc import Awaitable, Callable, MutableMapping
from http import HTTPStatus
from typing import Any

from django.conf import settings

from gpuplatform.common.http import API_PREFIX, CONTENT_TYPE, problem

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[..., Awaitable[None]]


class _Refused(Exception):  # as Rejected
    def __init__(self, status: HTTPStatus, words: str) -> None:
        super().__init__(words)
        self.status = status


class BoundedBodies:
    """An ASGI application that hands on no body above ``BODY_MAX_BYTES``.

    The body must be there ``BODY_TIMEOUT_S`` after it was first asked for.
    """

    def __init__(self, app: App) -> None:
        self.app = app

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Serve a request, or answer 413 or 408."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        body = _Body(receive)
        try:
            _check_length(scope)
            await self.app(scope, body.receive, send)
        except _Refused as refusal:
            await _answer(scope, send, refusal)


class _Body:
    """A body on its way in."""

    def __init__(self, receive: Receive) -> None:
        self._receive = receive
        self._size = 0
        self._until: float | None = None
        self._whole = False

    async def receive(self) -> Message:
        """Return the next part; what follows the body may take as long as it will."""
        if self._whole:
            return await self._receive()
        clock = asyncio.get_running_loop().time
        self._until = self._until or clock() + settings.BODY_TIMEOUT_S
        try:
            message = await asyncio.wait_for(self._receive(), max(0.0, self._until - clock()))
        except TimeoutError:
            words = f"The body was not here after {settings.BODY_TIMEOUT_S:g} s."
            raise _Refused(HTTPStatus.REQUEST_TIMEOUT, words) from None
        self._size += len(message.get("body", b""))
        if self._size > settings.BODY_MAX_BYTES:
            raise _too_large()
        self._whole = message["type"] != "http.request" or not message.get("more_body", False)
        return message


def _check_length(scope: Message) -> None:
    given = dict(scope.get("headers", ())).get(b"content-length", b"")
    if given.isdigit() and (len(given) > len("999999999999") or _exceeds(int(given))):
        raise _too_large()


def _exceeds(size: int) -> bool:
    return size > int(settings.BODY_MAX_BYTES)


def _too_large() -> _Refused:
    words = f"The body is larger than {settings.BODY_MAX_BYTES} bytes."
    return _Refused(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, words)


async def _answer(scope: Message, send: Send, refusal: _Refused) -> None:
    path = str(scope.get("path", ""))
    kind, body = "text/plain", str(refusal)
    if path.startswith(API_PREFIX):
        kind, body = CONTENT_TYPE, json.dumps(problem(refusal.status, "", str(refusal), path=path))
    headers = [(b"content-type", kind.encode()), (b"connection", b"close")]
    await send({"type": "http.response.start", "status": int(refusal.status), "headers": headers})
    await send({"type": "http.response.body", "body": body.encode()})
