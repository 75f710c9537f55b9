"""Workloads are followed: what stands, what changes, once, and nothing that is not theirs."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.test import AsyncClient, Client

from gpuplatform.common import live
from queues.access import Actor, visible
from queues.models import ApiToken, Membership
from queues.services import revoke_token
from scheduling import following, lifecycle, services
from scheduling.cycle import run_cycle
from scheduling.following import Follower
from scheduling.models import Cycle, Workload, WorkloadEvent
from scheduling.selectors.changed import MarkTooOld
from tests.scheduling.loop.world import nodes, queue, work

pytestmark = pytest.mark.django_db
PATH = "/api/v1/workloads/"


@pytest.fixture(autouse=True)
def platform(cast: Any) -> None:
    nodes(1)
    queue("datos", 4)
    queue("ia", 4)


def seen(actor: Actor) -> Any:
    return visible(Workload.objects.select_related("team"), actor).order_by("-created_at", "uid")


def pending(actor: Actor) -> Any:
    return seen(actor).filter(status="pending")


def follower(user: Any, rows: Any = seen) -> Follower:
    return Follower(user.pk, None, rows, seen)


def sent(team: str, name: str, **more: Any) -> Workload:
    """Return work that was submitted, and its story begun."""
    row = work(team, name, **more)
    lifecycle.tell(row, "submitted", at=row.created_at)
    return row


def told(events: list[bytes]) -> list[tuple[str, str]]:
    """Return what events say: their kinds and the names of the rows."""
    found = []
    for event in events:
        lines = dict(line.split(": ", 1) for line in event.decode().strip().splitlines())
        found.append((lines["event"], json.loads(lines["data"]).get("name", "")))
    return found


def now() -> str:
    return live.read_news().mark


def test_who_begins_is_told_what_stands_newest_first_and_then_what_changes(cast: Any) -> None:
    for name in ("a", "b"):
        work("datos", name)
    lea = follower(cast.lea)
    assert told(lea.begin(now())) == [("added", "b"), ("added", "a"), ("bookmark", "")]

    sent("datos", "c")
    assert told(lea.catch_up(now())) == [("added", "c")]
    services.cancel_workload(Workload.objects.get(name="a").uid, actor=cast.lea)
    assert told(lea.catch_up(now())) == [("modified", "a")]
    assert told(lea.catch_up(now())) == []


def test_a_cycle_that_says_why_somebody_waits_tells_it(cast: Any) -> None:
    work("datos", "large", gpus=4)
    work("datos", "next", gpus=4)
    lea = follower(cast.lea)
    lea.begin(now())

    run_cycle()

    events = lea.catch_up(now())
    assert sorted(told(events)) == [("modified", "large"), ("modified", "next")]
    waits = json.loads(
        next(e for e in events if b'"next"' in e).decode().split("data: ")[1].split("\nid")[0]
    )
    assert (waits["status"], waits["position"]) == ("pending", 1)


def test_a_team_is_told_of_no_row_of_another(cast: Any) -> None:
    lea, ian, fin = follower(cast.lea), follower(cast.ian), follower(cast.fin)
    for one in (lea, ian, fin):
        one.begin(now())

    sent("ia", "secret", namespace="ns-ia")

    mark = now()
    assert told(lea.catch_up(mark)) == []
    assert told(ian.catch_up(mark)) == [("added", "secret")]
    assert told(fin.catch_up(mark)) == [("added", "secret")]


def test_rights_are_those_of_the_moment(cast: Any) -> None:
    lea = follower(cast.lea)
    lea.begin(now())
    Membership.objects.filter(user=cast.lea).delete()
    sent("datos", "late")
    assert told(lea.catch_up(now())) == []
    cast.lea.is_active = False
    cast.lea.save()
    with pytest.raises(MarkTooOld):
        lea.catch_up(now())


def test_what_leaves_the_filter_is_deleted_by_name_alone(cast: Any) -> None:
    one = work("datos", "a")
    lea = follower(cast.lea, pending)
    assert told(lea.begin(now())) == [("added", "a"), ("bookmark", "")]

    services.cancel_workload(one.uid, actor=cast.lea)

    (event,) = lea.catch_up(now())
    assert told([event]) == [("deleted", "a")]
    body = json.loads(event.decode().split("data: ")[1].split("\n")[0])
    assert body == {"uid": str(one.uid), "namespace": one.namespace, "name": "a"}


def test_who_was_away_hears_what_was_missed_and_what_of_it_is_new(cast: Any) -> None:
    old = work("datos", "old")
    mark = now()
    services.cancel_workload(old.uid, actor=cast.lea)
    sent("datos", "new")

    lea = follower(cast.lea)
    lea.mark, lea.resumed = mark, True

    assert sorted(told(lea.catch_up(now()))) == [("added", "new"), ("modified", "old")]


def test_too_much_at_once_or_too_long_ago_begins_anew(
    cast: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = work("datos", "a")
    lea = follower(cast.lea)
    lea.begin(now())
    monkeypatch.setattr("scheduling.selectors.changed.MOST", 3)
    for _step in range(4):
        WorkloadEvent.objects.create(workload=one, kind="restarted")
    with pytest.raises(MarkTooOld):
        lea.catch_up(now())

    run_cycle()
    run_cycle()
    old = now()
    run_cycle()
    run_cycle()
    newest = Cycle.objects.latest("id").pk
    Cycle.objects.filter(pk__lt=newest).delete()
    lea.mark = old
    with pytest.raises(MarkTooOld):
        lea.catch_up(now())


def test_a_step_that_is_committed_late_is_told_late(cast: Any) -> None:
    one = sent("datos", "a")
    newest = WorkloadEvent.objects.latest("id").pk
    WorkloadEvent.objects.create(pk=newest + 5, workload=sent("ia", "b"), kind="restarted")
    lea = follower(cast.lea)
    lea.begin(now())
    Workload.objects.filter(pk=one.pk).update(version=2, priority=7)
    WorkloadEvent.objects.create(pk=newest + 3, workload=one, kind="priority_changed")

    assert told(lea.catch_up(now())) == [("modified", "a")]
    assert told(lea.catch_up(now())) == []


def test_what_a_follower_remembers_is_bounded(cast: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in "abc":
        work("datos", name)
    monkeypatch.setattr(following, "MOST_REMEMBERED", 2)
    monkeypatch.setattr(following, "MOST_AT_FIRST", 3)
    lea = follower(cast.lea)
    lea.begin(now())
    assert len(lea.told) == 2


def asked(path: str, token: str, **headers: str) -> Any:
    """Return the answer of an ASGI server; its stream is not read."""
    return async_to_sync(AsyncClient().get)(path, headers={"Authorization": token, **headers})


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Follower, str]]:
    """Followers whose streams were asked for, with the marks they named."""
    found: list[tuple[Follower, str]] = []

    async def follow(one: Follower, mark: str) -> AsyncIterator[bytes]:
        yield b""

    def note(one: Follower, mark: str) -> AsyncIterator[bytes]:
        found.append((one, mark))
        return follow(one, mark)

    monkeypatch.setattr(following.gallery, "follow", note)
    return found


@pytest.mark.parametrize(
    ("path", "headers"), [(f"{PATH}?watch=1", {}), (PATH, {"Accept": "text/event-stream"})]
)
def test_the_answer_is_a_stream_for_whoever_asks(
    cast: Any,
    token_of: Callable[..., str],
    opened: list[tuple[Follower, str]],
    path: str,
    headers: dict[str, str],
) -> None:
    sent("datos", "a")
    sent("ia", "secret", namespace="ns-ia")

    answer = asked(path, token_of(cast.lea), **headers)

    assert (answer.status_code, answer["Content-Type"]) == (200, "text/event-stream")
    ((lea, mark),) = opened
    assert (lea.user, mark) == (cast.lea.pk, "")
    assert told(lea.begin(now())) == [("added", "a"), ("bookmark", "")]


def test_a_filter_and_a_mark_count_for_the_stream(
    cast: Any, token_of: Callable[..., str], opened: list[tuple[Follower, str]]
) -> None:
    for name in ("a", "b"):
        work("datos", name)
    mark = now()
    answer = asked(f"{PATH}?watch=1&name=b&resource_version={mark}", token_of(cast.lea))
    assert answer.status_code == 200, answer.content
    ((lea, given),) = opened
    assert given == mark
    assert told(lea.begin(mark)) == [("added", "b"), ("bookmark", "")]


class Scripted(Follower):
    """A follower without a database."""

    def begin(self, mark: str) -> list[bytes]:
        return [f"begin {mark}".encode()]

    def catch_up(self, mark: str) -> list[bytes]:
        if mark == "row9":
            raise MarkTooOld
        known, self.mark = self.mark, mark
        return [f"change {mark}".encode()] if mark != known else []


@pytest.fixture
def rows_of_feed(monkeypatch: pytest.MonkeyPatch) -> dict[str, int]:
    """A feed that needs no database, and a hub that reads it often."""
    numbers = {"n": 7}

    def feed(since: int | None) -> tuple[int, frozenset[str]]:
        changed = since is not None and since < numbers["n"]
        return numbers["n"], frozenset({"workloads"} if changed else ())

    monkeypatch.setattr(live, "_feeds", {"row": feed})
    monkeypatch.setattr(live, "POLL_S", 0.01)
    monkeypatch.setattr(live, "BEAT_S", 0.05)
    monkeypatch.setattr(following, "hub", live.Hub())
    return numbers


def heard(mark: str, numbers: dict[str, int], count: int, *, bookmarks: bool = False) -> list[str]:
    """Return the first events of a stream, after each of which a row is written."""

    async def read() -> list[str]:
        one = Scripted(1, None, seen, seen)
        stream, found = gallery.follow(one, mark), []
        async for event in stream:
            if event.startswith(b"event: bookmark") and not bookmarks:
                continue
            found.append(event.decode())
            assert gallery.count() == 1
            if len(found) == count:
                break
            numbers["n"] += 1
        await stream.aclose()  # type: ignore[attr-defined]
        return found

    gallery = following.Gallery()
    found = asyncio.run(asyncio.wait_for(read(), 5))
    assert gallery.count() == 0  # it is gone with its reader
    return found


def test_a_stream_begins_with_what_stands_and_ends_when_it_must(
    rows_of_feed: dict[str, int],
) -> None:
    found = heard("", rows_of_feed, 4)
    assert found == ["begin row7", "change row8", "event: gone\ndata: {}\n\n"]


def test_a_stream_that_is_taken_up_begins_with_what_changed(
    rows_of_feed: dict[str, int],
) -> None:
    assert heard("row3", rows_of_feed, 2) == ["change row7", "change row8"]


def test_silence_is_broken_by_a_bookmark(rows_of_feed: dict[str, int]) -> None:
    rows_of_feed["n"] = 8
    found = heard("row8", {"n": 0}, 2, bookmarks=True)
    assert found == ["event: bookmark\ndata: {}\nid: row8\n\n"] * 2


@pytest.mark.parametrize(
    ("query", "headers", "code"),
    [
        ("watch=yes", {}, 400),
        ("watch=1&resource_version=nonsense", {}, 400),
        ("watch=1", {"Last-Event-ID": "cycle1"}, 400),
        ("watch=1", {"Last-Event-ID": "cycle0-edit999999-story0"}, 410),
        ("watch=1&state=nonsense", {}, 400),
        ("watch=1&ordering=nonsense", {}, 400),
    ],
)
def test_what_cannot_be_followed_is_refused(
    cast: Any, token_of: Callable[..., str], query: str, headers: dict[str, str], code: int
) -> None:
    answer = asked(f"{PATH}?{query}", token_of(cast.lea), **headers)
    assert answer.status_code == code
    assert answer["Content-Type"] == "application/problem+json"


def test_only_so_many_follow_at_once(
    cast: Any, token_of: Callable[..., str], settings: Any
) -> None:
    settings.WATCHES_MAX_OF_ONE = 0
    answer = asked(f"{PATH}?watch=1", token_of(cast.lea))
    assert (answer.status_code, answer["Retry-After"]) == (429, "5")


def test_a_server_that_keeps_no_stream_open_says_so(
    cast: Any, token_of: Callable[..., str]
) -> None:
    answer = Client().get(f"{PATH}?watch=1", headers={"Authorization": token_of(cast.lea)})
    assert (answer.status_code, answer.json()["type"]) == (
        501,
        "urn:gpuplatform:problem:no_streams",
    )


def test_a_revoked_token_ends_its_stream(cast: Any, token_of: Callable[..., str]) -> None:
    token_of(cast.lea)
    token = ApiToken.objects.get(user=cast.lea)
    lea = Follower(cast.lea.pk, token.pk, seen, seen)
    lea.begin(now())
    revoke_token(token, actor=None)
    with pytest.raises(MarkTooOld):
        lea.catch_up(now())
