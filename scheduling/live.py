"""What open pages are told of the scheduler: topics by the rows that every change leaves behind.

Three sequences say all of it: the changes that a cycle looks at (edits), the lines of the
workloads' stories (every step of every workload), and the cycles (whose holds change why and
where somebody waits, without a line in a story).
"""

from collections.abc import Iterable
from http import HTTPStatus
from uuid import UUID

from django.core.exceptions import BadRequest
from django.core.handlers.asgi import ASGIRequest
from django.db.models import Max
from django.http import Http404, HttpRequest, HttpResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.utils.translation import gettext
from django.views.decorators.http import require_safe

from gpuplatform.common.live import MOST_TOPICS, hub, open_topics
from gpuplatform.common.models import Change
from gpuplatform.common.pages import asked
from queues.access import Actor, actor_of, require, visible
from scheduling.models import Cycle, Workload, WorkloadEvent

Read = tuple[int, frozenset[str]]
MOST = 500  # lines read for topics of single workloads; who was away for longer is told of all
GENERAL = frozenset({"capacity", "queues", "workloads", "nodes", "ledger"})
_OF_CHANGE = {
    "node": frozenset({"nodes", "capacity"}),
    "workload": frozenset({"workloads", "queues"}),
}
_OF_EDIT = frozenset({"queues", "capacity", "nodes"})
_OF_STORY = {
    "submitted": frozenset({"workloads", "queues", "capacity"}),
    "cancelled": GENERAL,
    "loan_opened": frozenset({"ledger", "queues", "capacity"}),
    "loan_changed": frozenset({"ledger", "queues", "capacity"}),
    "loan_closed": frozenset({"ledger", "queues", "capacity"}),
}
_OF_HOLDS = frozenset({"waiting", "workloads", "queues"})

_OWN = "workload:"


@require_safe
@require()
def events(request: HttpRequest) -> HttpResponse:
    """Answer the stream of ``?topics=`` (names with blanks between) as server-sent events.

    A server that cannot keep a stream open without a thread for it (Django's own development
    server) answers 204: the page then asks for its panels every 15 s.
    """
    topics = asked(request, "topics").split()
    _check(topics, actor_of(request))
    if not isinstance(request, ASGIRequest):
        return HttpResponse(status=HTTPStatus.NO_CONTENT)
    mark = request.headers.get("Last-Event-ID", "")
    stream: HttpResponseBase = StreamingHttpResponse(
        hub.stream(topics, mark),
        content_type="text/event-stream",
        headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"},
    )
    return stream  # type: ignore[return-value]  # a response without a content of its own


def _check(topics: list[str], actor: Actor) -> None:
    """Refuse unknown topics (400) and workloads that the reader does not see (404)."""
    if not 0 < len(topics) <= MOST_TOPICS:
        raise BadRequest(gettext("Between 1 and %d topics are asked for.") % MOST_TOPICS)
    own = {topic.removeprefix(_OWN) for topic in topics if topic.startswith(_OWN)}
    general = {topic for topic in topics if not topic.startswith(_OWN)}
    if others := general - GENERAL - {"waiting"} - open_topics():
        raise BadRequest(gettext("No such topic: %s") % ", ".join(sorted(others)))
    rows = visible(Workload.objects.filter(pk__in=_uids(own)), actor)
    if rows.count() != len(own):
        raise Http404


def _uids(texts: Iterable[str]) -> list[UUID]:
    try:
        return [UUID(text) for text in texts]
    except ValueError as error:
        raise Http404 from error


def topic_of(uid: object) -> str:
    """Return the topic of one workload."""
    return f"{_OWN}{uid}"


def edits(since: int | None) -> Read:
    """Return what edits of promises, prices of priority and nodes have changed."""
    newest = Change.objects.aggregate(n=Max("id"))["n"] or 0
    if since is None or newest <= since:
        return newest, frozenset()
    topics = Change.objects.filter(id__gt=since, id__lte=newest).values_list("topic", flat=True)
    return newest, _union(_OF_CHANGE.get(topic, _OF_EDIT) for topic in topics.distinct())


def stories(since: int | None) -> Read:
    """Return what steps of workloads have changed, and which workloads took one."""
    newest = WorkloadEvent.objects.aggregate(n=Max("id"))["n"] or 0
    if since is None or newest <= since:
        return newest, frozenset()
    lines = WorkloadEvent.objects.filter(id__gt=since, id__lte=newest).order_by("-id")
    told = list(lines.values_list("kind", "workload_id")[:MOST])
    own = frozenset(topic_of(uid) for _kind, uid in told)
    return newest, own | _union(_OF_STORY.get(kind, GENERAL) for kind, _uid in told)


def holds(since: int | None) -> Read:
    """Return whether cycles have said anew why somebody waits."""
    newest = Cycle.objects.aggregate(n=Max("id"))["n"] or 0
    if since is None or newest <= since:
        return newest, frozenset()
    said = Cycle.objects.filter(id__gt=since, id__lte=newest, held__gt=0).exists()
    return newest, _OF_HOLDS if said else frozenset()


def _union(sets: Iterable[frozenset[str]]) -> frozenset[str]:
    return frozenset[str]().union(*sets)
