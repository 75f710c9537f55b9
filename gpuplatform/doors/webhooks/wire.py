"""The call itself: signed, to a host that may be called, bounded in time, and nothing is read.

The guard stands where the connection is made: the name is resolved once, each address that it has
is judged, and the connection goes to one of these, so that no second answer of the DNS slips by.
Refused are loopback, private, link-local (with the metadata services of clouds), shared, reserved
and multicast addresses, also where they are wrapped in IPv6, unless ``WEBHOOK_NETWORKS`` has
them; and every host that ``WEBHOOK_HOSTS`` does not name. Redirects are not followed, and of an
answer only the status is taken. The signature is that of Standard Webhooks 1.0.0.
"""

import hashlib
import hmac
import socket
import ssl
import time
from base64 import b64encode
from collections.abc import Iterable
from dataclasses import dataclass
from fnmatch import fnmatchcase
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Any
from urllib.parse import urlsplit

import httpcore
from django.conf import settings

from gpuplatform import __version__

WHOLE_S = 10.0  # of one call, from the name to the status
SAID = 200  # characters of an error that are kept
SECRET_PREFIX = "whsec_"  # noqa: S105  # how receivers know what it is
AGENT = f"gpuplatform-webhooks/{__version__}"
Address = IPv4Address | IPv6Address
# What is somebody's metadata service although its address looks like any other.
NEVER = [ip_network("168.63.129.16/32")]
WRAPPED = ip_network("64:ff9b::/96")  # NAT64: the last 32 bits are an IPv4 address


class Refused(Exception):
    """A place that may not be called; the text says why."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What came of a call: ``code`` None and an ``error`` where nobody answered."""

    code: int | None
    error: str
    took_ms: int

    @property
    def is_taken(self) -> bool:
        """Return whether the receiver has it."""
        return self.code is not None and 200 <= self.code < 300  # noqa: PLR2004


# ---- signing -----------------------------------------------------------------------------------
def secret_of(salt: str) -> bytes:
    """Return the key of a webhook. It is kept nowhere: a stolen database signs nothing."""
    return hmac.digest(settings.SECRET_KEY.encode(), b"webhook:" + salt.encode(), "sha256")


def shown_secret(salt: str) -> str:
    """Return the key as receivers take it."""
    return SECRET_PREFIX + b64encode(secret_of(salt)).decode()


def headers_of(delivery: str, at: int, body: bytes, salt: str) -> dict[str, str]:
    """Return the headers of a call at ``at``, in Unix seconds.

    The signature is HMAC-SHA256 over id, time and body.
    """
    signed = f"{delivery}.{at}.".encode() + body
    signature = b64encode(hmac.new(secret_of(salt), signed, hashlib.sha256).digest()).decode()
    return {
        "webhook-id": delivery,
        "webhook-timestamp": str(at),
        "webhook-signature": f"v1,{signature}",
        "content-type": "application/json",
        "user-agent": AGENT,
        "connection": "close",
    }


# ---- the guard ---------------------------------------------------------------------------------
def networks() -> list[IPv4Network | IPv6Network]:
    """Return the networks that may be called although they are not public."""
    return [ip_network(text, strict=False) for text in settings.WEBHOOK_NETWORKS]


def check_host(host: str) -> None:
    """Refuse a host that is not among those that the operator names; ``*`` names all of them.

    Raises:
        Refused: it is not.
    """
    if not any(fnmatchcase(host.lower(), pattern) for pattern in settings.WEBHOOK_HOSTS):
        raise Refused(f"{host} is not among the hosts that webhooks may call (WEBHOOK_HOSTS)")


def check_address(text: str, *, is_plain: bool) -> None:
    """Refuse an address that is not public; without TLS, one that is not explicitly allowed.

    Raises:
        Refused: it may not be called.
    """
    address = _unwrapped(ip_address(text.partition("%")[0]))
    if any(address in network for network in networks()):
        return
    if is_plain:
        raise Refused("only https is spoken with public addresses")
    is_odd = any(address in network for network in NEVER) or address.is_multicast
    if is_odd or not address.is_global:
        raise Refused(f"{address} is not a public address")


