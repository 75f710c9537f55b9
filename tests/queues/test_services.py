"""Writing promises: guarded, audited, awake, whole; and nothing at all where nothing changed."""

from dataclasses import replace
from decimal import Decimal

import pytest

from gpuplatform.common.models import AuditEntry, Change
from gpuplatform.common.problems import Problem, Rejected, Stale
from queues import services
from queues.descriptions import (
    describe_cluster_queue,
    describe_cohort,
    describe_flavor,
    describe_local_queue,
    describe_namespace,
    describe_priority_class,
    describe_team,
    describe_topology,
)
from queues.models import (
    ClusterQueue,
    Cohort,
    FlavorQuota,
    LocalQueue,
    Namespace,
    ResourceFlavor,
    Team,
    TopologyLevel,
)
from queues.services import writing
from queues.specs import (
    CohortSpec,
    FlavorQuotasSpec,
    FlavorSpec,
    FungibilitySpec,
    LocalQueueSpec,
    NamespaceSpec,
    PreemptionSpec,
    PriorityClassSpec,
    QuotaSpec,
    ResourceGroupSpec,
    TaintSpec,
    TeamSpec,
    TolerationSpec,
    TopologySpec,
)
from tests.queues.promises import GPU, group, queue

pytestmark = pytest.mark.django_db

RICH_GROUPS = (
    ResourceGroupSpec(
        (GPU, "cpu"),
        (
            FlavorQuotasSpec("h100", (QuotaSpec(GPU, 16, 8, 4), QuotaSpec("cpu", 128_000))),
            FlavorQuotasSpec("a100", (QuotaSpec(GPU, 8), QuotaSpec("cpu", 64_500, None, 0))),
        ),
    ),
    group(QuotaSpec("example.com/licence", 3), flavor="licences"),
)
RICH_QUEUE = queue(
    groups=RICH_GROUPS,
    queueing_strategy="StrictFIFO",
    stop_policy="Hold",
    fair_weight=Decimal("2.5"),
    namespace_selector={"matchLabels": {"a": "b"}},
    preemption=PreemptionSpec("LowerPriority", "Any", "LowerPriority", 100),
    reclaimable=False,
    undeclared="IgnoreUndeclared",
    fungibility=FungibilitySpec("TryNextFlavor", "TryNextFlavor", "PreemptionOverBorrowing"),
    minimum_runtime_s=3600,
    yields_to_own=True,
    admission_order="usage",
    priority_first=True,
    carried={"admissionChecks": ["budget"]},
)
SAVED = [
    pytest.param(
        services.save_team,
        TeamSpec("datos", "Datos", "CC-1", "chargeback", "The data people"),
        describe_team,
        id="team",
    ),
    pytest.param(
        services.save_namespace, NamespaceSpec("ns-x", {"a": "b"}), describe_namespace, id="ns"
    ),
    pytest.param(
        services.save_flavor,
        FlavorSpec(
            "h100",
            {"accelerator": "h100"},
            (TaintSpec("gpu", "yes", "NoExecute"),),
            (TolerationSpec("gpu", "Equal", "yes", "NoExecute", 60),),
            "dc",
        ),
        describe_flavor,
        id="flavor",
    ),
    pytest.param(
        services.save_topology, TopologySpec("dc", ("block", "rack")), describe_topology, id="topo"
    ),
    pytest.param(
        services.save_cohort,
        CohortSpec("mid", "root", RICH_GROUPS, Decimal("0.5")),
        describe_cohort,
        id="cohort",
    ),
    pytest.param(
        services.save_cohort,
        CohortSpec("top", fairness="history"),
        describe_cohort,
        id="top cohort",
    ),
    pytest.param(services.save_cluster_queue, RICH_QUEUE, describe_cluster_queue, id="queue"),
    pytest.param(
        services.save_local_queue,
        LocalQueueSpec("ns-x", "lq", "cq-datos", "HoldAndDrain", Decimal(3)),
        describe_local_queue,
        id="local queue",
    ),
    pytest.param(
        services.save_priority_class,
        PriorityClassSpec("pod", "high", -5, True, "first"),
        describe_priority_class,
        id="priority class",
    ),
]


