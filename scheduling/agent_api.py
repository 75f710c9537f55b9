"""REST's doors for those who drive machines: hello, reports, and what should run."""

import json
from hashlib import sha256
from http import HTTPStatus
from typing import Any

from django.conf import settings
from django.utils.translation import gettext as _
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request
from rest_framework.response import Response

from gpuplatform.common.paging import CheckedView
from gpuplatform.common.parsers import StrictJSONParser
from queues.access import Actor, HasScope, actor_of, demand, insist
from queues.models import User
from scheduling.agent_body import read_batch, read_hello
from scheduling.agent_examples import DESIRED, HELLO, HELLO_ANSWER, RECEIPT, REPORTS
from scheduling.agent_reports import MOST_REPORTS, take_reports
from scheduling.agent_serializers import (
    AgentHelloAnswer,
    AgentHelloInput,
    AgentListAnswer,
    AgentReceiptAnswer,
    AgentReportsInput,
    DesiredAnswer,
)
from scheduling.agents import forget_agent, greet, note_asked, own_agent
from scheduling.selectors.agents import agent_rows, desired_of

LONGEST = 9  # digits of an epoch
EPOCH = OpenApiParameter("epoch", int, required=True, description="The epoch of the agent.")


class AgentDoor(CheckedView):
    """What is common to the addresses of agents: a scope of its own, for admins' tokens."""

    parser_classes = (StrictJSONParser,)
    permission_classes = (HasScope,)
    scopes = {"POST": "cluster:agent"}

    def driver(self, request: Request) -> User:
        """Return who drives machines; 403 for everybody else."""
        actor = actor_of(request)
        insist(actor, "may_drive")
        assert actor.user is not None
        return actor.user


class AgentHelloView(AgentDoor):
    """``POST /api/v1/agent/<name>/hello/``: go on in an epoch, or begin a new one."""

    @extend_schema(
        operation_id="agent_hello",
        request=AgentHelloInput,
        responses=AgentHelloAnswer,
        examples=[HELLO, HELLO_ANSWER],
    )
    def post(self, request: Request, name: str) -> Response:
        """Say who is there; the answer says from which number on reports are missing."""
        driver, hello = self.driver(request), read_hello(request.data)
        agent = greet(name, hello.epoch, actor=driver, version=hello.version)
        return Response(
            {
                "agent": agent.name,
                "epoch": agent.epoch,
                "sequence": agent.sequence,
                "poll_s": settings.AGENT_POLL_S,
                "silent_after_s": settings.AGENT_SILENT_AFTER_S,
                "most_reports": MOST_REPORTS,
            }
        )


class AgentReportsView(AgentDoor):
    """``POST /api/v1/agent/<name>/reports/``: numbered reports; none at all is a heartbeat."""

    @extend_schema(
        operation_id="agent_reports",
        request=AgentReportsInput,
        responses=AgentReceiptAnswer,
        examples=[*REPORTS, RECEIPT],
    )
    def post(self, request: Request, name: str) -> Response:
        """Take a batch, whole or not at all; the answer says which number was the last."""
        driver, batch = self.driver(request), read_batch(request.data)
        taken = take_reports(name, batch.epoch, batch.reports, actor=driver)
        return Response(
            {
                "sequence": taken.sequence,
                "taken": taken.taken,
                "repeated": taken.repeated,
                "ignored": taken.ignored,
            }
        )


class AgentDesiredView(AgentDoor):
    """``GET /api/v1/agent/<name>/desired/``: what should run on its nodes."""

    scopes = {"GET": "cluster:agent"}
    parameters = {"GET": ("epoch",)}
    refusals = {"GET": (HTTPStatus.CONFLICT,)}  # another process drives them now

    @extend_schema(
        operation_id="agent_desired",
        parameters=[EPOCH],
        responses={200: DesiredAnswer, 304: None},
        examples=[DESIRED],
    )
    def get(self, request: Request, name: str) -> Response:
        """Return all of it with an ``ETag``; 304 where ``If-None-Match`` names the same."""
        agent = own_agent(name, _epoch(request), actor=self.driver(request))
        note_asked(agent)
        desired = desired_of(agent)
        tag = _tag(desired)
        if request.headers.get("If-None-Match") == tag:
            return Response(status=HTTPStatus.NOT_MODIFIED, headers={"ETag": tag})
        return Response(desired, headers={"ETag": tag})


def _tag(desired: dict[str, Any]) -> str:
    text = json.dumps(desired, sort_keys=True, default=str)
    return f'"{sha256(text.encode()).hexdigest()[:32]}"'


def _epoch(request: Request) -> int:
    text = request.query_params.get("epoch", "")
    if not (text.isascii() and text.isdecimal() and 1 <= len(text) <= LONGEST):
        raise ValidationError({"epoch": [_("It is the number that hello has answered.")]})
    return int(text)


class AgentsView(CheckedView):
    """``/api/v1/agents/``: all agents, for those who look after the machines."""

    permission_classes = (HasScope,)

    @extend_schema(operation_id="agents_list", responses=AgentListAnswer)
    def get(self, request: Request) -> Response:
        """Return every agent with its nodes, and when something was heard of it."""
        demand(may_see_agents(actor_of(request)))
        return Response({"results": [row.as_json() for row in agent_rows()]})


class AgentView(CheckedView):
    """``/api/v1/agents/<name>/``: the way to forget an agent."""

    permission_classes = (HasScope,)
    scopes = {"DELETE": "workloads:admin"}

    @extend_schema(operation_id="agents_delete", responses={204: None})
    def delete(self, request: Request, name: str) -> Response:
        """Forget it: its nodes stay, not ready, and are free for another agent."""
        actor = actor_of(request)
        insist(actor, "may_operate")
        assert actor.user is not None
        forget_agent(name, actor=actor.user)
        return Response(status=HTTPStatus.NO_CONTENT)


def may_see_agents(actor: Actor) -> bool:
    """Return whether agents are shown: to those who see the rows of all teams."""
    return actor.sees_everything
