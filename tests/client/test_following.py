"""gpuctl list workloads -w: a line for each change, taken up where a stream ended."""

import json

import httpx
import pytest

from gpuplatform.client import options
from gpuplatform.client.main import main

ROW = {
    "uid": "u1", "namespace": "ns", "name": "train", "team": "datos", "queue": "lq", "kind": "Job",
    "status": "pending", "gpus": 4, "position": 1, "pending_reason": "", "blockers": [],
    "created_at": "2026-06-01T12:00:00Z", "waiting_since": "2026-06-01T12:00:00Z", "outcome": "",
    "admitted_at": None, "started_at": None, "finished_at": None, "priority": 0,
}  # fmt: skip


def event(kind: str, body: object, mark: str) -> str:
    return f"event: {kind}\ndata: {json.dumps(body)}\nid: {mark}\n\n"


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> list[httpx.Request]:
    """A server whose streams break, and which sends its follower away in the end."""
    asked: list[httpx.Request] = []
    names = {"uid": "u1", "namespace": "ns", "name": "train"}
    answers = [
        (200, event("added", ROW, "m1") + event("bookmark", {}, "m2") + "event: modif"),
        (200, event("modified", {**ROW, "status": "running"}, "m3") + event("gone", {}, "")),
        (200, event("deleted", names, "m4")),
        (410, '{"errors": []}'),
        (401, '{"errors": [{"code": "signed_out", "detail": "Sign in."}]}'),
    ]

    def answer(request: httpx.Request) -> httpx.Response:
        status, text = answers[len(asked)]
        asked.append(request)
        return httpx.Response(status, text=text)

    monkeypatch.setattr(options, "transport", lambda: httpx.MockTransport(answer))
    monkeypatch.setenv("GPUCTL_URL", "http://testserver")
    monkeypatch.setenv("GPUCTL_TOKEN", "gpt_x")
    return asked


def test_each_change_is_a_line_and_a_broken_stream_goes_on(
    server: list[httpx.Request], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["list", "workloads", "-w", "-t", "datos"]) == 6
    out, err = capsys.readouterr()
    assert [line.split("\t")[:4] for line in out.splitlines()] == [
        ["train", "datos", "lq", "pending"],
        ["train", "datos", "lq", "running"],
    ]
    assert err.splitlines() == ["ns/train has left this list.", "signed_out: Sign in."]
    assert [r.headers.get("Last-Event-ID") for r in server] == [None, "m2", None, "m4", None]
    assert {r.url.params["team"] for r in server} == {"datos"}


def test_programs_get_an_object_for_each_line(
    server: list[httpx.Request], capsys: pytest.CaptureFixture[str]
) -> None:
    main(["list", "workloads", "--watch", "-o", "json"])
    found = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [one["event"] for one in found] == ["added", "modified", "deleted"]
    assert found[0]["object"] == ROW
