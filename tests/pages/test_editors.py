"""Editing promises in the browser: round trips, refusals at their fields, two editors at once."""

from dataclasses import replace

import pytest
from django.urls import reverse

from gpuplatform.common.models import AuditEntry
from queues.descriptions import describe_cluster_queue
from queues.models import ClusterQueue, Cohort, LocalQueue, Namespace, ResourceFlavor, Team
from queues.services import save_cluster_queue
from tests.scheduling.loop import world

pytestmark = pytest.mark.django_db
REASON = "Agreed in the June review"
TYPED = {"reason": REASON, "confirm": "cq-datos"}


def posted(page, **changes):
    """Return what a browser would send for a page's form, with some values typed over."""
    data = {}
    forms = [page.context["form"], *(page.context["rows"] or [])]
    for form in forms:
        for name in form.fields:
            field = form[name]
            value = field.value()
            data[field.html_name] = "" if value is None else str(value)
    if page.context["rows"] is not None:
        management = page.context["rows"].management_form
        data |= {management[n].html_name: str(management[n].value()) for n in management.fields}
    return data | changes


@pytest.fixture
def edit(platform, ada, signed_in):
    browser, path = signed_in(ada), reverse("queue-edit", args=["cq-datos"])

    def send(**changes):
        return browser.post(path, posted(browser.get(path), **TYPED | changes))

    return send


def test_saving_an_untouched_form_changes_nothing(edit):
    before = ClusterQueue.objects.get(name="cq-datos").version
    assert edit().status_code == 302
    assert ClusterQueue.objects.get(name="cq-datos").version == before
    assert not AuditEntry.objects.filter(action="cluster_queue.updated").exists()


@pytest.mark.parametrize(
    "selector",
    [
        None,
        {},
        {"matchLabels": {"kubernetes.io/metadata.name": "ns-datos"}},
        {"matchLabels": {"tier": "gold"}},
    ],
    ids=str,
)
def test_a_selector_keeps_its_spelling(edit, selector):
    ClusterQueue.objects.filter(name="cq-datos").update(namespace_selector=selector)
    edit()
    row = ClusterQueue.objects.get(name="cq-datos")
    assert (row.namespace_selector, row.version) == (selector, 1)


def test_an_edit_is_saved_and_audited_with_its_reason(edit):
    assert edit(**{"quota-0-nominal": "6", "quota-0-borrowing_limit": ""}).status_code == 302
    (cell,) = ClusterQueue.objects.get(name="cq-datos").quotas.all()
    assert (cell.nominal, cell.borrowing_limit) == (6, None)
    entry = AuditEntry.objects.get(action="cluster_queue.updated")
    assert (entry.actor_name, entry.reason, entry.team) == ("ada", REASON, "datos")


def test_zero_is_a_limit_and_empty_is_none(edit):
    edit(**{"quota-0-borrowing_limit": "0", "quota-0-lending_limit": ""})
    (cell,) = ClusterQueue.objects.get(name="cq-datos").quotas.all()
    assert (cell.borrowing_limit, cell.lending_limit) == (0, None)


def test_what_the_form_does_not_show_stays(edit):
    ClusterQueue.objects.filter(name="cq-datos").update(
        carried={"flavorFungibility": {"whenCanBorrow": "Borrow"}},
        max_priority_threshold=7,
        namespace_selector={"matchLabels": {"tier": "gold"}},
    )
    edit(**{"quota-0-nominal": "6"})
    row = ClusterQueue.objects.get(name="cq-datos")
    assert row.carried == {"flavorFungibility": {"whenCanBorrow": "Borrow"}}
    assert (row.max_priority_threshold, row.namespace_selector) == (
        7,
        {"matchLabels": {"tier": "gold"}},
    )


