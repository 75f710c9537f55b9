"""HTTP to one configured host: bounded in time, size and tries; no redirect is followed.

The address and the secret come from the outside; neither the secret nor a header ever stands in
an error or in a recording.
"""

import re
import ssl
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol, Self
from urllib.parse import urlsplit

import httpx
import stamina

from finops.sources.failures import SAID, SourceError, TransientError
from finops.sources.recording import Recording

CONNECT_S = 5.0
READ_S = 300.0
WHOLE_S = 600.0  # of one answer, however slowly it drips in
LARGEST_BODY = 64 * 1024 * 1024
TRIES = 3
WAIT_FIRST_S, WAIT_MOST_S = 1.0, 10.0
TAG = re.compile(r"<[^<>]*>")
AGENT = "gpuplatform-cost"
TEMPORARY = frozenset({408, 425, 429, 500, 502, 503, 504})
UNAUTHORISED = frozenset({401, 403})


@dataclass(frozen=True, slots=True)
class Address:
    """Where a source is and how one proves who asks; ``headers`` and ``basic`` are secret."""

    url: str
    allowed_hosts: frozenset[str]
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    basic: tuple[str, str] | None = field(default=None, repr=False)

    @property
    def host(self) -> str:
        """Host and, where it is written, port."""
        return urlsplit(self.url).netloc.rpartition("@")[2].lower()

    def check(self) -> None:
        """Refuse an address that is not plain http(s) to a host that the operator allows.

        Raises:
            SourceError: another scheme, a name or password in the address, a foreign host.
        """
        parts = urlsplit(self.url)
        plain = parts.scheme in {"http", "https"} and "@" not in parts.netloc and parts.hostname
        if not plain or parts.query or parts.fragment:
            raise SourceError("SOURCE_BAD_ADDRESS", url=self.url.rpartition("@")[2][:SAID])
        if not {self.host, parts.hostname} & self.allowed_hosts:
            raise SourceError("SOURCE_HOST_NOT_ALLOWED", host=self.host)


class Asker(Protocol):
    """Whatever answers questions: a connection, or a recording of one."""

    def get(self, path: str, **query: str | int) -> bytes:
        """Return the body of the answer."""


class Replay:
    """Answers from a recording, to the same questions."""

    def __init__(self, recording: Recording) -> None:
        self._bodies = {one.request: one.body for one in recording.exchanges}

    def get(self, path: str, **query: str | int) -> bytes:
        """Return the body that was recorded.

        Raises:
            TransientError: the source did not answer this then.
        """
        try:
            return self._bodies[request_text(path, query)]
        except KeyError:
            raise TransientError("SOURCE_NOT_RECORDED") from None


def request_text(path: str, query: Mapping[str, str | int]) -> str:
    """Return a question as a recording names it; it holds no secret."""
    return f"GET {httpx.URL(path, params=query)}"


class Connection:
    """Questions to one source, one after another; what it answers is recorded.

    ``before`` is called ahead of each try: whoever holds a lease prolongs it there. ``kept``
    says what of an answer may be recorded.
    """

    def __init__(
        self,
        address: Address,
        recording: Recording | None = None,
        *,
        before: Callable[[], None] = lambda: None,
        kept: Callable[[str, bytes], bytes] = lambda _path, body: body,
        read_s: float = READ_S,
        largest_body: int = LARGEST_BODY,
    ) -> None:
        address.check()
        self.recording = recording if recording is not None else Recording()
        self._before = before
        self._kept = kept
        self._largest = largest_body
        self._read_s = read_s
        self._client = httpx.Client(
            base_url=address.url.rstrip("/") + "/",
            headers={"User-Agent": AGENT, "Accept": "application/json", **address.headers},
            auth=address.basic,
            timeout=httpx.Timeout(CONNECT_S, read=read_s),
            follow_redirects=False,
            verify=_trust() if address.url.startswith("https:") else False,
            trust_env=False,  # no proxy and no .netrc that the operator did not name here
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self._client.close()

    def get(self, path: str, **query: str | int) -> bytes:
        """Return the body of an answer, tried again while that may help.

        Raises:
            SourceError: no answer, not the one of a success, or one that is too large.
        """
        for attempt in stamina.retry_context(
            on=TransientError,
            attempts=TRIES,
            timeout=None,
            wait_initial=WAIT_FIRST_S,
            wait_max=WAIT_MOST_S,
        ):
            with attempt:
                self._before()
                body = self._once(path, query)
                self.recording.add(request_text(path, query), self._kept(path, body))
                return body
        raise AssertionError  # the last attempt raises

    def post(self, path: str, body: bytes) -> bytes:
        """Send an order, once; return the body of the answer. Nothing of it is recorded.

        Raises:
            SourceError: no answer, so that nobody can say whether it was taken, or a refusal.
        """
        self._before()
        return self._once(path, {}, body)

    def _once(
        self, path: str, query: Mapping[str, str | int], order: bytes | None = None
    ) -> bytes:
        method = "GET" if order is None else "POST"
        told = {} if order is None else {"Content-Type": "application/json"}
        try:
            with self._client.stream(
                method, path, params=query, content=order, headers=told
            ) as response:
                body = self._body(response)
                _check_status(response, body)
                return body
        except httpx.TimeoutException as error:
            raise TransientError("SOURCE_TIMED_OUT", seconds=int(self._read_s)) from error
        except httpx.RemoteProtocolError as error:
            raise TransientError("SOURCE_BROKE_OFF") from error
        except httpx.TransportError as error:
            raise TransientError("SOURCE_UNREACHABLE", problem=_kind(error)) from error
        except httpx.DecodingError as error:
            raise TransientError("SOURCE_BROKE_OFF") from error

    def _body(self, response: httpx.Response) -> bytes:
        """Return the body, unpacked; it may be neither longer nor slower than any."""
        declared = response.headers.get("Content-Length", "0")
        if declared.isdecimal() and int(declared) > self._largest:
            raise SourceError("SOURCE_TOO_LARGE", limit=self._largest)
        until = time.monotonic() + max(WHOLE_S, self._read_s)
        parts, size = [], 0
        for part in response.iter_bytes():
            parts.append(part)
            size += len(part)
            if size > self._largest:
                raise SourceError("SOURCE_TOO_LARGE", limit=self._largest)
            if time.monotonic() > until:
                raise TransientError("SOURCE_TIMED_OUT", seconds=int(WHOLE_S))
        return b"".join(parts)


def _trust() -> ssl.SSLContext:
    """Return the machine's own trust in certificates; slow to make, and needed for TLS only."""
    return ssl.create_default_context()


def _check_status(response: httpx.Response, body: bytes) -> None:
    """Raise unless the answer is one of success; the body of a refusal is never parsed."""
    status = response.status_code
    if status in UNAUTHORISED:
        raise SourceError("SOURCE_REFUSED_US", status=status)
    if response.is_redirect:
        raise SourceError("SOURCE_REDIRECTED", status=status)
    if not response.is_success:
        error = TransientError if status in TEMPORARY else SourceError
        raise error("SOURCE_ANSWERED", status=status, said=_said(body))


def _said(body: bytes) -> str:
    """Return the beginning of an error's body as one line of text, without tags of HTML."""
    text = TAG.sub(" ", body[: 8 * SAID].decode("utf-8", "replace"))
    return " ".join(text.split())[:SAID]


def _kind(error: Exception) -> str:
    """Return what kind of failure it is; its own words may hold an address with a secret."""
    return type(error).__name__