def entries(**lookup):
    return list(
        AuditEntry.objects.filter(**lookup).order_by("id").values_list("action", flat=True)
    )


def codes(caught):
    return [(problem.path, problem.code) for problem in caught.value.problems]


@pytest.mark.parametrize(("save", "spec", "describe"), SAVED)
def test_what_is_saved_can_be_described_again(save, spec, describe):
    assert describe(save(spec, actor=None)) == spec


@pytest.mark.parametrize(("save", "spec", "describe"), SAVED)
def test_saving_an_equal_spec_changes_nothing(save, spec, describe):
    first = save(spec, actor=None)
    before = AuditEntry.objects.count(), Change.objects.count()
    second = save(describe(first), actor=None, if_version=1, reason="again, and why so")
    assert (second.pk, second.version) == (first.pk, 1)
    assert (AuditEntry.objects.count(), Change.objects.count()) == before


@pytest.mark.parametrize(("save", "spec", "describe"), SAVED)
def test_what_must_be_new_is_refused_where_it_is_there(save, spec, describe):
    save(spec, actor=None, if_version=0)
    with pytest.raises(Stale):
        save(spec, actor=None, if_version=0)


def test_an_edit_grows_the_version_and_is_audited_with_both_states(ada, datos):
    services.save_cluster_queue(queue(team="datos"), actor=ada)
    edited = services.save_cluster_queue(
        queue(24), actor=ada, reason="more work, and why so", if_version=1
    )
    assert edited.version == 2
    entry = AuditEntry.objects.get(action="cluster_queue.updated")
    nominal = [
        state["groups"][0]["flavors"][0]["quotas"][0]["nominal"]
        for state in (entry.before, entry.after)
    ]
    assert nominal == [16, 24]
    assert (entry.actor_name, entry.reason, entry.team) == (
        "ada",
        "more work, and why so",
        "datos",
    )
    assert (entry.subject_kind, entry.subject) == ("ClusterQueue", "cq-datos")
    assert entry.before["team"] == entry.after["team"] == "datos"


def test_saving_asks_for_a_cycle():
    services.save_cluster_queue(queue(), actor=None)
    assert ("cluster_queue", "cq-datos") in Change.objects.values_list("topic", "key")


def test_quotas_are_replaced_whole():
    services.save_cluster_queue(RICH_QUEUE, actor=None)
    services.save_cluster_queue(queue(), actor=None)
    assert list(FlavorQuota.objects.values_list("flavor", "resource", "nominal")) == [
        ("h100-sxm", GPU, 16)
    ]


def test_the_second_of_two_editors_is_told_the_current_version():
    services.save_cluster_queue(queue(), actor=None)
    services.save_cluster_queue(queue(24), actor=None, if_version=1)
    with pytest.raises(Stale) as caught:
        services.save_cluster_queue(queue(32), actor=None, if_version=1)
    assert codes(caught) == [("version", "stale")]
    assert caught.value.problems[0].numbers == {"current": 2}
    assert FlavorQuota.objects.get().nominal == 24


def test_an_edit_of_what_was_deleted_meanwhile_is_stale():
    with pytest.raises(Stale) as caught:
        services.save_team(TeamSpec("datos"), actor=None, if_version=3)
    assert caught.value.problems[0].numbers == {"current": 0}
    assert not Team.objects.exists()


def test_a_row_that_changed_after_it_was_read_is_not_overwritten():
    row = services.save_team(TeamSpec("datos"), actor=None)
    Team.objects.filter(pk=row.pk).update(version=2, description="faster")
    edit = writing.Edit(Team, "datos", None)
    with pytest.raises(Stale):
        edit.update(row, {"description": "slower"})
    assert Team.objects.get().description == "faster"


def test_a_row_that_somebody_else_has_just_made_is_not_made_twice():
    services.save_team(TeamSpec("datos"), actor=None)
    with pytest.raises(Stale):
        writing.Edit(Team, "datos", None).create({"name": "datos"})


