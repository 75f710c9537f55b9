"""Follow workloads over REST: what each of them is now, as it changes (server-sent events).

``added``, ``modified`` and ``deleted`` carry the row as the list shows it (of a deleted one its
names), ``bookmark`` breaks the silence, ``gone`` says to begin anew. Each has the mark up to which
everything is told; who was away names the last one. Rows are read anew for the follower, with the
rights that they have at that moment.
"""

import hashlib
from collections import OrderedDict
from collections.abc import (
    AsyncIterator,
    Callable,
    Collection,
    Container,
    Iterable,
    Iterator,
    Mapping,
)
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from asgiref.sync import sync_to_async
from django.conf import settings
from django.core.handlers.asgi import ASGIRequest
from django.db import close_old_connections
from django.db.models import QuerySet
from django.http import StreamingHttpResponse
from django.utils import timezone
from django.utils.translation import gettext as _
from drf_spectacular.utils import OpenApiParameter
from rest_framework.exceptions import APIException, Throttled, ValidationError
from rest_framework.renderers import BaseRenderer, JSONRenderer
from rest_framework.request import Request

from gpuplatform.common.live import event_of, hub, numbers_of, read_news
from queues.access import Actor, actor_for, actor_of
from queues.models import ApiToken, User
from scheduling.engine.terms import Status
from scheduling.models import Workload
from scheduling.selectors.changed import FEEDS, MarkTooOld, changed_between
from scheduling.selectors.discretion import Discretion
from scheduling.serializers import WorkloadRowSerializer

CONTENT_TYPE = "text/event-stream"
TOPICS = ("workloads", "waiting")
PARAMETERS = [
    OpenApiParameter("watch", str, enum=["1"], description="A stream of what changes."),
    OpenApiParameter(
        "resource_version", str, description="Begin after this mark; as the header Last-Event-ID."
    ),
]
MOST_AT_FIRST = 500  # rows that stand when somebody begins, newest first
MOST_WAITING = 500  # waiting rows that are compared after a cycle
MOST_REMEMBERED = 5_000  # rows of which a follower knows what was told
BUSY_S = 5  # after which one more may try
Rows = Callable[[Actor], QuerySet[Workload]]


class EventRenderer(BaseRenderer):
    """Lets a client ask for a stream; the view writes it, so only refusals come here: as JSON."""

    media_type, format = CONTENT_TYPE, "sse"

    def render(self, data: Any, *_args: Any, **_kwargs: Any) -> bytes:
        """Return a refusal as JSON."""
        return bytes(JSONRenderer().render(data))


class Gone(APIException):
    """The mark is too old to tell what has changed since."""

    status_code = 410
    default_code = "resource_version_too_old"

    def __init__(self) -> None:
        super().__init__(_("Too much has changed since, or it is too long ago; list again."))


class NoStreams(APIException):
    """This server cannot keep a stream open."""

    status_code = 501
    default_code = "no_streams"

    def __init__(self) -> None:
        super().__init__(_("This server cannot keep a stream open; run it with an ASGI server."))


@dataclass(slots=True)
class Follower:
    """Somebody who follows rows: who they are, what they were told of each, up to which mark.

    ``rows`` are those of the filter that an actor sees; ``visible`` those of no filter. Who
    ``resumed`` knows from before what stood then.
    """

    user: int | None
    token: str | None
    rows: Rows
    visible: Rows
    mark: str = ""
    resumed: bool = False
    told: OrderedDict[UUID, tuple[int, str]] = field(default_factory=OrderedDict)

    def actor(self) -> Actor | None:
        """Return the rights as they are now; None: signed out, or the token is no more."""
        user = User.objects.filter(pk=self.user or 0, is_active=True).first()
        token = ApiToken.objects.filter(pk=self.token).first() if self.token else None
        expired = token is not None and token.expiry and token.expiry <= timezone.now()
        if user is None or expired or (self.token and token is None):
            return None
        return actor_for(user, token)

    def begin(self, mark: str) -> list[bytes]:
        """Return what stands: the newest rows of the filter."""
        actor = self.actor()
        self.mark = mark
        if actor is None:
            return []
        found = list(self.rows(actor)[:MOST_AT_FIRST])
        return [*self._events(found, actor), self.bookmark()]

    def catch_up(self, mark: str) -> list[bytes]:
        """Return what has changed up to ``mark``.

        Raises:
            MarkTooOld: it is too much.
        """
        actor = self.actor()
        if actor is None:
            raise MarkTooOld
        changed = changed_between(numbers_of(self.mark), numbers_of(mark))
        self.mark = mark
        uids = changed.uids | self._late(actor, changed.late)
        seen = self.visible(actor).filter(pk__in=uids)
        inside = {row.pk: row for row in self.rows(actor).filter(pk__in=uids)}
        rows = {**inside, **(self._waiting(actor) if changed.waiting else {})}
        left = [row for row in seen if row.pk not in inside and self._knows(row.pk, changed.new)]
        return [*self._events(rows.values(), actor, changed.new), *self._left(left)]

    def _knows(self, uid: UUID, new: Container[UUID]) -> bool:
        return uid in self.told or (self.resumed and uid not in new)

    def _late(self, actor: Actor, uids: Collection[UUID]) -> set[UUID]:
        """Return those of ``uids`` that are at another version than was told."""
        if not uids:
            return set()
        rows = self.visible(actor).filter(pk__in=uids).values_list("pk", "version")
        return {uid for uid, version in rows if self.told.get(uid, (version,))[0] != version}

    def bookmark(self) -> bytes:
        """Return that all is told up to the mark."""
        return event_of("bookmark", "{}", self.mark)

    def _waiting(self, actor: Actor) -> dict[UUID, Workload]:
        rows = self.rows(actor).filter(status=Status.PENDING.value)
        return {row.pk: row for row in rows[:MOST_WAITING]}

    def _events(
        self, rows: Iterable[Workload], actor: Actor, new: Container[UUID] = frozenset()
    ) -> Iterator[bytes]:
        """Yield rows that are other than they were told."""
        found = list(rows)
        context = {"discretion": Discretion(actor)}
        shown = WorkloadRowSerializer(found, many=True, context=context).data
        for row, body in zip(found, shown, strict=True):
            text = JSONRenderer().render(body).decode()
            digest = hashlib.blake2b(text.encode(), digest_size=16).hexdigest()
            _version, before = self.told.get(row.pk, (0, ""))
            kind = "modified" if self._knows(row.pk, new) else "added"
            self._remember(row, digest)
            if before != digest:
                yield event_of(kind, text, self.mark)

    def _left(self, rows: Iterable[Workload]) -> Iterator[bytes]:
        """Yield rows that are the filter's no more."""
        for row in rows:
            self.told.pop(row.pk, None)
            names = {"uid": str(row.pk), "namespace": row.namespace, "name": row.name}
            yield event_of("deleted", JSONRenderer().render(names).decode(), self.mark)

    def _remember(self, row: Workload, digest: str) -> None:
        self.told[row.pk] = (row.version, digest)
        self.told.move_to_end(row.pk)
        while len(self.told) > MOST_REMEMBERED:
            self.told.popitem(last=False)