@pytest.mark.parametrize(
    ("changes", "field", "words"),
    [
        ({"quota-0-nominal": "many"}, "id_quota-0-nominal", "many is not an amount"),
        ({"quota-0-nominal": "-4"}, "id_quota-0-nominal", "-4 is not an amount"),
        ({"quota-0-nominal": ""}, "id_quota-0-nominal", "say how much"),
        ({"quota-0-lending_limit": "9"}, "id_quota-0-lending_limit", "cannot lend 9 GPUs"),
        (
            {"quota-1-flavor": "h100-sxm", "quota-1-nominal": "1"},
            "id_quota-",
            "must list",
        ),
        ({"cohort": "", "quota-0-borrowing_limit": "4"}, "id_quota-0-borrowing_limit", "nobody"),
        ({"team": "nobody-there"}, "id_team", "not one of the available choices"),
        (
            {"reclaim_within_cohort": "Never", "borrow_within_cohort": "LowerPriority"},
            "id_borrow_within_cohort",
            "must also be allowed to reclaim",
        ),
    ],
    ids=lambda value: str(value)[:40] if isinstance(value, dict) else "",
)
def test_a_refusal_stands_at_its_field_and_nothing_typed_is_lost(edit, changes, field, words):
    answer = edit(**changes)
    assert answer.status_code == 422
    assert "Nothing was saved" in answer.text
    assert f'href="#{field}' in answer.text
    assert words in answer.text
    assert REASON in answer.text
    assert ClusterQueue.objects.get(name="cq-datos").version == 1


def test_a_reason_is_needed(platform, ada, signed_in):
    browser, path = signed_in(ada), reverse("queue-edit", args=["cq-datos"])
    answer = browser.post(path, posted(browser.get(path), reason="short"))
    assert answer.status_code == 422
    assert 'href="#id_reason"' in answer.text


# ---- two editors at once -----------------------------------------------------------------------
def test_a_stale_edit_shows_both_sides_and_can_then_be_applied(platform, ada, signed_in):
    browser, path = signed_in(ada), reverse("queue-edit", args=["cq-datos"])
    mine = posted(browser.get(path), **TYPED, **{"quota-0-nominal": "6"})
    row = ClusterQueue.objects.get(name="cq-datos")
    spec = replace(describe_cluster_queue(row), stop_policy="Hold")
    save_cluster_queue(spec, actor=ada, reason="somebody else was here")

    conflict = browser.post(path, mine)
    assert conflict.status_code == 412
    found = conflict.context["conflict"]["clashes"]
    assert {row.label: (row.seen, row.theirs, row.yours) for row in found} == {
        "h100-sxm nvidia.com/gpu: nominal": ("8", "8", "6"),
        "stop policy": ("None", "Hold", ""),
    }
    assert not any(row.is_clash for row in found)
    assert "somebody else was here" in conflict.text
    assert conflict.context["form"]["stop_policy"].value() == "Hold"
    assert 'value="6"' in conflict.text
    assert ClusterQueue.objects.get(name="cq-datos").quotas.get().nominal == 8

    again = posted(conflict)
    assert again["version"] == "2"
    assert browser.post(path, again).status_code == 302
    row = ClusterQueue.objects.get(name="cq-datos")
    assert (row.quotas.get().nominal, row.stop_policy, row.version) == (6, "Hold", 3)


CELL = "h100-sxm nvidia.com/gpu: "