def test_a_rejected_spec_changes_nothing_and_names_everything():
    bad = queue(groups=(group(QuotaSpec(GPU, 16, None, 17)),), team="x", stop_policy="y")
    with pytest.raises(Rejected) as caught:
        services.save_cluster_queue(bad, actor=None)
    assert codes(caught) == [
        ("team", "no_such_team"),
        ("stop_policy", "unknown_choice"),
        ("groups[0].flavors[0].quotas[0].lending_limit", "lending_above_nominal"),
    ]
    for model in (ClusterQueue, Cohort, FlavorQuota, AuditEntry, Change):
        assert not model.objects.exists()


def test_a_manifest_keeps_the_owner_and_the_empty_name_takes_it_away(datos):
    services.save_cluster_queue(queue(team="datos"), actor=None)
    services.save_namespace(NamespaceSpec("ns", team="datos"), actor=None)
    assert services.save_cluster_queue(queue(24), actor=None).team == datos
    assert services.save_namespace(NamespaceSpec("ns", {"a": "b"}), actor=None).team == datos
    assert services.save_cluster_queue(queue(24, team=""), actor=None).team is None
    assert services.save_namespace(NamespaceSpec("ns", team=""), actor=None).team is None


def test_a_namespace_goes_to_another_team_only_with_a_word_that_both_read(ada, datos, ia):
    services.give_namespace("ns", "datos", actor=ada)
    with pytest.raises(Rejected) as refused:
        services.give_namespace("ns", "ia", actor=ada)
    (problem,) = refused.value.problems
    assert (problem.path, problem.code) == ("reason", "reason_required")
    assert "belongs to Datos" in problem.message
    why = "The lead of Datos agrees"
    assert services.give_namespace("ns", "ia", actor=ada, reason=why).team == ia
    told = AuditEntry.objects.filter(subject="ns", reason=why).order_by("team")
    assert list(told.values_list("team", "action")) == [
        ("datos", "namespace.taken"),
        ("ia", "namespace.updated"),
    ]


def test_a_reason_of_a_person_says_something_through_every_door(ada):
    services.save_cluster_queue(queue(), actor=ada)
    with pytest.raises(Rejected) as refused:
        services.save_cluster_queue(queue(24), actor=ada, reason="because")
    (problem,) = refused.value.problems
    assert (problem.path, problem.code) == ("reason", "reason_too_short")
    assert ClusterQueue.objects.get().version == 1


# ---- cohorts ---------------------------------------------------------------------------------
def test_a_cohort_that_is_only_named_exists_implicitly():
    services.save_cluster_queue(queue(), actor=None)
    assert Cohort.objects.get().implicit
    services.save_cohort(CohortSpec("llm-platform", "org"), actor=None)
    assert dict(Cohort.objects.values_list("name", "implicit")) == {
        "llm-platform": False,
        "org": True,
    }


def test_an_implicit_cohort_goes_with_the_last_one_that_names_it():
    services.save_cluster_queue(queue(), actor=None)
    services.save_cluster_queue(queue(cohort="other"), actor=None)
    assert list(Cohort.objects.values_list("name", flat=True)) == ["other"]
    services.delete_cluster_queue("cq-datos", actor=None)
    assert not Cohort.objects.exists()


def test_a_declared_cohort_stays_when_its_last_queue_leaves():
    services.save_cohort(CohortSpec("llm-platform"), actor=None)
    services.save_cluster_queue(queue(), actor=None)
    services.save_cluster_queue(queue(cohort="other"), actor=None)
    assert Cohort.objects.filter(name="llm-platform").exists()


def test_cohorts_cannot_contain_themselves():
    services.save_cohort(CohortSpec("leaf", "mid"), actor=None)
    services.save_cohort(CohortSpec("mid", "root"), actor=None)
    with pytest.raises(Rejected) as caught:
        services.save_cohort(CohortSpec("root", "leaf"), actor=None)
    assert codes(caught) == [("parent", "cycle")]
    assert caught.value.problems[0].numbers == {"chain": "root > leaf > mid > root"}


# ---- fixed once set --------------------------------------------------------------------------
def test_a_local_queue_keeps_its_target():
    services.save_local_queue(LocalQueueSpec("ns", "lq", "cq-a"), actor=None)
    with pytest.raises(Rejected) as caught:
        services.save_local_queue(LocalQueueSpec("ns", "lq", "cq-b"), actor=None)
    assert codes(caught) == [("cluster_queue", "immutable")]
    assert LocalQueue.objects.get().cluster_queue == "cq-a"


