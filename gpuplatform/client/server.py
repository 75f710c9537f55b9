"""One conversation with the platform's REST: pages followed, refusals told, nothing asked twice.

What may be repeated without harm (reading, and what carries an idempotency key) is tried again
where the line breaks or the server asks for patience.
"""

import time
from collections.abc import Iterator, Mapping
from gettext import gettext as _
from typing import Any
from urllib.parse import quote
from uuid import uuid4

import httpx

from gpuplatform.client.config import Place
from gpuplatform.client.failures import Exit, Failed, of_problem

ROOT = "/api/v1/"
TIMEOUT = httpx.Timeout(60, connect=10)
TRIES = 3
PAGE = 500  # rows of a list at once
PATIENCE_S = 10.0  # a server that asks for more is told on
BUSY = (429, 503)
YAML = "application/yaml"


def quoted(name: str) -> str:
    """Return a name as one segment of an address, whatever somebody typed."""
    return quote(name, safe="") if name.strip(".") else name.replace(".", "%2E")


class Server:
    """The REST of one platform, asked by the holder of one token."""

    def __init__(self, place: Place, transport: httpx.BaseTransport | None = None) -> None:
        self.url = place.url.rstrip("/")
        given = {"Authorization": f"Bearer {place.token}"} if place.token else {}
        headers = {"Accept": "application/json", **given}
        try:
            self._http = httpx.Client(
                base_url=self.url, headers=headers, timeout=TIMEOUT, transport=transport
            )
        except (httpx.InvalidURL, ValueError) as error:
            raise Failed(Exit.ERROR, f"{place.url}: {error}") from error

    def get(self, path: str, **parameters: object) -> Any:
        """Return what stands at ``path`` below ``/api/v1/``."""
        return self.ask("GET", path, parameters=parameters).json()

    def manifests(self, path: str, **parameters: object) -> str:
        """Return what stands at ``path`` as manifests in YAML."""
        wanted = {"Accept": YAML}
        return self.ask("GET", path, parameters=parameters, headers=wanted).text

    def rows(self, path: str, **parameters: object) -> Iterator[dict[str, Any]]:
        """Yield all rows of a list, page by page."""
        answer = self.get(path, **{"limit": PAGE, **parameters})
        while True:
            rows: list[dict[str, Any]] = answer if isinstance(answer, list) else answer["results"]
            yield from rows
            following = None if isinstance(answer, list) else answer.get("next")
            if not following:
                return
            answer = self._send("GET", following).json()

    def stream(
        self, path: str, mark: str = "", **parameters: object
    ) -> Iterator[tuple[str, str, str]]:
        """Yield (event, data, mark) of a stream of server-sent events until it ends.

        ``mark``: what was told last; the stream goes on after it. A line that breaks ends it.

        Raises:
            Failed: it could not be opened.
        """
        wanted = {"Accept": "text/event-stream", **({"Last-Event-ID": mark} if mark else {})}
        asked = {k: str(v) for k, v in parameters.items() if v not in (None, "")}
        request = self._http.build_request("GET", f"{ROOT}{path}", params=asked, headers=wanted)
        try:
            response = self._http.send(request, stream=True)
        except httpx.TransportError as error:
            words = _("{url} cannot be reached: {error}")
            raise Failed(Exit.ERROR, words.format(url=self.url, error=error)) from error
        try:
            if not response.is_success:
                response.read()
                self._judged(response)
            yield from _events_in(response.iter_lines())
        except httpx.TransportError:
            time.sleep(0.2)
        finally:
            response.close()

    def ask(
        self,
        method: str,
        path: str,
        *,
        parameters: Mapping[str, object] | None = None,
        headers: Mapping[str, str] | None = None,
        body: Any = None,
        text: bytes | None = None,
    ) -> httpx.Response:
        """Send one request and return its answer; a POST carries a key, so it counts once.

        Args:
            method: of HTTP.
            path: below ``/api/v1/``.
            parameters: of the query; those that are None or "" are left out.
            headers: beside those of every request.
            body: sent as JSON.
            text: sent as YAML, as it is.

        Raises:
            Failed: it could not be asked, or it refused.
        """
        asked = {k: v for k, v in (parameters or {}).items() if v not in (None, "")}
        sent = dict(headers or {})
        if method == "POST":
            sent.setdefault("Idempotency-Key", str(uuid4()))
        if text is not None:
            sent["Content-Type"] = YAML
        more: dict[str, Any] = {"json": body} if body is not None else {"content": text}
        return self._send(method, f"{ROOT}{path}", params=asked, headers=sent, **more)

    def _send(self, method: str, address: str, **request: Any) -> httpx.Response:
        for left in reversed(range(TRIES if method in ("GET", "POST") else 1)):
            try:
                response = self._http.request(method, address, **request)
            except httpx.TransportError as error:
                if not left:
                    words = _("{url} cannot be reached: {error}")
                    raise Failed(Exit.ERROR, words.format(url=self.url, error=error)) from error
                time.sleep(0.2)
                continue
            pause = _pause(response)
            if left and pause is not None:
                time.sleep(pause)
                continue
            return self._judged(response)
        raise AssertionError

    def _judged(self, response: httpx.Response) -> httpx.Response:
        if response.is_success:
            return response
        if response.is_redirect:
            words = _("{url} answers with a redirect to {target}; log in with that address.")
            target = response.headers.get("Location", "")
            raise Failed(Exit.ERROR, words.format(url=self.url, target=target))
        try:
            body = response.json()
        except ValueError:
            body = None
        request_id = response.headers.get("X-Request-ID", "-")
        raise of_problem(response.status_code, body, request_id)


def _events_in(lines: Iterator[str]) -> Iterator[tuple[str, str, str]]:
    """Yield the events of a stream; what is cut off at its end is none."""
    found: dict[str, str] = {}
    for line in lines:
        name, _colon, value = line.partition(": ")
        if line:
            found[name] = value
        elif found:
            yield found.get("event", ""), found.get("data", ""), found.get("id", "")
            found = {}


def _pause(response: httpx.Response) -> float | None:
    """Return how long a busy server wants to be left alone; None where it is not, or too long."""
    if response.status_code not in BUSY:
        return None
    given = response.headers.get("Retry-After", "1")
    wanted = float(given) if given.isascii() and given.isdecimal() else 1.0
    return wanted if wanted <= PATIENCE_S else None
