"""A call goes where it may, signed, and ends in time whatever the other side does."""

import socket
import time
from typing import Any

import pytest

from gpuplatform.doors.webhooks import wire

from .conftest import Receiver, is_signed

PRIVATE = (
    "127.0.0.1",
    "127.8.8.8",
    "0.0.0.0",
    "10.1.2.3",
    "172.16.0.1",
    "192.168.1.1",
    "100.64.0.1",
    "169.254.169.254",
    "168.63.129.16",
    "224.0.0.1",
    "255.255.255.255",
    "::1",
    "::",
    "fe80::1",
    "fe80::1%eth0",
    "fd00:ec2::254",
    "ff02::1",
    "::ffff:127.0.0.1",
    "::ffff:169.254.169.254",
    "64:ff9b::7f00:1",
    "2002:7f00:1::",
)


def post(url: str, **more: Any) -> wire.Answer:
    body = b'{"id":"x"}'
    return wire.post(url, body, wire.headers_of("x", 1_750_000_000, body, "salt"), **more)


@pytest.mark.parametrize("address", PRIVATE)
def test_an_address_that_is_not_public_is_refused(address: str) -> None:
    with pytest.raises(wire.Refused, match="not a public address"):
        wire.check_address(address, is_plain=False)


@pytest.mark.parametrize("address", ["8.8.8.8", "2001:4860:4860::8888", "::ffff:8.8.8.8"])
def test_a_public_address_is_called_by_https_only(address: str) -> None:
    wire.check_address(address, is_plain=False)
    with pytest.raises(wire.Refused, match="only https"):
        wire.check_address(address, is_plain=True)


def test_what_the_operator_allows_is_no_more_than_that(settings: Any) -> None:
    settings.WEBHOOK_NETWORKS = ["10.1.0.0/16", "fd00::/8"]
    for address in ("10.1.2.3", "::ffff:10.1.2.3", "fd00::5"):
        wire.check_address(address, is_plain=True)
    with pytest.raises(wire.Refused):
        wire.check_address("10.2.0.1", is_plain=False)


@pytest.mark.parametrize(
    ("host", "allowed"),
    [
        ("hooks.example.org", True),
        ("HOOKS.example.org", True),
        ("a.example.com", True),
        ("example.com", False),
        ("a.example.com.evil.net", False),
    ],
)
def test_where_hosts_are_named_no_other_is_called(host: str, allowed: bool, settings: Any) -> None:
    settings.WEBHOOK_HOSTS = ["hooks.example.org", "*.example.com"]
    if allowed:
        wire.check_host(host)
        return
    with pytest.raises(wire.Refused, match="not among the hosts"):
        wire.check_host(host)


def test_until_hosts_are_named_none_is_called(receiver: Receiver, settings: Any) -> None:
    settings.WEBHOOK_HOSTS = []
    assert "not among the hosts" in post(receiver.url).error
    assert receiver.got == []


def test_nothing_reaches_a_receiver_that_may_not_be_called(
    receiver: Receiver, settings: Any
) -> None:
    settings.WEBHOOK_NETWORKS = []
    assert "only https" in post(receiver.url).error
    assert "not a public address" in post(receiver.url.replace("http:", "https:")).error
    assert receiver.got == []


def test_a_name_with_one_address_inside_is_refused_whole(
    receiver: Receiver, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A name of somebody else may have any address; it is asked once and judged by all."""
    asked: list[str] = []

    def addresses(host: str, port: int, **_more: Any) -> list[Any]:
        asked.append(host)
        return [(0, 0, 0, "", (one, port)) for one in ("8.8.8.8", "169.254.169.254")]

    monkeypatch.setattr(socket, "getaddrinfo", addresses)
    answer = post("https://rebinding.example.org/")
    assert answer.error == "169.254.169.254 is not a public address"
    assert asked == ["rebinding.example.org"]


def test_what_is_sent_is_signed_over_id_time_and_body(receiver: Receiver) -> None:
    assert post(receiver.url + "a?b=c").is_taken
    ((headers, body),) = receiver.got
    secret = wire.shown_secret("salt")
    assert is_signed(secret, headers, body)
    assert not is_signed(secret, headers, body + b" ")
    assert not is_signed(secret, headers | {"webhook-timestamp": "1750000001"}, body)
    assert not is_signed(wire.shown_secret("other"), headers, body)
    assert headers["content-type"] == "application/json"
    assert headers["host"] == receiver.url[7:-1]


@pytest.mark.parametrize("code", [301, 302, 307])
def test_a_redirect_is_a_failure_and_is_not_followed(code: int, receiver: Receiver) -> None:
    receiver.answer = code
    answer = post(receiver.url)
    assert (answer.code, answer.is_taken, len(receiver.got)) == (code, False, 1)
    assert "redirect" in answer.error


@pytest.mark.parametrize("code", [400, 404, 410, 429, 500, 503])
def test_a_refusal_is_an_answer(code: int, receiver: Receiver) -> None:
    receiver.answer = code
    answer = post(receiver.url)
    assert (answer.code, answer.is_taken) == (code, False)


def test_a_receiver_that_is_slow_is_given_up_in_time(receiver: Receiver) -> None:
    receiver.answer = lambda _handler: time.sleep(1.5)
    answer = post(receiver.url, whole_s=0.3)
    assert (answer.code, answer.error) == (None, "no answer within 0.3 s")
    assert 250 < answer.took_ms < 1_200


def test_an_answer_that_drips_in_does_not_hold_the_line(receiver: Receiver) -> None:
    def drip(handler: Any) -> None:
        handler.wfile.write(b"HTTP/1.1 200 OK\r\n")
        for _ in range(40):
            time.sleep(0.05)
            try:
                handler.wfile.write(b"x: y\r\n")
                handler.wfile.flush()
            except OSError:
                return

    receiver.answer = drip
    answer = post(receiver.url, whole_s=0.4)
    assert (answer.code, answer.took_ms < 1_200) == (None, True)


def test_a_body_without_end_is_not_read(receiver: Receiver) -> None:
    def flood(handler: Any) -> None:
        handler.wfile.write(b"HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n")
        for _ in range(1_000):
            try:
                handler.wfile.write(b"x" * 65_536)
            except OSError:
                return

    receiver.answer = flood
    assert post(receiver.url).took_ms < 1_000


def test_what_is_no_answer_is_told_in_words(receiver: Receiver) -> None:
    receiver.answer = lambda handler: handler.wfile.write(b"nonsense\r\n\r\n")
    assert post(receiver.url).error
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        down = f"http://127.0.0.1:{free.getsockname()[1]}/"
    answer = post(down)
    assert (answer.code, "refused" in answer.error.lower()) == (None, True)
    assert post("https://nowhere.invalid/").error == "nowhere.invalid has no address"
