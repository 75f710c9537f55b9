"""Serializers that keep their fields say what DRF's own would, in the same order."""

from typing import Any

import pytest
from rest_framework import serializers

from queues.access import actor_for
from scheduling.models import Placement, PodSet, Workload, WorkloadEvent
from scheduling.serializers import (
    EventSerializer,
    NewWorkloadSerializer,
    PlacementSerializer,
    PodSetSerializer,
    WorkloadRowSerializer,
    WorkloadSerializer,
)

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("three_teams_once")]

PATH = "/api/v1/workloads/"
BODY = {
    "namespace": "ns-datos",
    "queue": "lq-datos",
    "pod_sets": [{"name": "main", "count": 1, "requests": {"nvidia.com/gpu": 1}}],
}
KINDS = [
    (WorkloadRowSerializer, Workload),
    (WorkloadSerializer, Workload),
    (NewWorkloadSerializer, Workload),
    (PodSetSerializer, PodSet),
    (EventSerializer, WorkloadEvent),
]


@pytest.mark.parametrize(("kind", "model"), KINDS, ids=lambda one: one.__name__)
def test_a_row_is_told_as_drf_tells_it(
    kind: Any, model: Any, ada: Any, send: Any, time_machine: Any
) -> None:
    time_machine.move_to("2026-06-01T12:00:00Z", tick=False)
    assert send(ada, "POST", PATH, {**BODY, "name": "train"}).status_code == 201
    context = {"actor": actor_for(ada)}
    for _ in range(2):  # fields are made for the first one, and kept for the second
        (row,) = model.objects.all()
        told = kind(row, context=context).data
        plain = serializers.Serializer.to_representation(kind(row, context=context), row)
        assert list(told.items()) == list(plain.items())
        assert list(told) == list(kind.Meta.fields)


def test_each_reader_has_an_own_context(ada: Any, ian: Any, datos: Any, send: Any) -> None:
    for name in ("victim", "other"):
        assert send(ada, "POST", PATH, {**BODY, "name": name}).status_code == 201
    victim, other = (Workload.objects.get(name=name) for name in ("victim", "other"))
    event = victim.events.get()
    event.other = other
    told = [EventSerializer(event, context={"actor": actor_for(one)}).data for one in (ada, ian)]
    assert [line["other"] for line in told] == [other.uid, None]


def test_a_value_that_is_null_is_told_as_null(db: None) -> None:
    told = PlacementSerializer(Placement(pod_set="main", node="n1", count=1, devices=None)).data
    assert (told["node"], told["devices"]) == ("n1", None)
