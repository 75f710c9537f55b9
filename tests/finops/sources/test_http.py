"""One host, bounded answers, no secret anywhere: over a real socket."""

import gzip
import logging
import socket
import threading

import pytest
from werkzeug import Response

from finops.sources.failures import SourceError
from finops.sources.http import Address, Connection
from finops.sources.recording import Recording, recorded, unpacked

SECRET = "sk-s3cret-key"


@pytest.fixture
def connect(httpserver):
    def open_(**more):
        address = Address(
            f"http://localhost:{httpserver.port}",
            frozenset({"localhost"}),
            headers={"Authorization": f"Bearer {SECRET}"},
        )
        return Connection(address, **more)

    return open_


def code_of(connection, path="x"):
    with connection as asked, pytest.raises(SourceError) as caught:
        asked.get(path)
    assert SECRET not in f"{caught.value} {caught.value.numbers}"
    return caught.value.code


def test_a_body_that_says_it_is_too_long_is_not_even_read(httpserver, connect):
    httpserver.expect_request("/x").respond_with_data(b"x" * 2000)
    assert code_of(connect(largest_body=1000)) == "SOURCE_TOO_LARGE"


def test_a_body_that_grows_when_it_is_unpacked_is_cut_off(httpserver, connect):
    packed = gzip.compress(b"x" * 2_000_000)
    headers = {"Content-Encoding": "gzip"}
    httpserver.expect_request("/x").respond_with_data(packed, headers=headers)
    assert len(packed) < 10_000
    assert code_of(connect(largest_body=10_000)) == "SOURCE_TOO_LARGE"


def test_a_body_that_breaks_off_is_asked_for_again_and_then_refused():
    answer = b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{"
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(5)

        def serve():
            for _ in range(3):
                client, _address = server.accept()
                with client:
                    client.recv(65536)
                    client.sendall(answer)

        served = threading.Thread(target=serve)
        served.start()
        port = server.getsockname()[1]
        address = Address(f"http://127.0.0.1:{port}", frozenset({"127.0.0.1"}))
        assert code_of(Connection(address)) == "SOURCE_BROKE_OFF"
        served.join(5)
        assert not served.is_alive()  # it was asked three times


def test_nobody_waits_forever():
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = Address(f"http://127.0.0.1:{silent.getsockname()[1]}", frozenset({"127.0.0.1"}))
        assert code_of(Connection(address, read_s=0.1)) == "SOURCE_TIMED_OUT"


@pytest.mark.parametrize(
    ("status", "code", "tries"),
    [
        (401, "SOURCE_REFUSED_US", 1),
        (403, "SOURCE_REFUSED_US", 1),
        (302, "SOURCE_REDIRECTED", 1),
        (404, "SOURCE_ANSWERED", 1),
        (429, "SOURCE_ANSWERED", 3),
        (500, "SOURCE_ANSWERED", 3),
    ],
)
def test_what_is_no_success_is_never_parsed(httpserver, connect, status, code, tries):
    asked = []

    def answer(request):
        asked.append(request)
        return Response(b'{"a": 1}', status, {"Location": "http://169.254.169.254/"})

    httpserver.expect_request("/x").respond_with_handler(answer)
    assert code_of(connect()) == code
    assert len(asked) == tries


@pytest.mark.parametrize(
    "url",
    [
        "http://example.org",
        "http://localhost.example.org",
        "http://user:pw@localhost",
        "ftp://localhost",
        "http://",
        "http://localhost/?a=b",
    ],
)
def test_no_other_address_is_ever_called(url):
    with pytest.raises(SourceError) as caught:
        Connection(Address(url, frozenset({"localhost"})))
    assert "pw" not in str(caught.value.numbers)


def test_the_secret_is_sent_and_stands_nowhere_else(httpserver, connect, caplog):
    caplog.set_level(logging.DEBUG)
    given = []

    def answer(request):
        given.append(request.headers)
        return Response(b"{}")

    httpserver.expect_request("/secret").respond_with_handler(answer)
    kept = Recording()
    with connect(recording=kept) as asked:
        asked.get("secret", page=1)
    assert given[0]["Authorization"] == f"Bearer {SECRET}"
    assert given[0]["User-Agent"] == "gpuplatform-cost"
    assert SECRET not in f"{kept} {Address('http://x', frozenset(), {'A': SECRET})}"
    assert SECRET not in caplog.text


def test_a_recording_comes_back_as_it_was_and_equal_ones_are_equal_bytes():
    kept = Recording()
    kept.add("GET x?a=1", '{"name": "ñ\u2028\u0085"}'.encode())
    kept.add("GET y", b"")
    kept.add("GET z", b"\xff\n\xe9")
    again = unpacked(kept.packed())
    assert again == kept
    assert recorded(kept.exchanges).packed() == kept.packed()
    assert again.fingerprint() == kept.fingerprint()
    other = Recording()
    other.add("GET x?a=1", kept.exchanges[0].body)
    assert other.fingerprint() != kept.fingerprint()
