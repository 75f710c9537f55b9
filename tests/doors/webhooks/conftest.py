"""A receiver on this machine that remembers what it was sent, and answers as a test wants."""

import hmac
from base64 import b64decode, b64encode
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

import pytest

from gpuplatform.doors.models import Webhook
from gpuplatform.doors.webhooks.rules import WebhookSpec
from gpuplatform.doors.webhooks.services import create_webhook


@dataclass
class Receiver:
    """What came, as (headers, body), and what is answered: a status, or what a handler does."""

    url: str = ""
    answer: int | Callable[[BaseHTTPRequestHandler], None] = 200
    got: list[tuple[dict[str, str], bytes]] = field(default_factory=list)

    @property
    def ids(self) -> list[str]:
        return [headers["webhook-id"] for headers, _body in self.got]


def is_signed(secret: str, headers: dict[str, str], body: bytes) -> bool:
    """Return whether a receiver that follows Standard Webhooks would believe it."""
    key = b64decode(secret.removeprefix("whsec_"))
    signed = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + body
    wanted = b64encode(hmac.digest(key, signed, "sha256")).decode()
    return headers["webhook-signature"] == f"v1,{wanted}"


@pytest.fixture(autouse=True)
def any_public_host(settings: Any) -> None:
    """Every host may be called, unless its address forbids it."""
    settings.WEBHOOK_HOSTS = ["*"]


@pytest.fixture
def receiver(settings: Any) -> Iterator[Receiver]:
    """A receiver that may be called."""
    known = Receiver()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            known.got.append(({k.lower(): v for k, v in self.headers.items()}, body))
            if callable(known.answer):
                known.answer(self)
                return
            self.send_response(known.answer)
            if known.answer in {301, 302, 307}:
                self.send_header("location", known.url + "elsewhere")
            self.end_headers()

        def log_message(self, *_args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    known.url = f"http://127.0.0.1:{server.server_port}/"
    settings.WEBHOOK_NETWORKS = ["127.0.0.0/8"]
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield known
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def hook_of(db: None, receiver: Receiver) -> Callable[..., Webhook]:
    """Return a maker of webhooks of the receiver."""

    def make(*events: str, team: Any = None, name: str = "chat", url: str = "") -> Webhook:
        wanted = events or ("workload.submitted", "workload.finished")
        spec = WebhookSpec(name, url or receiver.url, wanted, team)
        return create_webhook(spec, None)[0]

    return make
