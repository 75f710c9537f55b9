"""What an edit means is told before it is saved: by form, REST dry run and manifest alike."""

from datetime import timedelta

import pytest
from django.urls import reverse
from django.utils import timezone

from finops.models import Price
from gpuplatform.doors.importer import import_documents
from queues.models import ClusterQueue, Cohort, ResourceFlavor, Topology, TopologyLevel
from scheduling.models import Node
from tests.pages.conftest import decide
from tests.pages.test_editors import posted
from tests.scheduling.loop import world

pytestmark = pytest.mark.django_db
REASON = "Agreed in the June review"
JSON = "application/json"
ANY = {"If-Match": "*"}  # whatever its version is: for admins


def told(answer):
    """Return the findings of a form's Check, or the warnings of a REST answer, by code."""
    if answer["Content-Type"].startswith("text/html"):
        found = answer.context["findings"]
        return {finding.code: finding for finding in found}
    return {warning["code"]: warning for warning in answer.json()["warnings"]}


@pytest.fixture
def admin(ada, signed_in):
    return signed_in(ada)


@pytest.fixture
def check(admin):
    """Press Check in the editor of an object."""

    def send(kind, name, **changes):
        path = reverse(f"{kind}-edit", args=[name])
        return admin.post(path, posted(admin.get(path), check="1", **changes))

    return send


@pytest.fixture
def dry(admin):
    """Put an object with some values changed, keeping nothing."""

    def send(path, **changes):
        body = admin.get(f"/api/v1/{path}/").json() | changes
        address = f"/api/v1/{path}/?dry_run=All"
        return admin.put(address, body, content_type=JSON, headers={"If-Match": "*"})

    return send


def gpus(nominal, **limits):
    cell = {"resource": "nvidia.com/gpu", "nominal": str(nominal), **limits}
    flavor = {"flavor": "h100-sxm", "quotas": [cell]}
    return [{"resources": ["nvidia.com/gpu"], "flavors": [flavor]}]


# ---- debts -------------------------------------------------------------------------------------
def test_a_cut_below_what_is_held_says_that_a_debt_stays(platform, check):
    """12 are held: with 6 of its own and at most 4 borrowed two are too many."""
    answer = check("queue", "cq-datos", **{"quota-0-nominal": "6"})
    debt = told(answer)["EDIT_LEAVES_DEBT"]
    assert (debt.numbers["amount"], debt.numbers["ceiling"], debt.numbers["over"]) == (12, 10, 2)
    assert "2 GPUs above its ceiling of 10 GPUs" in debt.sentence
    assert "EDIT_LEAVES_DEBT" not in told(check("queue", "cq-datos", **{"quota-0-nominal": "8"}))


@pytest.mark.parametrize(
    ("changes", "cells"),
    [
        ({"groups": gpus(8, lending_limit="0")}, {"quota-0-lending_limit": "0"}),
        ({"groups": gpus(2)}, {"quota-0-nominal": "2"}),
        ({"cohort": None}, {"cohort": ""}),
    ],
    ids=["nothing is lent", "less is promised", "the cohort is left"],
)
def test_a_lender_that_takes_its_quota_away_is_told_who_is_left_in_debt(
    platform, check, dry, changes, cells
):
    """Datos holds 4 GPUs of ia: with each of these edits of ia they are nobody's."""
    for answer in (check("queue", "cq-ia", **cells), dry("cluster-queues/cq-ia", **changes)):
        debt = told(answer)["EDIT_LEAVES_DEBT"]
        numbers = debt["numbers"] if isinstance(debt, dict) else debt.numbers
        assert (numbers["queue"], numbers["amount"], numbers["over"]) == ("cq-datos", 12, 4)
        assert numbers["ceiling"] == 8


def test_a_manifest_and_a_cohort_tell_the_same_debt(platform, dry):
    Cohort.objects.create(name="above")
    Cohort.objects.filter(name="llm").update(parent=Cohort.objects.get(name="above"))
    ClusterQueue.objects.filter(name="cq-ia").update(cohort=Cohort.objects.get(name="above"))
    assert "EDIT_LEAVES_DEBT" not in told(dry("cohorts/llm"))
    assert told(dry("cohorts/llm", parent=None))["EDIT_LEAVES_DEBT"]["numbers"]["over"] == 4
    text = "apiVersion: kueue.x-k8s.io/v1beta1\nkind: Cohort\nmetadata: {name: llm}\nspec: {}\n"
    report = import_documents(text, actor=None, dry_run=True)
    debt = {finding.code: finding for finding in report.findings}["EDIT_LEAVES_DEBT"]
    assert (debt.subject, debt.numbers["over"]) == ("ClusterQueue/cq-datos", 4)


