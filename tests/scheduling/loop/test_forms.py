"""Forms of work in the running product: fewer pods, affinity, charges instead of requests."""

import json
from dataclasses import replace
from datetime import timedelta

import pytest
from django.core.exceptions import ImproperlyConfigured

from queues.models import FlavorQuota
from scheduling.charging import read_rules
from scheduling.cycle import run_cycle
from scheduling.engine.machines import GPU
from scheduling.engine.terms import Status
from scheduling.loader import load_snapshot
from scheduling.models import Node, Placement, PodSet
from scheduling.reconciler import reconcile
from scheduling.rules import candidate
from scheduling.services import load_world, submit_workload
from scheduling.specs import PodSetSpec, WorkloadSpec
from tests.scheduling.loop.world import FLAVOR, NOON, nodes, queue, status, usage, work

pytestmark = pytest.mark.django_db
UNITS = "example.com/gpu-units"
TABLE = json.dumps([{"input": GPU, "strategy": "Replace", "outputs": {UNITS: "2"}}])
ZONE_B = ({"key": "zone", "operator": "In", "values": ["b"]},)
GANG = PodSetSpec("worker", 4, {GPU: 1})


def spec(pod_set: PodSetSpec) -> WorkloadSpec:
    return WorkloadSpec("ns-datos", "train", (pod_set,), queue="lq")


def test_a_gang_that_is_content_with_fewer_pods_starts_with_what_fits(clock):
    nodes(2)
    queue("datos", 6)
    gang = work("datos", "train", pods=8)
    PodSet.objects.filter(workload=gang).update(min_count=4)
    report = run_cycle()
    assert report.lines == ("admitted ns-datos/train (6x1 GPUs, 6 of 8 pods) on h100-node-01..02",)
    assert gang.events.get(kind="admitted").facts["gpus"] == 6
    assert sum(Placement.objects.values_list("count", flat=True)) == 6
    reconcile()
    assert usage(gang) == [("nominal", "", 6, NOON, None)]
    clock.move_to(NOON + timedelta(hours=1))
    assert run_cycle().admitted == 0
    (known,) = load_snapshot().workloads
    assert known.admission is not None
    assert [a.count for a in known.admission.assignments] == [6]


@pytest.mark.parametrize(("min_member", "admitted"), [(None, 1), (4, 1), (5, 1), (7, 0)])
def test_a_gang_starts_with_its_own_minimum_and_not_with_fewer(clock, min_member, admitted):
    nodes(2)
    queue("datos", 6)
    gang = work("datos", "train", pods=8, min_member=min_member)
    PodSet.objects.filter(workload=gang).update(min_count=4)
    assert run_cycle().admitted == admitted


def test_a_gang_whose_fewest_pods_fit_is_not_refused_as_impossible(clock, django_user_model):
    nodes(1)
    queue("datos", 4)
    actor = django_user_model.objects.create_user("ada")
    submitted = submit_workload(spec(replace(GANG, count=99, min_count=2)), actor=actor)
    codes = {warning["code"] for warning in submitted.workload.warnings}
    assert "FIELD_NOT_HONOURED" not in codes
    assert run_cycle().admitted == 1


def test_node_affinity_is_kept_and_followed(clock, django_user_model):
    nodes(2)
    for name, zone in (("h100-node-01", "a"), ("h100-node-02", "b")):
        row = Node.objects.get(name=name)
        row.labels = {**row.labels, "zone": zone}
        row.save()
    queue("datos", 8)
    actor = django_user_model.objects.create_user("ada")
    submit_workload(spec(replace(GANG, affinity=(ZONE_B,))), actor=actor)
    run_cycle()
    assert [*Placement.objects.values_list("node", "count")] == [("h100-node-02", 4)]


@pytest.fixture
def in_units(clock, settings):
    """A queue that counts units: every GPU is two of them."""
    settings.RESOURCE_TRANSFORMATIONS = TABLE
    nodes(2)
    queue("datos", 0)
    FlavorQuota.objects.all().delete()
    row = queue("ia", 0)
    FlavorQuota.objects.filter(cluster_queue=row).update(resource=UNITS, nominal=8)
    return clock


def test_quota_counts_what_the_transformations_say_and_nodes_what_pods_request(in_units):
    first, second = work("ia", "first", pods=4), work("ia", "second")
    run_cycle()
    reconcile()
    assert (status(first), status(second)) == (Status.RUNNING, Status.PENDING)
    (placement,) = Placement.objects.all()
    assert (placement.flavors, placement.charges) == ({UNITS: FLAVOR}, {UNITS: 2})
    assert usage(first) == [("nominal", "", 4, NOON, None)]  # GPUs, not units


def test_what_runs_is_charged_as_it_was_admitted(in_units, settings):
    work("ia", "first", pods=4)
    run_cycle()
    settings.RESOURCE_TRANSFORMATIONS = TABLE.replace('"2"', '"1"')
    work("ia", "second")
    charged = {w.name: w.pod_sets[0].charges for w in load_snapshot().workloads}
    assert charged == {"ns-ia/first": {UNITS: 2}, "ns-ia/second": {UNITS: 1}}


def test_the_check_at_submission_and_the_cycle_see_the_same_pods(in_units):
    pod_set = replace(GANG, min_count=2, affinity=(ZONE_B,))
    (checked,) = candidate(spec(pod_set), load_world()).pod_sets
    row = work("ia", "first", pods=4)
    stored = [[dict(e) for e in term] for term in pod_set.affinity]
    PodSet.objects.filter(workload=row).update(min_count=2, affinity=stored)
    (loaded,) = load_snapshot().workloads
    assert loaded.pod_sets == (checked,)


@pytest.mark.parametrize(
    "table",
    [
        "no json",
        "{}",
        '["x"]',
        '[{"outputs": {}}]',
        '[{"input": "a", "outputs": {"b": "many"}}]',
        '[{"input": "a", "strategy": "Keep"}]',
        '[{"input": "a", "output": {}}]',
        '[{"input": "a"}, {"input": "a"}]',
    ],
)
def test_a_wrong_table_stops_the_start(table):
    with pytest.raises(ImproperlyConfigured):
        read_rules(table)


def test_a_table_is_written_as_kueue_writes_it():
    text = '[{"input": "cpu", "outputs": {"x": "5Ki", "y": -0.5}, "multiplyBy": "memory"}]'
    (rule,) = read_rules(text).values()
    assert (rule.outputs["x"], rule.outputs["y"] * 2, rule.multiply_by) == (5120, -1, "memory")
