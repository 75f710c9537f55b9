"""Who may set up which webhooks: admins all, leads those of their teams."""

from uuid import UUID

from django.db.models import QuerySet
from django.http import Http404

from gpuplatform.doors.models import Webhook
from queues.access import Actor
from queues.models import Team


def may_tell_anybody(actor: Actor) -> bool:
    """Return whether somebody may set up any webhook at all."""
    return actor.may_tell_all or any(actor.may_tell_of(team) for team in actor.team_ids)


def own_webhooks(actor: Actor) -> QuerySet[Webhook]:
    """Return the webhooks that somebody may see and change."""
    rows = Webhook.objects.select_related("team")
    if actor.may_tell_all:
        return rows
    return rows.filter(team__in=[team for team in actor.team_ids if actor.may_tell_of(team)])


def own_webhook(actor: Actor, uid: UUID) -> Webhook:
    """Return one of these; what is not theirs is not there.

    Raises:
        Http404: there is none.
    """
    hook = own_webhooks(actor).filter(pk=uid).first()
    if hook is None:
        raise Http404
    return hook


def tellable_teams(actor: Actor) -> QuerySet[Team]:
    """Return the teams of which somebody may let others be told."""
    teams = Team.objects.order_by("name")
    if actor.may_tell_all:
        return teams
    return teams.filter(pk__in=[team for team in actor.team_ids if actor.may_tell_of(team)])