def test_a_debt_of_others_that_the_edit_leaves_as_it_is_is_not_told_again(platform, dry):
    ClusterQueue.objects.get(name="cq-ia").quotas.update(lending_limit=0)
    assert "EDIT_LEAVES_DEBT" not in told(
        dry("cluster-queues/cq-ia", groups=gpus(9, lending_limit="0"))
    )


def test_less_than_is_held_is_told_of_every_cell_that_drops_below(platform, check):
    loan = told(check("queue", "cq-ia", **{"quota-0-nominal": "1"}))["EDIT_BELOW_USE"]
    assert (loan.numbers["amount"], loan.numbers["promised"]) == (2, 1)
    assert "cq-ia holds 2 GPUs of h100-sxm; with this 1 GPU are its own" in loan.sentence
    assert "EDIT_BELOW_USE" not in told(check("queue", "cq-ia", **{"quota-0-nominal": "2"}))


# ---- what costs others work is confirmed by name ------------------------------------------------
@pytest.fixture
def apply(admin):
    """Press Apply in the editor of a queue."""

    def send(name, **changes):
        path = reverse("queue-edit", args=[name])
        return admin.post(path, posted(admin.get(path), reason=REASON, **changes))

    return send


def nominal_of(name):
    return ClusterQueue.objects.get(name=name).quotas.get().nominal


@pytest.mark.parametrize("typed", ["", "cq-datos", "CQ-IA"])
def test_a_nominal_below_use_is_not_applied_without_the_name_of_the_queue(platform, apply, typed):
    answer = apply("cq-ia", confirm=typed, **{"quota-0-nominal": "1"})
    assert answer.status_code == 422
    assert nominal_of("cq-ia") == 8
    assert "type cq-ia to apply it" in answer.text
    assert 'name="confirm"' in answer.text
    assert "EDIT_BELOW_USE" in told(answer)
    assert 'value="1"' in answer.text  # what was typed stays


def test_with_the_name_it_is_applied_and_other_edits_never_ask(platform, apply):
    assert apply("cq-ia", confirm=" cq-ia ", **{"quota-0-nominal": "1"}).status_code == 302
    assert nominal_of("cq-ia") == 1
    assert apply("cq-ia", **{"quota-0-nominal": "9"}).status_code == 302


# ---- while it is typed --------------------------------------------------------------------------
def test_what_is_typed_is_judged_as_by_the_button_without_the_page_around_it(platform, admin):
    path = reverse("queue-edit", args=["cq-ia"])
    data = posted(admin.get(path), check="1", **{"quota-0-nominal": "1"})
    pressed, live = admin.post(path, data), admin.post(path, data, headers={"HX-Request": "true"})
    assert [f.code for f in live.context["findings"]] == [
        f.code for f in pressed.context["findings"]
    ]
    assert "<html" in pressed.text
    assert "<html" not in live.text
    assert ('name="confirm"' in live.text, nominal_of("cq-ia")) == (True, 8)
    wrong = admin.post(path, data | {"quota-0-nominal": "x"}, headers={"HX-Request": "true"})
    assert (wrong.status_code, "x is not an amount" in wrong.text) == (422, True)


def test_an_alert_that_stood_before_is_not_told_as_caused_by_the_edit(platform, check):
    Node.objects.filter(name="h100-node-01").update(schedulable=False)
    found = check("queue", "cq-ia", fair_weight="2").context["findings"]
    assert "GUARANTEES_EXCEED_CAPACITY" not in {one.code for one in found}
    standing = {one.numbers["alert"]: one for one in found if one.code == "ALERT_STANDS"}
    words = standing["GUARANTEES_EXCEED_CAPACITY"].sentence
    assert words.startswith("It stands already, and not by this: ")


# ---- work that becomes impossible ---------------------------------------------------------------
def test_a_smaller_quota_names_the_waiting_work_that_it_makes_impossible(platform, check, dry):
    ClusterQueue.objects.update(cohort=None)
    world.work("datos", "six", gpus=3, pods=2)
    for answer in (
        check("queue", "cq-datos", **{"quota-0-nominal": "4", "quota-0-borrowing_limit": ""}),
        dry("cluster-queues/cq-datos", groups=gpus(4)),
    ):
        found = told(answer)["WORK_BECOMES_IMPOSSIBLE"]
        numbers = found["numbers"] if isinstance(found, dict) else found.numbers
        assert (numbers["workload"], numbers["blocker"]) == ("ns-datos/six", "NEVER_FITS_QUEUE")
        assert (numbers["need"], numbers["ceiling"]) == (6, 4)
    assert ClusterQueue.objects.get(name="cq-datos").version == 1