class Gallery:
    """The followers of one process: so many at most, and so many of one person."""

    def __init__(self) -> None:
        self._open: dict[int, int | None] = {}

    def count(self) -> int:
        """Return how many follow now."""
        return len(self._open)

    def check(self, user: int | None) -> None:
        """Refuse one follower more than there may be (429)."""
        own = sum(1 for held in self._open.values() if held == user)
        if len(self._open) >= settings.WATCHES_MAX or own >= settings.WATCHES_MAX_OF_ONE:
            raise Throttled(BUSY_S, _("Too many follow here already."))

    async def follow(self, follower: Follower, mark: str) -> AsyncIterator[bytes]:
        """Yield the events of a follower; ``mark`` "" begins with what stands."""
        self._open[id(follower)] = follower.user
        try:
            async with aclosing(hub.listen(TOPICS, mark)) as heard:
                async for event in _events(follower, heard, mark):
                    yield event
        finally:
            self._open.pop(id(follower), None)


gallery = Gallery()


async def _events(
    follower: Follower, heard: AsyncIterator[Any], mark: str
) -> AsyncIterator[bytes]:
    begun = follower.resumed = bool(mark)
    follower.mark = mark
    async for news in heard:
        tell = follower.catch_up if begun else follower.begin
        try:
            for event in await _read(tell, "" if news is None else news.mark):
                yield event
            if news is None:
                yield follower.bookmark()
        except MarkTooOld:
            yield event_of("gone", "{}")
            return
        begun = True


@sync_to_async
def _read(tell: Callable[[str], list[bytes]], mark: str) -> list[bytes]:
    """Return what there is to tell up to a mark; "" is now, also where no news were heard."""
    close_old_connections()
    try:
        return tell(mark or read_news().mark)
    finally:
        close_old_connections()


def is_followed(request: Request) -> bool:
    """Return whether the list is to be followed.

    Raises:
        ValidationError: 400, another value than ``1``.
    """
    said = request.query_params.get("watch")
    if said not in (None, "1"):
        raise ValidationError({"watch": [_("The only value is {value}.").format(value=1)]})
    renderer = getattr(request, "accepted_renderer", None)
    return said is not None or getattr(renderer, "format", "") == EventRenderer.format


def follow_workloads(request: Request, rows: Rows, visible: Rows) -> StreamingHttpResponse:
    """Answer the stream of the rows that ``rows`` gives an actor.

    Raises:
        ValidationError: 400, the mark is none.
        Gone: 410, too much has changed since the mark.
        Throttled: 429, too many follow already.
        NoStreams: 501, the server is none that could.
    """
    actor = actor_of(request)
    mark = request.headers.get("Last-Event-ID") or request.query_params.get("resource_version", "")
    _check_mark(mark)
    if not isinstance(request._request, ASGIRequest):  # noqa: SLF001  # DRF has no other name
        raise NoStreams
    user = actor.user.pk if actor.user else None
    gallery.check(user)
    token = request.auth.pk if isinstance(request.auth, ApiToken) else None
    follower = Follower(user, token, rows, visible)
    headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
    stream = gallery.follow(follower, mark)
    return StreamingHttpResponse(stream, content_type=CONTENT_TYPE, headers=headers)


def _check_mark(mark: str) -> None:
    if not mark:
        return
    numbers: Mapping[str, int] = numbers_of(mark)
    if not set(FEEDS) <= set(numbers):
        raise ValidationError({"resource_version": [_("No stream has given this mark.")]})
    try:
        changed_between(numbers, numbers_of(read_news().mark))
    except MarkTooOld as error:
        raise Gone from error