@pytest.mark.parametrize(
    ("mine", "theirs", "merged", "clashing"),
    [
        ({"nominal": 6}, {"borrowing_limit": 2}, (6, 2, None), set()),
        ({"nominal": 6}, {"nominal": 7}, (6, 4, None), {CELL + "nominal"}),
        ({"nominal": 6}, {"nominal": 6}, (6, 4, None), set()),
        ({"lending_limit": 1}, {"nominal": 7, "borrowing_limit": None}, (7, None, 1), set()),
        ({}, {"nominal": 7}, (7, 4, None), set()),
    ],
    ids=str,
)
def test_quota_is_merged_amount_by_amount(  # noqa: PLR0917 - a table
    platform, ada, signed_in, mine, theirs, merged, clashing
):
    browser, path = signed_in(ada), reverse("queue-edit", args=["cq-datos"])
    typed = {f"quota-0-{name}": str(amount) for name, amount in mine.items()}
    data = posted(browser.get(path), **TYPED | typed)
    spec = describe_cluster_queue(ClusterQueue.objects.get(name="cq-datos"))
    (group,) = spec.groups
    (flavor,) = group.flavors
    (quota,) = flavor.quotas
    changed = replace(flavor, quotas=(replace(quota, **theirs),))
    other = replace(spec, groups=(replace(group, flavors=(changed,)),))
    save_cluster_queue(other, actor=ada, reason="somebody else was here")

    conflict = browser.post(path, data)
    assert {c.label for c in conflict.context["conflict"]["clashes"] if c.is_clash} == clashing
    browser.post(path, posted(conflict))
    cell = ClusterQueue.objects.get(name="cq-datos").quotas.get()
    assert (cell.nominal, cell.borrowing_limit, cell.lending_limit) == merged


@pytest.mark.parametrize("seen", ["", "{", "[]", '{"groups": [1], "preemption": 3}', "7"])
def test_a_form_that_forgot_what_it_had_seen_is_no_error(platform, ada, signed_in, seen):
    browser, path = signed_in(ada), reverse("queue-edit", args=["cq-datos"])
    data = posted(browser.get(path), reason=REASON, seen=seen)
    ClusterQueue.objects.update(version=2)
    data["quota-0-nominal"] = "6"
    assert browser.post(path, data).status_code == 412


@pytest.mark.parametrize(("name", "key"), [("cohort-edit", "llm"), ("team-edit", "datos")])
def test_every_editor_notices_a_stale_version(platform, ada, signed_in, name, key):
    browser, path = signed_in(ada), reverse(name, args=[key])
    mine = posted(browser.get(path), reason=REASON)
    mine |= {"quota_source": "residual"} if name == "cohort-edit" else {"display_name": "Mine"}
    Cohort.objects.update(version=2)
    Team.objects.update(version=2)
    assert browser.post(path, mine).status_code == 412


# ---- what an edit means ------------------------------------------------------------------------
def test_a_save_says_what_is_promised_twice_and_what_can_never_run(platform, ada, signed_in):
    browser, path = signed_in(ada), reverse("queue-edit", args=["cq-datos"])
    typed = {"quota-0-nominal": "100", "reason": REASON}
    saved = browser.post(path, posted(browser.get(path), **typed), follow=True).text
    assert "queues and cohorts are promised 108 GPUs together; healthy nodes have 16 GPUs" in saved
    typed = {"quota-0-nominal": "0", "quota-0-borrowing_limit": "3", "reason": REASON}
    saved = browser.post(path, posted(browser.get(path), **typed), follow=True).text
    assert "With this, ns-datos/later can never run" in saved


def test_a_check_says_the_same_and_keeps_nothing(edit):
    answer = edit(**{"quota-0-nominal": "100", "check": "1", "reason": ""})
    assert answer.status_code == 200
    assert "nothing is saved yet" in answer.text
    assert "healthy nodes have 16 GPUs" in answer.text
    assert 'value="100"' in answer.text
    assert ClusterQueue.objects.get(name="cq-datos").quotas.get().nominal == 8
    assert not AuditEntry.objects.filter(action="cluster_queue.updated").exists()


def test_a_check_says_who_would_start_by_the_edit_and_starts_nobody(edit):
    small = world.work("datos", "small", gpus=2)
    answer = edit(**{"quota-0-nominal": "12", "check": "1", "reason": ""}).text
    assert "By this edit the next cycle starts 1: ns-datos/small." in answer
    small.refresh_from_db()
    assert small.status == "pending"


def test_a_cohorts_own_quota_is_held_against_the_nodes_too(platform, ada, signed_in):
    browser, path = signed_in(ada), reverse("cohort-edit", args=["llm"])
    typed = {"quota-0-flavor": "h100-sxm", "quota-0-nominal": "50", "reason": REASON}
    saved = browser.post(path, posted(browser.get(path), **typed), follow=True).text
    assert "promised 66 GPUs together" in saved


