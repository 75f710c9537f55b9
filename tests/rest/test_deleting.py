"""Promises that nobody needs any more are deleted over REST; 304 where nothing has changed."""

from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client

from gpuplatform.common.models import AuditEntry
from queues import services
from queues.models import Topology
from queues.specs import CohortSpec, FlavorSpec, TopologySpec
from tests.scheduling.loop.world import nodes, queue, work

pytestmark = pytest.mark.django_db
ADDRESSES = ("cluster-queues/cq-datos", "cohorts/spare", "flavors/spare", "topologies/spare")


@pytest.fixture
def ask(cast: Any, token_of: Callable[..., str]) -> Callable[..., Any]:
    nodes(1)
    queue("datos", 4, cohort="all")
    services.save_cohort(CohortSpec("spare"), actor=None)
    services.save_topology(TopologySpec("spare", ("rack",)), actor=None)
    services.save_flavor(FlavorSpec("spare", {"kind": "spare"}), actor=None)
    tokens = {name: token_of(getattr(cast, name)) for name in ("ada", "lea")}

    def send(method: str, path: str, who: str = "ada", **headers: str) -> Any:
        given = {name.replace("_", "-"): value for name, value in headers.items()}
        return Client().generic(
            method, f"/api/v1/{path}", headers={"Authorization": tokens[who], **given}
        )

    return send


@pytest.mark.parametrize("address", ADDRESSES)
def test_what_nobody_needs_is_deleted_by_who_saw_it(ask: Callable[..., Any], address: str) -> None:
    if address.startswith("cluster"):
        from queues.models import LocalQueue  # noqa: PLC0415

        LocalQueue.objects.all().delete()
    path = f"{address}/"
    assert ask("DELETE", path).status_code == 428
    assert ask("DELETE", path, If_Match='"v9"').status_code == 412
    dry = ask("DELETE", f"{path}?dry_run=All", If_Match='"v1"')
    assert (dry.status_code, dry.json()["dry_run"]) == (200, True)
    assert ask("GET", path).status_code == 200
    done = ask("DELETE", f"{path}?reason=Sold%20for%20parts", If_Match='"v1"')
    assert (done.status_code, done.content) == (204, b"")
    assert ask("GET", path).status_code == 404
    assert (
        AuditEntry.objects.filter(action__endswith=".deleted").latest("id").reason
        == "Sold for parts"
    )


@pytest.mark.parametrize("address", ["cohorts/all", "flavors/h100-sxm"])
def test_what_is_needed_stays_and_says_by_whom(ask: Callable[..., Any], address: str) -> None:
    answer = ask("DELETE", f"{address}/", If_Match='"v1"')
    (error,) = answer.json()["errors"]
    assert (answer.status_code, error["code"]) == (409, "in_use")
    assert "cq-datos" in error["detail"]


def test_a_member_deletes_nothing(ask: Callable[..., Any]) -> None:
    assert ask("DELETE", "topologies/spare/", "lea", If_Match='"v1"').status_code == 403
    assert Topology.objects.exists()


@pytest.mark.parametrize("path", ["cluster-queues/cq-datos/", "workloads/{uid}/", "nodes/"])
def test_what_has_not_changed_is_not_sent_again(ask: Callable[..., Any], path: str) -> None:
    row = work("datos", "train")
    path = path.format(uid=row.pk)
    first = ask("GET", path)
    again = ask("GET", path, If_None_Match=first["ETag"])
    assert (again.status_code, again.content) == (304, b"")
    assert ask("GET", path, If_None_Match='"v9"').status_code == 200
    assert first["Cache-Control"] == "private, no-cache"
    other = ask("GET", path, If_Match='"v9"')
    assert (other.status_code, other.json()["errors"][0]["code"]) == (412, "stale")
    row.position = 7
    row.save()
    if "workloads" in path:
        assert ask("GET", path, If_None_Match=first["ETag"]).status_code == 200
