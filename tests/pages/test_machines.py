"""Kinds of nodes and topologies in the browser; how usable free GPUs are, through all doors."""

import csv
import io
import json

import plotly.graph_objects as go
import pytest
from django.urls import reverse

from gpuplatform.common.models import AuditEntry
from queues.models import ResourceFlavor, Topology
from scheduling.engine.terms import PlacementPolicy
from scheduling.loader import load_snapshot
from scheduling.models import Node
from tests.pages.test_editors import posted
from tests.scheduling.loop import world

pytestmark = pytest.mark.django_db
REASON = "Agreed in the June review"


@pytest.fixture
def edit(platform, ada, signed_in):
    browser, path = signed_in(ada), reverse("flavor-edit", args=["h100-sxm"])

    def send(**changes):
        return browser.post(path, posted(browser.get(path), **{"reason": REASON} | changes))

    return send


# ---- how pods are placed is said for each flavor ------------------------------------------------
def test_a_flavor_without_a_word_is_placed_by_fragments(platform):
    assert load_snapshot().flavors["h100-sxm"].policy is PlacementPolicy.FRAGMENTATION


@pytest.mark.parametrize("policy", list(PlacementPolicy))
def test_the_policy_of_the_form_reaches_the_engine_and_the_audit_trail(
    edit, policy, ada, signed_in
):
    assert edit(policy=policy.value).status_code == 302
    assert load_snapshot().flavors["h100-sxm"].policy is policy
    entries = AuditEntry.objects.filter(action="resource_flavor.updated")
    if policy is PlacementPolicy.FRAGMENTATION:
        assert not entries.exists()  # it was so before
    else:
        entry = entries.get()
        assert (entry.before["policy"], entry.after["policy"]) == ("fragmentation", policy.value)
        assert entry.reason == REASON
    page = signed_in(ada).get(reverse("flavor", args=["h100-sxm"]))
    assert f'<code class="tag">{policy.value}</code>' in page.text


def test_a_policy_that_nobody_knows_is_refused_at_its_field(edit):
    answer = edit(policy="luck")
    assert answer.status_code == 422
    assert 'href="#id_policy"' in answer.text


def test_the_form_says_what_each_policy_is_good_for(platform, ada, signed_in):
    page = signed_in(ada).get(reverse("flavor-edit", args=["h100-sxm"])).text
    assert "keeps whole nodes empty" in page
    assert "the fullest node first" in page


# ---- the rest of a flavor, and topologies -------------------------------------------------------
def test_saving_an_untouched_flavor_changes_nothing(edit):
    ResourceFlavor.objects.update(
        tolerations=[
            {"key": "a", "operator": "Exists", "value": "", "effect": "", "seconds": None}
        ],
        node_taints=[{"key": "a", "value": "b", "effect": "NoSchedule"}],
    )
    assert edit().status_code == 302
    row = ResourceFlavor.objects.get()
    assert (row.version, len(row.tolerations), len(row.node_taints)) == (1, 1, 1)


@pytest.mark.parametrize(
    ("changes", "field", "words"),
    [
        ({"node_labels": "accelerator"}, "node_labels", "write key=value"),
        ({"node_labels": "a=1\na=2"}, "node_labels", "listed twice"),
        ({"node_labels": "example.com/a b=1"}, "node_labels", "not a label key"),
        ({"node_taints": "dedicated"}, "node_taints", "write key=value:NoSchedule"),
        ({"node_taints": "dedicated:Never"}, "node_taints", "not one of"),
        ({"topology": "moon"}, "topology", "not one of the available choices"),
    ],
)
def test_a_mistake_in_a_flavor_stands_at_its_field(edit, changes, field, words):
    answer = edit(**changes)
    assert answer.status_code == 422
    assert f'href="#id_{field}"' in answer.text
    assert words in answer.text
    assert ResourceFlavor.objects.get().version == 1