def test_a_bare_resource_name_is_refused_with_the_nearest(edit):
    answer = edit(**{"quota-0-resource": "gpu"})
    assert answer.status_code == 422
    assert "UNKNOWN_RESOURCE" in answer.text
    assert "did you mean nvidia.com/gpu?" in answer.text
    assert ClusterQueue.objects.get(name="cq-datos").version == 1


def test_a_new_row_is_about_gpus_and_offers_what_is_used_elsewhere(platform, ada, signed_in):
    platform.ia.quotas.create(
        flavor="h100-sxm", resource="example.com/dpu", nominal=1, resource_position=1
    )
    page = signed_in(ada).get(reverse("queue-new"))
    assert page.context["rows"][0]["resource"].value() == "nvidia.com/gpu"
    assert '<option value="example.com/dpu">' in page.text


# ---- new ones ----------------------------------------------------------------------------------
def test_a_new_queue_is_offered_the_recommended_defaults(platform, ada, signed_in):
    browser, path = signed_in(ada), reverse("queue-new")
    data = posted(browser.get(path + "?team=datos&cohort=llm"), name="cq-new", reason="")
    data |= {"quota-0-flavor": "h100-sxm", "quota-0-nominal": "2"}
    answer = browser.post(path, data)
    assert (answer.status_code, answer["Location"]) == (302, "/queues/cq-new/")
    row = ClusterQueue.objects.get(name="cq-new")
    shown = (row.reclaim_within_cohort, row.within_cluster_queue, row.queueing_strategy)
    assert shown == ("Any", "LowerPriority", "BestEffortFIFO")
    assert (row.team.name, row.cohort.name, row.namespace_selector) == ("datos", "llm", {})
    assert row.quotas.get().resource == "nvidia.com/gpu"


def test_resources_that_share_a_flavor_become_one_group(platform, ada, signed_in):
    ResourceFlavor.objects.create(name="l40s")
    browser, path = signed_in(ada), reverse("queue-new")
    page = browser.get(path)
    data = posted(page, name="cq-wide")
    data["quota-TOTAL_FORMS"] = "4"
    cells = [
        ("h100-sxm", "nvidia.com/gpu", "2"),
        ("h100-sxm", "cpu", "500m"),
        ("l40s", "cpu", "8"),
        ("l40s", "nvidia.com/gpu", "4"),
    ]
    for index, (flavor, resource, nominal) in enumerate(cells):
        data |= {
            f"quota-{index}-flavor": flavor,
            f"quota-{index}-resource": resource,
            f"quota-{index}-nominal": nominal,
            f"quota-{index}-borrowing_limit": "",
            f"quota-{index}-lending_limit": "",
        }
    assert browser.post(path, data).status_code == 302
    (group,) = describe_cluster_queue(ClusterQueue.objects.get(name="cq-wide")).groups
    assert group.resources == ("nvidia.com/gpu", "cpu")
    amounts = {f.flavor: [q.nominal for q in f.quotas] for f in group.flavors}
    assert amounts == {"h100-sxm": [2, 500], "l40s": [4, 8000]}


def test_a_name_that_is_taken_is_refused_at_the_name(platform, ada, signed_in):
    browser, path = signed_in(ada), reverse("queue-new")
    answer = browser.post(path, posted(browser.get(path), name="cq-datos"))
    assert answer.status_code == 422
    assert 'href="#id_name"' in answer.text


def test_named_namespaces_become_a_selector_and_come_back(platform, ada, signed_in, edit):
    edit(admits="named", namespaces="ns-datos, ns-dev")
    browser = signed_in(ada)
    form = browser.get(reverse("queue-edit", args=["cq-datos"])).context["form"]
    assert (form["admits"].value(), form["namespaces"].value()) == ("named", "ns-datos ns-dev")


