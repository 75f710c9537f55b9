"""A body that is too large or too slow is turned away before anything takes it in."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from gpuplatform.common.bodies import BoundedBodies

Parts = list[tuple[float, bytes]]  # after how many seconds, what


@pytest.fixture(autouse=True)
def _bounds(settings: Any) -> None:
    settings.BODY_MAX_BYTES, settings.BODY_TIMEOUT_S = 10, 0.2


async def echo(scope: Any, receive: Callable[..., Any], send: Callable[..., Any]) -> None:
    """Take the whole body in, wait for the end of the connection for a while, answer."""
    body, more = b"", True
    while more:
        message = await receive()
        body, more = body + message["body"], message["more_body"]
    gone = asyncio.ensure_future(receive())
    await asyncio.sleep(0.3)  # longer than a body may take
    assert not gone.done()
    gone.cancel()
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": body})


def served(parts: Parts, path: str = "/api/v1/x/", **headers: str) -> tuple[int, bytes, int]:
    """Return status and body of the answer, and how many parts were asked for."""
    sent: list[dict[str, Any]] = []
    asked = 0

    async def stream() -> AsyncIterator[dict[str, Any]]:
        for number, (pause, body) in enumerate(parts, 1):
            await asyncio.sleep(pause)
            yield {"type": "http.request", "body": body, "more_body": number < len(parts)}
        await asyncio.sleep(60)

    source = stream()

    async def receive() -> dict[str, Any]:
        nonlocal asked
        asked += 1
        return await anext(source)

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    given = [(name.replace("_", "-").encode(), text.encode()) for name, text in headers.items()]
    scope = {"type": "http", "path": path, "headers": given}
    asyncio.run(BoundedBodies(echo)(scope, receive, send))
    return sent[0]["status"], sent[1]["body"], asked


def test_a_body_within_the_bounds_comes_whole() -> None:
    assert served([(0, b"12345"), (0.01, b"67890")])[:2] == (200, b"1234567890")


def test_a_body_that_says_it_is_too_large_is_not_even_read() -> None:
    status, body, asked = served([(0, b"x")], content_length="11")
    assert (status, asked) == (413, 0)
    assert json.loads(body)["detail"] == "The body is larger than 10 bytes."
    assert served([(0, b"x")], content_length="9" * 400)[0] == 413


def test_a_body_that_turns_out_too_large_is_read_no_further() -> None:
    status, _body, asked = served([(0, b"123456"), (0, b"78901"), (0, b"2")])
    assert (status, asked) == (413, 2)


def test_a_body_that_drips_is_given_up() -> None:
    status, body, _asked = served([(0.05, b"x")] * 9)
    assert status == 408
    assert json.loads(body)["detail"] == "The body was not here after 0.2 s."


def test_pages_are_told_in_plain_words() -> None:
    status, body, _asked = served([(0, b"x" * 11)], path="/submit/")
    assert (status, body) == (413, b"The body is larger than 10 bytes.")
