"""Pages of machines: nodes, kinds of nodes, topologies, and how usable what is free is."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext
from django.views.decorators.http import require_POST, require_safe

from gpuplatform.common.consequences import carry_out
from gpuplatform.common.figures import figure_response, theme_of
from gpuplatform.common.narrowing import refused
from gpuplatform.common.pages import asked, json_rows, rows_response, wanted_format
from queues.access import Actor, actor_of, require
from queues.models import User
from scheduling import charts, services
from scheduling.agents import forget_agent
from scheduling.engine.fragments import SIZES
from scheduling.forms import ForgetForm, ReasonForm
from scheduling.selectors import (
    agents,
    domains,
    findings,
    flavors,
    fragments,
    node_filters,
    nodes,
    reservations,
)
from scheduling.selectors.devices import device_rows
from scheduling.specs import NodeDrain, NodeRemoval, NodeSpec


@require_safe
@require()
def nodes_page(request: HttpRequest) -> HttpResponse:
    """Show every GPU by who holds it, and the same as a table."""
    actor = actor_of(request)
    reserved = reservations.reservation_rows(actor)
    every = nodes.node_rows(actor, kept=reservations.kept_on_nodes(reserved))
    choices = node_filters.node_choices(every)
    asks = node_filters.node_narrowing(request, choices)
    if refusal := refused(request, asks.told):
        return refusal
    rows = node_filters.narrowed(every, asks)
    if wanted_format(request):
        return rows_response(request, "nodes", nodes.NODE_COLUMNS, nodes.node_cells(rows))
    pieces = fragments.read_fragments()
    context = {
        "actor": actor,
        "exists": bool(every),
        "rows": rows[: node_filters.MOST_ROWS],
        "count": len(rows),
        "choices": choices,
        "asks": asks,
        "is_coarse": sum(row.gpus for row in rows) > node_filters.MOST_DRAWN,
        "blocks": nodes.blocks_of(rows),
        "legend": nodes.legend_of(rows),
        "sentence": findings.nodes_sentence(every, pieces),
        "reserved": reserved,
        "views": [fragments.FragmentView(piece) for piece in pieces],
        "fragments_finding": fragments.fragments_sentence(pieces),
        "fragments_head": charts.fragments_head(),
        "fragments_rows": charts.fragments_table(pieces),
    }
    return render(request, "scheduling/nodes.html", context)


@require_safe
@require()
def node_page(request: HttpRequest, name: str) -> HttpResponse:
    """Show one node and the workloads on it."""
    actor = actor_of(request)
    rows = nodes.node_rows(actor, [name])
    if not rows:
        raise Http404
    return _show_node(request, actor, rows[0], ReasonForm())


def _show_node(
    request: HttpRequest, actor: Actor, row: nodes.NodeRow, form: ReasonForm, **more: Any
) -> HttpResponse:
    cordon = None if row.node.schedulable else nodes.last_cordon(row.node.name)
    context = {"row": row, "node": row.node, "form": form, "actor": actor, "cordon": cordon}
    context["devices"] = device_rows(actor, row.node)
    status = 422 if form.is_bound else 200
    return render(request, "scheduling/node.html", context | more, status=status)


@require_POST
@require(lambda actor: actor.may_operate)
def node_cordon(request: HttpRequest, name: str) -> HttpResponse:
    """Take a node out of service, or bring it back; a check only tells what that means."""
    drain = "yes" in {request.POST.get("drain"), request.POST.get("check-drain")}
    cordoned = drain or request.POST.get("cordoned") == "yes"
    words = gettext("%(name)s is back in service.")
    if cordoned:
        words = gettext("%(name)s is drained.") if drain else gettext("%(name)s is cordoned.")

    def wanted(row: nodes.NodeRow) -> NodeSpec | NodeDrain:
        if drain:
            return NodeDrain(name)
        return replace(services.describe_node(row.node), schedulable=not cordoned)

    def act(user: User | None, reason: str) -> object:
        return services.set_cordon(name, cordoned, actor=user, reason=reason, drain=drain)

    return _operate(request, name, wanted, act) or _done(request, words, name, ("node", name))


@require_POST
@require(lambda actor: actor.may_operate)
def node_delete(request: HttpRequest, name: str) -> HttpResponse:
    """Forget a node; a check only tells what that means."""

    def act(user: User | None, reason: str) -> object:
        return services.delete_node(name, actor=user, reason=reason)

    answer = _operate(request, name, lambda _row: NodeRemoval(name), act)
    return answer or _done(request, gettext("%(name)s is forgotten."), name, ("nodes",))


def _operate(
    request: HttpRequest,
    name: str,
    wanted: Callable[[nodes.NodeRow], object],
    act: Callable[[User | None, str], object],
) -> HttpResponse | None:
    """Act on a node and tell what it means; return a page unless it is done.

    ``wanted`` makes the spec that says what the node should be.
    """
    actor, form = actor_of(request), ReasonForm(request.POST)
    rows = nodes.node_rows(actor, [name])
    if not rows:
        raise Http404
    only_check = bool({"check", "check-drain"} & set(request.POST))
    if not form.is_valid() and not only_check:
        return _show_node(request, actor, rows[0], form)
    reason = form.cleaned_data.get("reason", "")
    spec = wanted(rows[0])
    _acted, found = carry_out(spec, lambda: act(actor.user, reason), keep=not only_check)
    if only_check:
        typed = ReasonForm(initial={"reason": request.POST.get("reason", "")})
        return _show_node(request, actor, rows[0], typed, checked=True, findings=found)
    for diagnostic in found:
        messages.warning(request, f"{diagnostic.sentence} {diagnostic.next_step}".strip())
    return None


def _done(request: HttpRequest, words: str, name: str, page: tuple[str, ...]) -> HttpResponse:
    messages.success(request, words % {"name": name})
    return redirect(*page)


@require_safe
@require(lambda actor: actor.sees_everything)
def agents_page(request: HttpRequest) -> HttpResponse:
    """Show who drives machines: when something was heard of whom, and what each of them owns."""
    if wanted_format(request):
        cells = agents.agent_cells(agents.agent_rows())
        return rows_response(request, "agents", agents.AGENT_COLUMNS, cells)
    return _show_agents(request)


def _show_agents(request: HttpRequest, form: ForgetForm | None = None) -> HttpResponse:
    rows = agents.agent_rows()
    form = form or ForgetForm(agents=[row.agent.name for row in rows])
    context = {"rows": rows, "sentence": agents.agents_sentence(rows), "form": form}
    context |= {"actor": actor_of(request)}
    status = 422 if form.is_bound else 200
    return render(request, "scheduling/agents.html", context, status=status)


@require_POST
@require(lambda actor: actor.may_operate)
def agent_forget(request: HttpRequest) -> HttpResponse:
    """Forget an agent whose machines are gone; its nodes stay, not ready."""
    names = [row.agent.name for row in agents.agent_rows()]
    form, user = ForgetForm(request.POST, agents=names), actor_of(request).user
    assert user is not None
    if not form.is_valid():
        return _show_agents(request, form)
    name = form.cleaned_data["agent"]
    forget_agent(name, actor=user, reason=form.cleaned_data["reason"])
    return _done(request, gettext("%(name)s is forgotten."), name, ("agents",))


# ---- how usable what is free is ----------------------------------------------------------------


@require_safe
@require()
def fragments_file(request: HttpRequest) -> HttpResponse:
    """Answer how usable free GPUs are, as a file: CSV unless JSON is asked for."""
    cells = fragments.fragment_cells(fragments.read_fragments())
    return rows_response(request, "fragments", fragments.FRAGMENT_COLUMNS, cells)


@require_safe
@require()
def reservations_file(request: HttpRequest) -> HttpResponse:
    """Answer for whom room is reserved and what that costs, as a file: CSV, or JSON."""
    rows = reservations.reservation_rows(actor_of(request))
    cells = reservations.reservation_cells(rows)
    return rows_response(request, "reservations", reservations.RESERVATION_COLUMNS, cells)


@require_safe
@require()
def fragments_chart(request: HttpRequest) -> HttpResponse:
    """Answer the figure of free GPUs by flavor."""
    found = fragments.read_fragments()
    return figure_response(charts.fragments_figure(theme_of(request), found))


# ---- kinds of nodes ----------------------------------------------------------------------------


@require_safe
@require()
def flavors_page(request: HttpRequest) -> HttpResponse:
    """Show every kind of node, and the topologies."""
    rows = flavors.flavor_rows()
    if wanted_format(request):
        cells = flavors.flavor_cells(rows)
        return rows_response(request, "flavors", flavors.FLAVOR_COLUMNS, cells)
    context = {
        "rows": rows,
        "topologies": flavors.topology_rows(),
        "actor": actor_of(request),
        "sentence": flavors.flavors_sentence(rows),
    }
    return render(request, "scheduling/flavors.html", context)


@require_safe
@require()
def flavor_page(request: HttpRequest, name: str) -> HttpResponse:
    """Show one kind of node: how its nodes are told, and how pods are placed on them."""
    row = next((row for row in flavors.flavor_rows() if row.flavor.name == name), None)
    if row is None:
        raise Http404
    actor = actor_of(request)
    changes = flavors.changes_of("ResourceFlavor", name) if actor.sees_everything else []
    context = {"row": row, "flavor": row.flavor, "actor": actor, "changes": changes}
    return render(request, "scheduling/flavor.html", context)


@require_safe
@require()
def topology_map(request: HttpRequest) -> HttpResponse:
    """Show the tiers, their domains, and the most that is free in one; ``?tier=`` narrows it."""
    actor, wanted = actor_of(request), asked(request, "tier")
    every = _tiers(actor)
    found = [tier for tier in every if wanted in {"", tier.level, tier.words}]
    if wanted_format(request) == "json":
        return json_rows("topology", domains.TIER_COLUMNS, domains.tier_cells(found))
    if wanted_format(request):
        cells = domains.domain_cells(found)
        return rows_response(request, "topology", domains.DOMAIN_COLUMNS, cells)
    context = {
        "actor": actor,
        "tiers": found,
        "wanted": wanted,
        "levels": list(dict.fromkeys(tier.words for tier in every)),
        "topologies": list(dict.fromkeys(tier.topology for tier in every)),
        "sizes": SIZES,
    }
    return render(request, "scheduling/topology_map.html", context)


def _tiers(actor: Actor) -> list[domains.Tier]:
    kept = reservations.kept_on_nodes(reservations.reservation_rows(actor))
    rows, pieces = nodes.node_rows(actor, kept=kept), fragments.read_fragments()
    return domains.tiers(nodes.read_places(), rows, pieces)


@require_safe
@require()
def topology_page(request: HttpRequest, name: str) -> HttpResponse:
    """Show the levels of one topology and the flavors that use it."""
    row = next((row for row in flavors.topology_rows() if row.topology.name == name), None)
    if row is None:
        raise Http404
    actor = actor_of(request)
    changes = flavors.changes_of("Topology", name) if actor.sees_everything else []
    context = {"row": row, "topology": row.topology, "actor": actor, "changes": changes}
    context |= {"tiers": [tier for tier in _tiers(actor) if tier.topology == name]}
    context |= {"sizes": SIZES}
    return render(request, "scheduling/topology.html", context)