def test_after_the_save_such_work_shows_that_it_is_impossible(platform, admin):
    ClusterQueue.objects.update(cohort=None)
    row = world.work("datos", "six", gpus=3, pods=2)
    path = reverse("queue-edit", args=["cq-datos"])
    cells = {"quota-0-nominal": "4", "quota-0-borrowing_limit": "", "reason": REASON}
    cells["confirm"] = "cq-datos"
    answer = admin.post(path, posted(admin.get(path), **cells), follow=True)
    assert "ns-datos/six can never run" in answer.text
    decide()
    row.refresh_from_db()
    blockers = {b["code"]: b for b in row.blockers}
    assert blockers["IMPOSSIBLE"]["facts"]["sub_code"] == "NEVER_FITS_QUEUE"
    assert "IMPOSSIBLE" in admin.get(reverse("workload", args=[row.uid])).text


def test_a_larger_quota_names_the_work_that_it_makes_possible(platform, check):
    ClusterQueue.objects.update(cohort=None)
    world.work("datos", "ten", gpus=2, pods=5)
    answer = check("queue", "cq-datos", **{"quota-0-nominal": "12", "quota-0-borrowing_limit": ""})
    assert told(answer)["WORK_BECOMES_POSSIBLE"].numbers == {"workload": "ns-datos/ten"}


def test_a_taint_of_a_flavor_names_the_work_that_does_not_tolerate_it(platform, check, dry):
    taint = {"key": "only", "value": "llm", "effect": "NoSchedule"}
    for answer in (
        check("flavor", "h100-sxm", node_taints="only=llm:NoSchedule"),
        dry("flavors/h100-sxm", node_taints=[taint]),
    ):
        found = told(answer)["WORK_BECOMES_IMPOSSIBLE"]
        numbers = found["numbers"] if isinstance(found, dict) else found.numbers
        assert numbers["workload"] == "ns-datos/later"
        assert (numbers["blocker"], numbers["taint"]) == (
            "TAINT_NOT_TOLERATED",
            "only=llm:NoSchedule",
        )
    assert ResourceFlavor.objects.get().node_taints == []


def test_a_level_that_a_topology_loses_names_the_work_that_asks_for_it(platform, check, dry):
    topology = Topology.objects.create(name="dc")
    for position, label in enumerate(("rack", "kubernetes.io/hostname")):
        TopologyLevel.objects.create(topology=topology, position=position, node_label=label)
    ResourceFlavor.objects.update(topology="dc")
    for node in Node.objects.all():
        node.labels |= {"rack": "r1", "block": "b1"}
        node.save()
    world.work(
        "datos", "near", pods=2, topology={"topology_mode": "required", "topology_level": "rack"}
    )
    for answer in (
        check("topology", "dc", levels="block\nkubernetes.io/hostname"),
        dry("topologies/dc", levels=["block", "kubernetes.io/hostname"]),
    ):
        found = told(answer)["WORK_BECOMES_IMPOSSIBLE"]
        numbers = found["numbers"] if isinstance(found, dict) else found.numbers
        assert (numbers["workload"], numbers["level"]) == ("ns-datos/near", "rack")
    assert topology.levels.count() == 2


def test_a_node_that_is_forgotten_names_the_work_that_then_never_fits(platform, admin):
    world.work("datos", "whole", pods=4, gpus=4)
    Cohort.objects.update(parent=None)
    ClusterQueue.objects.filter(name="cq-datos").update(cohort=None)
    ClusterQueue.objects.get(name="cq-datos").quotas.update(nominal=16, borrowing_limit=None)
    node = Node.objects.order_by("name").last()
    page = admin.post(reverse("node-delete", args=[node.name]), {"check": "1"})
    rest = admin.delete(f"/api/v1/nodes/{node.name}/?dry_run=All", headers=ANY)
    assert (page.status_code, rest.status_code, rest.json()["dry_run"]) == (200, 200, True)
    for answer in (page, rest):
        found = told(answer)["WORK_BECOMES_IMPOSSIBLE"]
        numbers = found["numbers"] if isinstance(found, dict) else found.numbers
        assert (numbers["workload"], numbers["blocker"]) == (
            "ns-datos/whole",
            "NEVER_FITS_CLUSTER",
        )
        assert (numbers["need"], numbers["have"]) == (16, 12)
    assert Node.objects.filter(name=node.name).exists()
    kept = admin.post(reverse("node-delete", args=[node.name]), {"reason": REASON}, follow=True)
    assert "ns-datos/whole can never run" in kept.text
    assert not Node.objects.filter(name=node.name).exists()