def test_a_new_cohort_and_a_new_team(platform, ada, signed_in):
    browser = signed_in(ada)
    path = reverse("cohort-new")
    answer = browser.post(path, posted(browser.get(path), name="inner", parent="llm"))
    assert answer.status_code == 302
    assert Cohort.objects.get(name="inner").fairness == "none"  # nothing decides by it yet
    path = reverse("team-new")
    answer = browser.post(path, posted(browser.get(path), name="nlp", display_name="NLP"))
    assert (answer.status_code, answer["Location"]) == (302, "/teams/nlp/")
    assert AuditEntry.objects.filter(action="team.created", subject="nlp").exists()


def test_a_circle_of_cohorts_is_refused(platform, ada, signed_in):
    Cohort.objects.create(name="inner", parent=Cohort.objects.get(name="llm"))
    browser, path = signed_in(ada), reverse("cohort-edit", args=["llm"])
    data = posted(browser.get(path), parent="inner", reason=REASON)
    answer = browser.post(path, data)
    assert answer.status_code == 422
    assert 'href="#id_parent"' in answer.text


# ---- the team's own page -----------------------------------------------------------------------
def test_a_lead_adds_and_removes_members_and_nobody_else_does(platform, lea, ian, signed_in):
    path = reverse("team-member", args=["datos"])
    browser = signed_in(lea)
    browser.post(path, {"username": "ian", "role": "member"})
    assert ian.memberships.filter(team__name="datos").exists()
    assert signed_in(ian).post(path, {"username": "ian", "role": "lead"}).status_code == 403
    browser.post(path, {"username": "ian", "role": "member", "remove": "1"})
    assert not ian.memberships.filter(team__name="datos").exists()
    assert browser.post(path, {"username": "ghost", "role": "member"}).status_code == 422


def test_an_admin_gives_a_team_a_namespace_and_a_door(platform, ada, signed_in):
    browser = signed_in(ada)
    browser.post(reverse("team-namespace", args=["datos"]), {"namespace": "ns-dev"})
    assert Namespace.objects.get(name="ns-dev").team.name == "datos"
    bad = browser.post(reverse("team-namespace", args=["datos"]), {"namespace": "Not a name"})
    assert bad.status_code == 422
    door = {"namespace": "ns-dev", "name": "lq-dev", "cluster_queue": "cq-datos"}
    browser.post(reverse("team-local-queue", args=["datos"]), door)
    assert LocalQueue.objects.get(name="lq-dev").cluster_queue == "cq-datos"
    foreign = door | {"cluster_queue": "cq-ia"}
    answer = browser.post(reverse("team-local-queue", args=["datos"]), foreign)
    assert answer.status_code == 422


# ---- submitting --------------------------------------------------------------------------------
JOB = """
apiVersion: batch/v1
kind: Job
metadata: {name: from-page, namespace: ns-datos, labels: {kueue.x-k8s.io/queue-name: lq}}
spec:
  parallelism: 1
  completions: 1
  template:
    spec:
      containers:
        - name: main
          resources: {requests: {nvidia.com/gpu: 1}, limits: {nvidia.com/gpu: 1}}
"""


def test_a_dry_run_keeps_nothing_and_a_submission_does(platform, lea, signed_in):
    from scheduling.models import Workload  # noqa: PLC0415

    browser = signed_in(lea)
    dry = browser.post(reverse("submit"), {"text": JOB, "dry_run": "1"})
    assert "nothing was kept" in dry.text
    assert not Workload.objects.filter(name="from-page").exists()
    kept = browser.post(reverse("submit"), {"text": JOB, "submit": "1"})
    assert kept.status_code == 200
    assert Workload.objects.get(name="from-page").team.name == "datos"


def test_broken_manifests_say_where_and_keep_what_was_pasted(platform, ada, signed_in):
    answer = signed_in(ada).post(reverse("submit"), {"text": "kind: [", "submit": "1"})
    assert answer.status_code == 422
    assert "kind: [" in answer.text