def test_a_local_queue_brings_its_namespace():
    services.save_local_queue(LocalQueueSpec("ns", "lq", "cq-a"), actor=None)
    assert Namespace.objects.get().selectable_labels == {"kubernetes.io/metadata.name": "ns"}


def test_a_flavor_keeps_its_topology():
    flavor = FlavorSpec("h100", {"a": "b"}, topology="dc")
    services.save_flavor(flavor, actor=None)
    with pytest.raises(Rejected) as caught:
        services.save_flavor(replace(flavor, topology=""), actor=None)
    assert codes(caught) == [("topology", "immutable")]


def test_levels_are_replaced_in_their_order():
    host = "kubernetes.io/hostname"
    services.save_topology(TopologySpec("dc", ("block", "rack", host)), actor=None)
    services.save_topology(TopologySpec("dc", ("rack", "block", host)), actor=None)
    labels = TopologyLevel.objects.order_by("position").values_list("node_label", flat=True)
    assert list(labels) == ["rack", "block", host]


# ---- deletions -------------------------------------------------------------------------------
def test_what_is_not_there_cannot_be_deleted():
    for delete in (
        services.delete_team,
        services.delete_namespace,
        services.delete_flavor,
        services.delete_topology,
        services.delete_cohort,
        services.delete_cluster_queue,
    ):
        with pytest.raises(Rejected) as caught:
            delete("nothing", actor=None)
        assert codes(caught) == [("name", "not_found")]
    for delete in (services.delete_local_queue, services.delete_priority_class):
        with pytest.raises(Rejected):
            delete("ns", "nothing", actor=None)


def test_what_is_needed_cannot_be_deleted(datos):
    services.save_topology(TopologySpec("dc", ("block",)), actor=None)
    services.save_flavor(FlavorSpec("h100-sxm", {"a": "b"}, topology="dc"), actor=None)
    services.save_cluster_queue(queue(team="datos"), actor=None)
    services.save_local_queue(LocalQueueSpec("ns", "lq", "cq-datos"), actor=None)
    needed = [
        (services.delete_topology, "dc", "h100-sxm"),
        (services.delete_flavor, "h100-sxm", "cq-datos"),
        (services.delete_cohort, "llm-platform", "cq-datos"),
        (services.delete_cluster_queue, "cq-datos", "ns/lq"),
        (services.delete_team, "datos", "cq-datos"),
    ]
    for delete, name, user in needed:
        with pytest.raises(Rejected) as caught:
            delete(name, actor=None)
        assert codes(caught) == [("name", "in_use")]
        assert user in caught.value.problems[0].message


def test_deleting_is_audited_with_what_was_there(ada):
    services.save_flavor(FlavorSpec("h100", {"a": "b"}), actor=ada)
    services.delete_flavor("h100", actor=ada, reason="sold, and why so", if_version=1)
    entry = AuditEntry.objects.get(action="resource_flavor.deleted")
    assert (entry.before["node_labels"], entry.after, entry.reason) == (
        {"a": "b"},
        None,
        "sold, and why so",
    )
    assert not ResourceFlavor.objects.exists()


def test_a_stale_deletion_deletes_nothing():
    services.save_team(TeamSpec("datos"), actor=None)
    with pytest.raises(Stale):
        services.delete_team("datos", actor=None, if_version=7)
    assert Team.objects.exists()


def test_a_room_above_can_forbid_a_deletion(monkeypatch):
    monkeypatch.setattr(writing, "_guards", [])
    services.save_local_queue(LocalQueueSpec("ns", "lq", "cq"), actor=None)

    def guard(kind, key):
        if (kind, key) == ("LocalQueue", "ns/lq"):
            yield Problem("name", "has_workloads", "2 workloads run in it", {"workloads": 2})

    services.register_delete_guard(guard)
    services.register_delete_guard(guard)
    with pytest.raises(Rejected) as caught:
        services.delete_local_queue("ns", "lq", actor=None)
    assert codes(caught) == [("name", "has_workloads")]
    assert LocalQueue.objects.exists()