def test_a_node_that_is_forgotten_names_who_stands_on_it(ran_for_two_hours, admin):
    answer = admin.delete("/api/v1/nodes/h100-node-02/?dry_run=All", headers=ANY)
    numbers = told(answer)["REMOVAL_EVICTS"]["numbers"]
    assert numbers == {"count": 1, "names": "ns-datos/train", "gpu_hours": "24.0"}
    page = admin.post(reverse("node-delete", args=["h100-node-02"]), {"check": "1"})
    assert "1 with pods on h100-node-02 lose them: ns-datos/train." in page.text


def test_a_drain_tells_before_who_has_to_go_and_what_that_is_worth(ran_for_two_hours, admin):
    path, node = "/api/v1/nodes/h100-node-02/", "h100-node-02"
    body = {"schedulable": False, "drain": True}
    unpriced = admin.patch(f"{path}?dry_run=All", body, content_type=JSON, headers=ANY)
    assert told(unpriced)["DRAIN_MOVES"]["detail"].endswith("24.0 GPU-hours of work are lost.")
    Price.objects.create(
        unit="gpu_hour", subject="*", amount="2.5", valid_from=timezone.now() - timedelta(days=9)
    )
    rest = told(admin.patch(f"{path}?dry_run=All", body, content_type=JSON, headers=ANY))[
        "DRAIN_MOVES"
    ]
    assert (rest["numbers"]["names"], rest["numbers"]["gpu_hours"]) == ("ns-datos/train", "24.0")
    assert abs(float(rest["numbers"]["cost"]) - 60) < 1  # 24 GPU-hours at 2.50
    check = admin.post(reverse("node-cordon", args=[node]), {"check-drain": "yes"})
    assert "ns-datos/train" in told(check)["DRAIN_MOVES"].sentence
    assert not Node.objects.get(name=node).draining
    # A cordon alone moves nobody, and says nothing of the kind.
    assert "DRAIN_MOVES" not in told(
        admin.post(reverse("node-cordon", args=[node]), {"check": "1", "cordoned": "yes"})
    )
    done = admin.post(
        reverse("node-cordon", args=[node]), {"drain": "yes", "reason": REASON}, follow=True
    )
    assert f"{node} is drained." in done.text
    assert Node.objects.get(name=node).draining


def test_an_alert_that_stands_already_is_told_again_where_it_grows(platform, admin):
    Node.objects.filter(name="h100-node-01").update(schedulable=False)
    answer = admin.delete("/api/v1/nodes/h100-node-02/?dry_run=All", headers=ANY)
    assert told(answer)["GUARANTEES_EXCEED_CAPACITY"]["numbers"]["capacity"] == 8


NODE = """
apiVersion: v1
kind: Node
metadata: {name: h100-node-04, labels: {accelerator: h100-sxm}}
status:
  allocatable: {cpu: "120", memory: 960Gi, pods: "110", nvidia.com/gpu: "2"}
  conditions: [{type: Ready, status: "True"}]
"""


def test_a_node_that_reports_less_names_the_work_that_then_never_fits(platform, admin):
    world.work("datos", "whole", pods=4, gpus=4)
    ClusterQueue.objects.get(name="cq-datos").quotas.update(nominal=16, borrowing_limit=None)
    report = admin.post(
        "/api/v1/manifests/?dry_run=All", NODE, content_type="application/yaml"
    ).json()
    codes = {finding["code"] for finding in report["findings"]}
    assert {"WORK_BECOMES_IMPOSSIBLE", "GUARANTEES_EXCEED_CAPACITY"} <= codes
    assert Node.objects.get(name="h100-node-04").allocatable["nvidia.com/gpu"] == 4


# ---- alerts appear, stand and clear -------------------------------------------------------------
def standing(browser):
    return {alert["code"] for alert in browser.get("/api/v1/alerts/").json()["results"]}