def _unwrapped(address: Address) -> Address:
    """Return the IPv4 address that an IPv6 address leads to, if it does."""
    if isinstance(address, IPv4Address):
        return address
    inner = address.ipv4_mapped or address.sixtofour
    if inner is None and address in WRAPPED:
        inner = IPv4Address(int(address) & 0xFFFFFFFF)
    return inner or address


class GuardedBackend(httpcore.NetworkBackend):
    """Connects where the guard allows, and lets nothing last longer than until ``until``."""

    def __init__(self, until: float, *, is_plain: bool) -> None:
        self.until, self.is_plain = until, is_plain
        self.inner = httpcore.SyncBackend()

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ARG002  # one deadline bounds all
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.NetworkStream:
        """Resolve, judge every address, and connect to the first that takes us."""
        check_host(host)
        try:
            found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        except (OSError, UnicodeError) as error:
            raise httpcore.ConnectError(f"{host} has no address") from error
        addresses = list(dict.fromkeys(str(one[4][0]) for one in found))
        for address in addresses:
            check_address(address, is_plain=self.is_plain)
        last: Exception = httpcore.ConnectError(f"{host} has no address")
        for address in addresses:
            try:
                stream = self.inner.connect_tcp(
                    address, port, self.left(), local_address, socket_options
                )
            except (httpcore.ConnectError, httpcore.ConnectTimeout) as error:
                last = error
            else:
                return BoundedStream(stream, self)
        raise last

    def left(self) -> float:
        """Return the seconds that are left.

        Raises:
            httpcore.ReadTimeout: none.
        """
        if (left := self.until - time.monotonic()) <= 0:
            raise httpcore.ReadTimeout
        return left


class BoundedStream(httpcore.NetworkStream):
    """A connection whose every wait ends with the deadline, however slowly an answer drips in."""

    def __init__(self, inner: httpcore.NetworkStream, backend: GuardedBackend) -> None:
        self.inner, self.backend = inner, backend

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:  # noqa: ARG002
        """Read what has come."""
        return self.inner.read(max_bytes, self.backend.left())

    def write(self, buffer: bytes, timeout: float | None = None) -> None:  # noqa: ARG002
        """Write all of it."""
        self.inner.write(buffer, self.backend.left())

    def close(self) -> None:
        """Close it."""
        self.inner.close()

    def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,  # noqa: ARG002
    ) -> httpcore.NetworkStream:
        """Speak TLS from here on; the certificate must be of the name, not of the address."""
        inner = self.inner.start_tls(ssl_context, server_hostname, self.backend.left())
        return BoundedStream(inner, self.backend)

    def get_extra_info(self, info: str) -> Any:
        """Return what the connection knows of itself."""
        return self.inner.get_extra_info(info)


# ---- the call ----------------------------------------------------------------------------------
def post(url: str, body: bytes, headers: dict[str, str], *, whole_s: float = WHOLE_S) -> Answer:
    """Send a body once, and return what came of it; nothing is raised for what others do."""
    begun = time.monotonic()
    try:
        code, error = _post(url, body, headers, begun + whole_s), ""
    except Refused as refusal:
        code, error = None, str(refusal)
    except (httpcore.TimeoutException, TimeoutError):
        code, error = None, f"no answer within {whole_s:g} s"
    except (httpcore.NetworkError, httpcore.ProtocolError, OSError, ValueError) as failure:
        code, error = None, str(failure) or type(failure).__name__
    if code is not None and 300 <= code < 400:  # noqa: PLR2004
        error = "it answers with a redirect, and none is followed"
    return Answer(code, error[:SAID], round((time.monotonic() - begun) * 1000))


def _post(url: str, body: bytes, headers: dict[str, str], until: float) -> int:
    parts = urlsplit(url)
    backend = GuardedBackend(until, is_plain=parts.scheme != "https")
    sent = [*{"host": parts.netloc, "content-length": str(len(body)), **headers}.items()]
    context = ssl.create_default_context() if parts.scheme == "https" else None
    with (
        httpcore.ConnectionPool(ssl_context=context, network_backend=backend) as pool,
        pool.stream("POST", url, headers=sent, content=body) as response,
    ):
        return response.status
