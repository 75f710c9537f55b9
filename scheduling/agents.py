"""Who drives machines: agents that come, go on, fall silent, come back, and are forgotten."""

import logging
from collections.abc import Iterable
from datetime import datetime, timedelta

from django.conf import settings
from django.db import IntegrityError, transaction
from django.utils.translation import gettext as _

from gpuplatform.common import audit, clock
from gpuplatform.common.diagnostics import Diagnostic
from gpuplatform.common.problems import Problem, Rejected
from gpuplatform.common.wakeup import request_cycle
from queues.models import User
from queues.rules.words import check_name
from queues.services.writing import Edit, refuse
from scheduling.models import Agent, Node
from scheduling.services import describe_node

logger = logging.getLogger(__name__)


# ---- who it is ---------------------------------------------------------------------------------
@transaction.atomic
def greet(name: str, epoch: int | None, *, actor: User, version: str = "") -> Agent:
    """Let an agent go on in its epoch, or begin a new one: it remembers nothing.

    Raises:
        Rejected: no name; code ``not_found``, somebody else's agent; ``STALE_EPOCH``.
    """
    refuse(check_name(name))
    agent = Agent.objects.select_for_update().filter(name=name).first()
    if agent is None:
        agent = _make(name, actor)
    _refuse_foreign(agent, actor)
    if epoch is not None and epoch != agent.epoch:
        raise _stale_epoch(epoch, agent)
    if epoch is None:
        agent.epoch, agent.sequence, agent.epoch_at = agent.epoch + 1, 0, clock.now()
        facts = {"epoch": agent.epoch, "version": version}
        audit.record(actor, "agent.began", ("Agent", name), after=facts)
    agent.version = version
    agent.save(update_fields=["epoch", "sequence", "epoch_at", "version"])
    note_alive(agent)
    return agent


def _make(name: str, actor: User) -> Agent:
    try:
        with transaction.atomic():
            return Agent.objects.create(name=name, owner=actor)
    except IntegrityError:  # another one was faster
        return Agent.objects.select_for_update().get(name=name)


def own_agent(name: str, epoch: int, *, actor: User, lock: bool = False) -> Agent:
    """Return the agent as the platform knows it, if it is the actor's and in its epoch.

    Raises:
        Rejected: code ``not_found``, or ``STALE_EPOCH``.
    """
    rows = Agent.objects.select_for_update() if lock else Agent.objects.all()
    agent = rows.filter(name=name).first()
    if agent is None:
        raise Rejected([not_found("name")])
    _refuse_foreign(agent, actor)
    if epoch != agent.epoch:
        raise _stale_epoch(epoch, agent)
    return agent


def note_asked(agent: Agent) -> None:
    """Note that an agent lives, now and then: asking often is not a write each time."""
    rest = timedelta(seconds=settings.AGENT_SILENT_AFTER_S / 4)
    if agent.silent_since is not None or clock.now() - agent.heard_at >= rest:
        with transaction.atomic():
            note_alive(Agent.objects.select_for_update().get(pk=agent.pk))


@transaction.atomic
def forget_agent(name: str, *, actor: User, reason: str = "") -> None:
    """Forget an agent whose machines are gone, or are driven by another one from now on.

    Its nodes stay, not ready, and nobody's: what should leave them counts as gone.

    Raises:
        Rejected: code ``not_found``.
    """
    agent = Agent.objects.select_for_update().filter(name=name).first()
    if agent is None:
        raise Rejected([not_found("name")])
    names = list(agent.nodes.values_list("name", flat=True))
    _set_ready(names, frozenset(), "its agent was forgotten")
    agent.delete()
    before = {"epoch": agent.epoch, "nodes": names}
    audit.record(actor, "agent.deleted", ("Agent", name), before=before, reason=reason)
    request_cycle("agent", name)


def _refuse_foreign(agent: Agent, actor: User) -> None:
    if agent.owner_id != actor.pk:
        raise Rejected([not_found("name")])


def not_found(path: str) -> Problem:
    """Return that what is named there is not there, or not there for this agent."""
    return Problem(path, "not_found", _("there is no such object"))


def _stale_epoch(epoch: int, agent: Agent) -> Rejected:
    numbers = {"epoch": epoch, "current": agent.epoch}
    return Rejected(
        [Diagnostic("STALE_EPOCH", f"Agent/{agent.name}", "epoch", numbers).as_problem()]
    )


# ---- silence -----------------------------------------------------------------------------------
def note_silence(now: datetime) -> int:
    """Let the nodes of agents count as not ready of which nothing was heard for too long.

    Returns:
        How many agents have become silent. 1 query when none has.
    """
    edge = now - timedelta(seconds=settings.AGENT_SILENT_AFTER_S)
    late = Agent.objects.filter(heard_at__lt=edge, silent_since=None)
    return sum(_silence(pk, edge, now) for pk in late.values_list("pk", flat=True))


@transaction.atomic
def _silence(pk: int, edge: datetime, now: datetime) -> bool:
    rows = Agent.objects.select_for_update().filter(pk=pk, heard_at__lt=edge, silent_since=None)
    agent = rows.first()
    if agent is None:
        return False
    agent.silent_since = now
    agent.save(update_fields=["silent_since"])
    names = list(agent.nodes.values_list("name", flat=True))
    _set_ready(names, frozenset(), "its agent is silent")
    request_cycle("agent", agent.name)
    logger.warning("agent %s is silent since %s", agent, agent.heard_at)
    return True


def note_alive(agent: Agent) -> None:
    """Note that something was heard; nodes of a silent agent are again as it last said."""
    if agent.silent_since is not None:
        told = dict(agent.nodes.values_list("name", "ready"))
        _set_ready(told, frozenset(n for n, ready in told.items() if ready), "its agent is back")
        logger.info("agent %s is back", agent)
    agent.heard_at, agent.silent_since = clock.now(), None
    agent.save(update_fields=["heard_at", "silent_since"])


def _set_ready(names: Iterable[str], ready: frozenset[str], why: str) -> None:
    """Make nodes ready or not, where they are not already so; the rest of them stays."""
    for row in Node.objects.select_for_update().filter(name__in=list(names)).order_by("name"):
        if row.ready != (row.name in ready):
            edit, before = Edit(Node, row.name, None, why), describe_node(row)
            after = describe_node(edit.update(row, {"ready": row.name in ready}))
            edit.note("updated", before, after)