def test_a_cordon_tells_that_promises_exceed_capacity_and_its_end_that_they_do_not(
    platform, admin
):
    address = "/api/v1/nodes/h100-node-01/"
    dry_run = admin.patch(
        f"{address}?dry_run=All", {"schedulable": False}, content_type=JSON, headers=ANY
    )
    alert = told(dry_run)["GUARANTEES_EXCEED_CAPACITY"]["numbers"]
    assert (alert["sum"], alert["capacity"]) == (16, 12)
    assert dry_run.json()["schedulable"] is False
    assert Node.objects.get(name="h100-node-01").schedulable
    assert "GUARANTEES_EXCEED_CAPACITY" not in standing(admin)
    page = admin.post(
        reverse("node-cordon", args=["h100-node-01"]), {"check": "1", "cordoned": "yes"}
    )
    assert "GUARANTEES_EXCEED_CAPACITY" in page.text
    admin.patch(address, {"schedulable": False, "reason": REASON}, content_type=JSON, headers=ANY)
    assert "GUARANTEES_EXCEED_CAPACITY" in standing(admin)
    for name in ("overview", "queues"):
        assert "GUARANTEES_EXCEED_CAPACITY" in admin.get(reverse(name)).text
    back = admin.patch(address, {"schedulable": True}, content_type=JSON, headers=ANY)
    assert told(back)["ALERT_CLEARS"]["numbers"]["alert"] == "GUARANTEES_EXCEED_CAPACITY"
    assert "GUARANTEES_EXCEED_CAPACITY" not in standing(admin)


def test_a_smaller_quota_tells_what_it_strands_and_a_larger_one_that_it_does_not(
    platform, check, admin
):
    found = told(check("queue", "cq-datos", **{"quota-0-nominal": "4"}))
    assert found["STRANDED_CAPACITY"].numbers["amount"] == 4
    ClusterQueue.objects.get(name="cq-datos").quotas.update(nominal=4)
    cleared = told(check("queue", "cq-datos", **{"quota-0-nominal": "8"}))["ALERT_CLEARS"]
    assert cleared.numbers["alert"] == "STRANDED_CAPACITY"
    assert "4 GPUs of h100-sxm can be used by nobody" in cleared.sentence


# ---- preemption over work without a checkpoint --------------------------------------------------
@pytest.fixture
def ran_for_two_hours(platform):
    from scheduling.models import Admission, Workload  # noqa: PLC0415

    at = timezone.now() - timedelta(hours=2)
    Admission.objects.update(admitted_at=at)
    Workload.objects.exclude(status="pending").update(admitted_at=at)
    return platform


RIGHTS = {
    "reclaim_within_cohort": "Any",
    "within_cluster_queue": "Never",
    "borrow_within_cohort": "Never",
    "max_priority_threshold": None,
}


def test_wider_preemption_names_the_work_without_checkpoint(ran_for_two_hours, check, dry, admin):
    for answer in (
        check("queue", "cq-ia", reclaim_within_cohort="Any"),
        dry("cluster-queues/cq-ia", preemption=RIGHTS),
    ):
        found = told(answer)["PREEMPTION_WITHOUT_CHECKPOINT"]
        numbers = found["numbers"] if isinstance(found, dict) else found.numbers
        assert (numbers["count"], numbers["workloads"]) == (1, "ns-datos/train")
        assert (numbers["gpu_hours"], numbers["fields"]) == ("24.0", "reclaim_within_cohort")
    path = reverse("queue-edit", args=["cq-ia"])
    data = posted(admin.get(path), reclaim_within_cohort="Any", reason=REASON)
    saved = admin.post(path, data, follow=True)
    assert "24.0 GPU-hours at risk: ns-datos/train." in saved.text
    assert "PREEMPTION_WITHOUT_CHECKPOINT" not in told(dry("cluster-queues/cq-ia"))


@pytest.mark.parametrize(
    "columns",
    [
        {"stateless": True},
        {"last_checkpoint_at": timezone.now()},
        {"preemptible": False},
    ],
    ids="-".join,
)
def test_work_that_loses_nothing_is_not_named(ran_for_two_hours, check, columns):
    from scheduling.models import Workload  # noqa: PLC0415

    Workload.objects.update(**columns)
    found = told(check("queue", "cq-ia", reclaim_within_cohort="Any"))
    assert "PREEMPTION_WITHOUT_CHECKPOINT" not in found


QUEUE = """
apiVersion: kueue.x-k8s.io/v1beta1
kind: ClusterQueue
metadata: {name: cq-ia}
spec:
  cohort: llm
  namespaceSelector: {}
  preemption: {reclaimWithinCohort: Any}
  resourceGroups:
  - coveredResources: [nvidia.com/gpu]
    flavors: [{name: h100-sxm, resources: [{name: nvidia.com/gpu, nominalQuota: 8}]}]
"""


def test_a_manifest_that_widens_preemption_is_told_the_same(ran_for_two_hours, admin):
    report = admin.post(
        "/api/v1/manifests/?dry_run=All", QUEUE, content_type="application/yaml"
    ).json()
    (found,) = [f for f in report["findings"] if f["code"] == "PREEMPTION_WITHOUT_CHECKPOINT"]
    assert found["numbers"]["fields"] == "reclaim_within_cohort"
