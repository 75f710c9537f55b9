"""Many rows in few statements say the same on both databases."""

from datetime import timedelta
from uuid import uuid4
from zoneinfo import ZoneInfo

import pytest
from django.db import IntegrityError, transaction
from django.db.models import TextField
from django.db.models.functions import Cast

from gpuplatform.common.questions import fetch
from scheduling import persist
from scheduling.models import PodSet, Workload, WorkloadEvent
from tests.scheduling.loop.world import NOON

pytestmark = pytest.mark.django_db
AWKWARD = ['say "no"', "back\\slash", "a,b {c}", "", "tab\there", "línea\nnueva", "NULL"]


@pytest.fixture
def works():
    return Workload.objects.bulk_create(
        Workload(uid=uuid4(), namespace="ns-datos", name=f"w{i}", created_at=NOON)
        for i in range(len(AWKWARD))
    )


@pytest.mark.parametrize("reasons", [AWKWARD, ["same"] * len(AWKWARD)], ids=["each", "one"])
@pytest.mark.parametrize("positions", [[1, None, 3, None, 5, 6, 7], [None] * 7, [4] * 7])
@pytest.mark.parametrize("instants", [[NOON + timedelta(microseconds=i) for i in range(7)], None])
def test_what_is_set_is_what_is_read_whether_it_differs_from_row_to_row_or_not(
    works, reasons, positions, instants
):
    blockers = [
        [{"code": reason, "need": position}]
        for reason, position in zip(reasons, positions, strict=True)
    ]
    columns = ("pending_reason", "position", "blockers", "requeue_at", "preemptible")
    rows = [
        (work.uid, 1, reason, position, said, instants[i] if instants else None, False)
        for i, (work, reason, position, said) in enumerate(
            zip(works, reasons, positions, blockers, strict=True)
        )
    ]
    changed = persist.update(Workload, ("uid", "version"), columns, rows)
    assert changed == {work.uid for work in works}
    found = Workload.objects.in_bulk(list(changed))
    assert [
        tuple(getattr(found[row[0]], name) for name in ("uid", "version", *columns))
        for row in rows
    ] == rows


def test_a_row_that_has_changed_meanwhile_is_left_as_it_is(works):
    Workload.objects.filter(pk=works[0].pk).update(version=2)
    rows = [(work.uid, 1, 2, "late") for work in works]
    changed = persist.update(Workload, ("uid", "version"), ("version", "pending_reason"), rows)
    assert changed == {work.uid for work in works[1:]}
    assert list(Workload.objects.filter(pending_reason="").values_list("name", flat=True)) == [
        "w0"
    ]


def test_new_rows_hold_what_they_were_given_and_the_defaults_of_the_rest(works):
    facts = [{"why": text, "n": [1, 2.5, None, True]} for text in AWKWARD]
    rows = [(w.uid, NOON, "told", one) for w, one in zip(works, facts, strict=True)]
    persist.insert(WorkloadEvent, ("workload_id", "at", "kind", "facts"), rows)
    found = WorkloadEvent.objects.order_by("id")
    assert [event.facts for event in found] == facts
    assert {(event.reason, event.other_id, event.at) for event in found} == {("", None, NOON)}


def _gang(name: str, pods: int) -> tuple[Workload, list[PodSet]]:
    """Return a workload in memory with values of every kind, and its pods."""
    row = Workload(name=name, namespace="ns", gpus=2, priority=-(2**31), created_at=NOON)
    row.labels, row.template = {"a": "ä'\\\n\"%s"}, None
    row.executed_s, row.queued_at = 0.1, NOON.astimezone(ZoneInfo("Asia/Kolkata"))
    requests = {"gpu": 2**60}
    return row, [
        PodSet(workload=row, name=f"p{i}", position=i, count=1, requests=requests)
        for i in range(pods)
    ]


def _columns(rows):
    """Return rows by column, but for what no two of them may share."""
    own = {"id", "uid", "workload_id"}
    return [{k: v for k, v in row.items() if k not in own} for row in rows.values()]


@pytest.mark.parametrize("pods", [0, 1, 3])
def test_rows_of_several_models_that_are_written_together_are_those_of_the_framework(pods):
    found = []
    for together in (True, False):
        row, parts = _gang("gang", pods)
        if together:
            persist.create_together([row], parts)
        else:
            for one in (row, *parts):
                one.save(force_insert=True)
        found.append((_columns(Workload.objects.all()), _columns(row.pod_sets.all())))
        row.delete()
    assert found[0] == found[1]
    assert len(found[0][1]) == pods


def test_of_rows_that_are_written_together_none_is_there_where_one_is_refused():
    row, parts = _gang("broken", 2)
    parts[1].name = parts[0].name
    with pytest.raises(IntegrityError), transaction.atomic():
        persist.create_together([row], parts)
    assert not Workload.objects.exists()


def test_plain_rows_are_equal_to_those_of_the_framework(works):
    Workload.objects.filter(pk=works[0].pk).update(requeue_at=NOON, labels={"a": ["b"]})
    rows = (
        Workload.objects.order_by("name")
        .annotate(text=Cast("labels", TextField()))
        .values_list("uid", "created_at", "requeue_at", "executed_s", "preemptible", "text")
    )
    assert list(fetch(rows)) == list(rows)
    assert list(fetch(rows.filter(uid__in=[]))) == []


def test_instants_of_any_zone_and_fraction_are_those_of_the_framework(works):
    instants = [NOON, NOON.astimezone(ZoneInfo("Asia/Kolkata")), NOON + timedelta(microseconds=7)]
    rows = [(works[0].uid, at, "told") for at in instants]
    persist.insert(WorkloadEvent, ("workload_id", "at", "kind"), rows)
    for at in instants:
        WorkloadEvent.objects.create(workload=works[1], at=at, kind="told")
    written = WorkloadEvent.objects.annotate(text=Cast("at", TextField())).order_by("id")
    texts = [list(written.filter(workload=work).values_list("text", flat=True)) for work in works]
    assert texts[0] == texts[1] != []


def test_rows_are_found_and_deleted_by_many_keys_at_once(works):
    keys = [works[0].pk, works[3].pk, uuid4()]
    (found,) = persist.among(Workload.objects.order_by("name"), keys)
    assert [row.name for row in found] == ["w0", "w3"]
    (named,) = persist.among(Workload.objects.filter(namespace="ns-datos"), ["w1", '"'], "name")
    assert named.delete()[0] == 1
    assert list(persist.among(Workload.objects.all(), [])) == []
