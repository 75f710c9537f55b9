"""Machines that no agent drives: told where others are driven, left when one is forgotten."""

from typing import Any

import pytest

from gpuplatform.common.models import AuditEntry
from scheduling.models import Agent, Alert, Node
from scheduling.watch import watch
from tests.scheduling.agents.conftest import Driver
from tests.scheduling.loop.world import nodes

pytestmark = pytest.mark.django_db
CODE = "NODES_WITHOUT_AGENT"


def standing() -> list[dict[str, Any]]:
    watch()
    return [row.facts for row in Alert.objects.filter(code=CODE, cleared_at=None)]


def test_nodes_that_belong_to_no_agent_while_others_do_are_told(driver: Driver, settings: Any):
    driver.own("node-3")
    assert standing() == []
    nodes(2)
    assert standing() == [{"nodes": 2, "names": "h100-node-01, h100-node-02"}]
    Node.objects.filter(name="h100-node-02").update(schedulable=False)  # nothing comes there
    assert standing() == [{"nodes": 1, "names": "h100-node-01"}]
    settings.CLUSTER_BACKEND = "simulated"
    assert standing() == []


def test_before_the_first_agent_has_come_nothing_is_told(driver: Driver):
    nodes(2)
    Agent.objects.all().delete()
    assert standing() == []


def test_an_agent_is_forgotten_from_its_page(driver: Driver, ada: Any, signed_in: Any):
    driver.own("node-3")
    browser = signed_in(ada)
    page = browser.get("/agents/").content.decode()
    assert 'action="/agents/forget/"' in page
    refused = browser.post("/agents/forget/", {"agent": "rack-1", "reason": "gone"})
    assert refused.status_code == 422
    assert 'value="gone"' in refused.content.decode()
    stranger = browser.post("/agents/forget/", {"agent": "rack-9", "reason": "It has burnt down"})
    assert stranger.status_code == 422
    assert Agent.objects.exists()
    done = browser.post("/agents/forget/", {"agent": "rack-1", "reason": "It has burnt down"})
    assert (done.status_code, done.headers["Location"]) == (302, "/agents/")
    assert not Agent.objects.exists()
    assert not Node.objects.filter(ready=True).exists()
    entry = AuditEntry.objects.get(action="agent.deleted")
    assert (entry.actor_name, entry.reason) == ("ada", "It has burnt down")


def test_who_may_only_look_is_offered_no_way_to_forget(driver: Driver, aud: Any, signed_in: Any):
    page = signed_in(aud).get("/agents/").content.decode()
    assert "/agents/forget/" not in page