def test_a_new_flavor_and_its_topology_are_made_in_the_browser(platform, ada, signed_in):
    browser = signed_in(ada)
    path = reverse("topology-new")
    levels = "topology.kubernetes.io/rack\nkubernetes.io/hostname"
    answer = browser.post(path, posted(browser.get(path), name="dc", levels=levels))
    assert (answer.status_code, answer["Location"]) == (302, "/topologies/dc/")
    assert Topology.objects.get(name="dc").levels.count() == 2
    path = reverse("flavor-new")
    data = posted(
        browser.get(path),
        name="l40s",
        node_labels="accelerator=l40s",
        node_taints="gpu=yes:NoSchedule",
        topology="dc",
        policy="binpack",
    )
    answer = browser.post(path, data)
    assert (answer.status_code, answer["Location"]) == (302, "/flavors/l40s/")
    row = ResourceFlavor.objects.get(name="l40s")
    assert row.node_labels == {"accelerator": "l40s"}
    assert row.node_taints == [{"key": "gpu", "value": "yes", "effect": "NoSchedule"}]
    assert "l40s" in browser.get("/topologies/dc/").text
    for name in ("new", "New flavor"):
        again = browser.post(path, posted(browser.get(path), name=name, node_labels="a=b"))
        assert again.status_code == 422


def test_levels_that_cannot_change_are_refused_at_their_field(platform, ada, signed_in):
    browser, path = signed_in(ada), reverse("topology-new")
    browser.post(path, posted(browser.get(path), name="dc", levels="rack"))
    path = reverse("topology-edit", args=["dc"])
    answer = browser.post(path, posted(browser.get(path), levels="block", reason=REASON))
    assert answer.status_code == 422
    assert 'href="#id_levels"' in answer.text


# ---- how usable what is free is -----------------------------------------------------------------
def test_page_figure_file_and_rest_say_the_same_of_what_is_free(platform, ada, signed_in):
    Node.objects.filter(name="h100-node-01").update(unmanaged={world.GPU: 1})  # of 4; 2 are held
    browser = signed_in(ada)
    rest = browser.get("/api/v1/fragments/").json()["results"]
    (row,) = csv.DictReader(io.StringIO(browser.get("/fragments/").text))
    (same,) = json.loads(browser.get("/fragments/", {"format": "json"}).text)
    (piece,) = rest
    assert (piece["flavor"], piece["gpus"], piece["free"]) == ("h100-sxm", 16, 1)
    assert piece["free"] == int(row["free"]) == same["free"]
    assert piece["usable"] == int(row["usable"]) == same["usable"] == 0
    assert piece["stranded"]["pieces"] == int(row["stranded_pieces"]) == 1
    assert float(row["fragment_ratio"]) == piece["fragment_ratio"] == 1.0
    assert row["gang_of_1"] == "host=1 cluster=1"
    assert piece["largest_gangs"]["2"] == {"host": 0, "cluster": 0}
    page = browser.get("/nodes/").text
    assert "One GPU is unused, and no pod that comes can use it." in page
    assert "100.0 %" in page
    assert "too few on one node" in page
    for theme in ("light", "dark"):
        figure = browser.get("/charts/fragments/", {"theme": theme}).json()
        drawn = go.Figure(figure)  # Plotly itself accepts it
        sums = [trace.x[0] for trace in drawn.data]
        assert sums == [0, 1, 0]
        assert {trace.y[0] for trace in drawn.data} == {"h100-sxm"}


def test_a_cordoned_node_is_out_of_service_on_every_door(platform, ada, signed_in):
    from scheduling.services import set_cordon  # noqa: PLC0415

    set_cordon("h100-node-01", True, actor=ada, reason=REASON)
    browser = signed_in(ada)
    (piece,) = browser.get("/api/v1/fragments/").json()["results"]
    assert (piece["stranded"]["cordoned"], piece["usable"]) == (2, 0)
    traces = browser.get("/charts/fragments/").json()["data"]
    assert [trace["x"] for trace in traces] == [[0.0], [0.0], [2.0]]
    assert "node cordoned" in browser.get("/nodes/").text


def test_parts_of_a_gpu_are_exact():
    from scheduling.selectors.fragments import in_gpus  # noqa: PLC0415

    assert [str(in_gpus(n)) for n in (0, 1000, 1400, 21_050)] == ["0", "1", "1.4", "21.05"]
