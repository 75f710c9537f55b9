"""Over REST nobody overwrites what they have not seen: of every operation that changes an object.

A write without If-Match is refused (428), and so is one with an old version (412); what is neither
is named here with the reason.
"""

import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.test import Client

from finops.models import SharedCost
from gpuplatform.common.models import AuditEntry
from queues.models import Topology, TopologyLevel
from tests.answers import schema
from tests.finops.rows import JUNE
from tests.matrix.world import SOURCE
from tests.matrix.writes import WRITES, Write

SPARE, OLD = "spare", '"v999999"'
# Where the write of the matrix makes something new.
OTHERS = {"topologies": SPARE, "shared-costs": SPARE, "sources": SOURCE}
# What a lifecycle guards and not a version: each asks for an end that may only be asked for once.
UNVERSIONED = {
    "DELETE /api/v1/agents/{name}/": "forgets who speaks for machines; nobody edits it",
    "DELETE /api/v1/operations/{uid}/": "ends a request; one that is over stays as it is",
    "DELETE /api/v1/replays/{uid}/": "ends a replay; one that is over stays as it is",
    "DELETE /api/v1/periods/{month}/adjustments/{id}/": "a line never changes, it is or is not",
    "PATCH /api/v1/workloads/{uid}/": "changes with every cycle; what it may become is guarded",
    "DELETE /api/v1/workloads/{uid}/": "ends work, however far it is",
}


def changing() -> Iterator[tuple[str, str, dict[str, Any]]]:
    for path, item in schema()["paths"].items():
        for method in ("put", "patch", "delete"):
            if method in item:
                yield method.upper(), path, item[method]


def name_of(method: str, path: str) -> str:
    return f"{method} {path}"


VERSIONED = [one for one in changing() if name_of(one[0], one[1]) not in UNVERSIONED]


def test_only_known_operations_do_without_a_version() -> None:
    assert {name_of(method, path) for method, path, _shape in changing()} >= UNVERSIONED.keys()
    told = {
        name_of(method, path)
        for method, path, shape in changing()
        if any(one["name"] == "If-Match" for one in shape["parameters"])
    }
    assert told == {name_of(method, path) for method, path, _shape in VERSIONED}


@pytest.fixture
def things(world: Any, db: None) -> None:
    """Let there be something at each address."""
    topology = Topology.objects.create(name=SPARE)
    TopologyLevel.objects.create(topology=topology, position=0, node_label="rack")
    rent = {"method": "even", "amount": 100, "currency": "EUR", "valid_from": JUNE}
    SharedCost.objects.create(name=SPARE, **rent)


def write_of(method: str, path: str) -> Write:
    """Return the write of the matrix that does this."""
    pattern = re.compile(re.sub(r"\\\{\w+\\\}", "[^/]+", re.escape(path)))
    known = [one for one in WRITES if one.is_rest and one.method == method]
    return next(one for one in known if pattern.fullmatch(one.path.split("?")[0]))


@pytest.mark.parametrize(
    ("method", "path"), [(method, path) for method, path, _shape in VERSIONED]
)
def test_what_was_not_seen_is_not_overwritten(
    things: None, program: Callable[[str], Client], method: str, path: str
) -> None:
    admin, write = program("ada of everything"), write_of(method, path)
    other = OTHERS.get(path.split("/")[3])
    where = path.format(name=other) if other else write.path
    notes = AuditEntry.objects.count()
    answers = [
        admin.generic(method, where, write.body or "", "application/json", headers=headers)
        for headers in ({}, {"If-Match": OLD})
    ]
    assert [one.status_code for one in answers] == [428, 412]
    assert AuditEntry.objects.count() == notes
