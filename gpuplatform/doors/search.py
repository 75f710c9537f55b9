"""One field finds everything that its reader may open: by name, whatever room it stands in."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from django.db.models import Q, QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils.cache import patch_vary_headers
from django.utils.translation import gettext
from django.views.decorators.http import require_safe

from gpuplatform.common.pages import asked, is_fragment, rail_links, viewer_of
from queues.access import Actor, actor_of, require, visible
from queues.models import ClusterQueue, ResourceFlavor, Team, User
from queues.selectors import visible_cohorts
from scheduling.models import Node, Workload
from scheduling.selectors.workloads import workload_rows

MOST = 6  # of a kind
LONGEST = 100  # characters that are looked for


@dataclass(frozen=True, slots=True)
class Hit:
    """Something with a page of its own."""

    name: str
    href: str
    sub: str = ""


@dataclass(frozen=True, slots=True)
class Group:
    """What was found of one kind; ``more`` leads to the whole list where there may be more."""

    title: str
    hits: tuple[Hit, ...]
    more: str = ""


@require_safe
@require()
def search_page(request: HttpRequest) -> HttpResponse:
    """Answer ``?q=``: a page, or the list alone for the field in the top bar."""
    text = asked(request, "q").strip()[:LONGEST]
    groups = find(actor_of(request), text, request) if text else []
    count = sum(len(group.hits) for group in groups)
    context = {"search_text": text, "groups": groups, "count": count}
    template = "doors/found.html" if is_fragment(request) else "doors/search.html"
    response = render(request, template, context)
    patch_vary_headers(response, ["HX-Request"])
    return response


def find(actor: Actor, text: str, request: HttpRequest) -> list[Group]:
    """Return what is called like ``text``, kinds in the order of use; at most 6 queries."""
    found = (
        _pages(request, text),
        _workloads(actor, text),
        _queues(actor, text),
        _teams(actor, text),
        _machines(text),
        _people(actor, text),
    )
    return [group for group in found if group.hits]


def _pages(request: HttpRequest, text: str) -> Group:
    links = rail_links(request, viewer_of(request))
    hits = (
        Hit(str(link.item.label), link.href)
        for link in links
        if text.casefold() in str(link.item.label).casefold()
    )
    return Group(gettext("Pages"), tuple(hits))


def _workloads(actor: Actor, text: str) -> Group:
    named = Q(name__icontains=text) | Q(namespace__icontains=text)
    rows = workload_rows(actor).filter(named | _is_uid(text)).order_by("-created_at", "uid")
    hits = (
        Hit(row.name, reverse("workload", args=[row.uid]), f"{row.namespace}, {_state(row)}")
        for row in rows[:MOST]
    )
    return _group(gettext("Workloads"), hits, f"{reverse('workloads')}?q=", text)


def _state(row: Workload) -> str:
    return str(row.get_outcome_display() or row.get_status_display())


def _is_uid(text: str) -> Q:
    """Return the workloads whose uid begins with ``text``, which must look like one."""
    plain = text.replace("-", "").lower()
    looks = len(plain) >= 8 and set(plain) <= set("0123456789abcdef")  # noqa: PLR2004
    if not looks:
        return Q(pk__in=())
    low, high = plain.ljust(32, "0")[:32], plain.ljust(32, "f")[:32]
    return Q(uid__gte=low, uid__lte=high)


def _queues(actor: Actor, text: str) -> Group:
    queues = visible(ClusterQueue.objects.select_related("cohort"), actor)
    hits = [
        Hit(row.name, reverse("queue", args=[row.name]), row.cohort.name if row.cohort else "")
        for row in _named(queues, text)
    ]
    hits += [
        Hit(row.name, reverse("cohort", args=[row.name]), gettext("cohort"))
        for row in _named(visible_cohorts(actor), text)
    ]
    return _group(gettext("Queues"), hits)


def _teams(actor: Actor, text: str) -> Group:
    rows = visible(Team.objects.all(), actor, "pk")
    called = Q(name__icontains=text) | Q(display_name__icontains=text)
    hits = (
        Hit(row.display_name, reverse("team", args=[row.name]), row.name)
        for row in rows.filter(called).order_by("name")[:MOST]
    )
    return _group(gettext("Teams"), hits)


def _machines(text: str) -> Group:
    hits = [
        Hit(row.name, reverse("node", args=[row.name]), gettext("node"))
        for row in _named(Node.objects.all(), text)
    ]
    hits += [
        Hit(row.name, reverse("flavor", args=[row.name]), gettext("flavor"))
        for row in _named(ResourceFlavor.objects.all(), text)
    ]
    return _group(gettext("Nodes"), hits)


def _people(actor: Actor, text: str) -> Group:
    if not actor.may_see_people:
        return Group("", ())
    called = Q(username__icontains=text) | Q(email__icontains=text)
    named = Q(first_name__icontains=text) | Q(last_name__icontains=text)
    hits = (
        Hit(row.username, reverse("person-edit", args=[row.username]), row.get_full_name())
        for row in User.objects.filter(called | named).order_by("username")[:MOST]
    )
    return _group(gettext("People"), hits, f"{reverse('people')}?q=", text)


def _named(rows: QuerySet[Any], text: str) -> Iterator[Any]:
    yield from rows.filter(name__icontains=text).order_by("name")[:MOST]


def _group(title: str, hits: Iterable[Hit], address: str = "", text: str = "") -> Group:
    listed = tuple(hits)
    return Group(
        title, listed, f"{address}{quote(text)}" if address and len(listed) == MOST else ""
    )
