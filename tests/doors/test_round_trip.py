"""What is exported is what was imported: documents out, documents in, no difference."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from django.db import transaction

from gpuplatform.common import clock
from gpuplatform.common.problems import Rejected
from gpuplatform.common.yamls import dumped
from gpuplatform.doors.demo import history, platform
from gpuplatform.doors.demo.load import load_demo
from gpuplatform.doors.demo.people import hire
from gpuplatform.doors.demo.play import workload_of
from gpuplatform.doors.exporter import export_everything, in_files
from gpuplatform.doors.importer import import_documents
from queues.descriptions import describe_flavor
from queues.manifests.export import manifest_of, versioned
from queues.models import ResourceFlavor
from queues.specs import TeamSpec
from scheduling.manifests.export import manifest_of as work_manifest
from scheduling.models import Workload
from scheduling.services import load_world, submit_workload
from scheduling.specs import CheckSpec
from tests.doors.samples import EXAMPLES, on_cluster
from tests.scheduling.manifests import test_examples as people
from tests.scheduling.manifests.public import GPU, KINDS, LEADERS

pytestmark = pytest.mark.django_db
# Samples that say more together than alone.
TOGETHER = (
    ("kueue-flavor", "kueue-clusterqueue-single", "kueue-localqueue", "kueue-job-label"),
    ("kueue-two-teams-rayjob", "kueue-job-label", "deployment-team-annotation"),
    ("kueue-topology-flavor", "kueue-clusterqueue-single", "kueue-localqueue", "kueue-job-label"),
    ("volcano-queues", "volcano-worker-pod", "litellm-config", "opencost-helm-values"),
    ("volcano-queues-podgroup-job", "kueue-three-teams"),
)
SAMPLES = sorted(path.stem for path in EXAMPLES.glob("*.yaml"))


def exported() -> list[dict[str, Any]]:
    """Return every document, in an order that no clock decides."""
    found = [yaml.safe_load(text) for text in dumped(export_everything())]
    return sorted(found, key=lambda one: (one["kind"], str(one["metadata"])))


def differences(texts: list[str]) -> list[tuple[str, ...]]:
    """Import what was exported over what is there; return what did not stay as it was."""
    reports = [import_documents(text, actor=None) for text in texts]
    return [
        (result.kind, result.name, result.verdict, result.action, *sorted(result.codes))
        for report in reports
        for result in report.results
        if (result.verdict, result.action) != ("accepted", "unchanged")
    ]


def round_trip(fill: Callable[[], object]) -> list[dict[str, Any]]:
    """Fill an empty database, export, empty it, import: nothing may differ."""
    with transaction.atomic():
        fill()
        before = exported()
        texts = list(in_files(export_everything()))
        assert differences(texts) == []
        assert exported() == before
        transaction.set_rollback(True)
    assert exported() == []
    for text in texts:
        report = import_documents(text, actor=None)
        assert not report.rejected, [(r.kind, r.name, r.codes) for r in report.rejected]
    assert exported() == before
    return before


@pytest.mark.parametrize("sample", SAMPLES)
def test_every_accepted_object_of_a_sample_comes_back_the_same(sample: str, shared: Path) -> None:
    text = (shared / "samples" / "manifests" / f"{sample}.yaml").read_text(encoding="utf-8")

    def fill() -> None:
        on_cluster(32)
        import_documents(text, actor=None)

    assert round_trip(fill)


@pytest.mark.parametrize("samples", TOGETHER, ids="+".join)
def test_objects_that_need_each_other_come_back_together(samples: tuple[str, ...]) -> None:
    found = round_trip(lambda: on_cluster(16, *samples))

    assert len(found) > len(samples)


def test_work_of_every_public_kind_comes_back_the_same() -> None:
    bodies = [LEADERS, *(body for body, _counts in KINDS.values())]

    def fill() -> None:
        on_cluster(32, "kueue-two-teams-rayjob")
        report = import_documents(platform.dump(bodies), actor=None)
        assert not report.rejected, [(r.kind, r.codes) for r in report.rejected]

    found = [one["metadata"] for one in round_trip(fill) if one["kind"] == "Workload"]

    kinds = {one["annotations"]["workload.gpuplatform.io/kind"] for one in found}
    assert kinds == {*KINDS, "LeaderWorkerSet"}


RESOURCES = ("cpu", "memory", "ephemeral-storage", "rdma/ib", "google.com/tpu", GPU)
RESOURCES += ("hugepages-2Mi", "nvidia.com/mig-1g.5gb")
WIDE_QUOTA = [{"name": resource, "nominalQuota": "100Ti"} for resource in RESOURCES]
WIDE = {
    "namespaceSelector": {},
    "resourceGroups": [
        {
            "coveredResources": list(RESOURCES),
            "flavors": [{"name": "any", "resources": WIDE_QUOTA}],
        }
    ],
}


def wide_open(queues: set[str]) -> str:
    """Return a queue without bounds behind every door of namespace default, and their classes."""
    version = "kueue.x-k8s.io/v1beta1"
    bodies = [("ResourceFlavor", "any", {}), ("ClusterQueue", "wide", WIDE)]
    found = [
        {"apiVersion": version, "kind": kind, "metadata": {"name": name}, "spec": spec}
        for kind, name, spec in bodies
    ]
    for name in sorted(queues):
        meta = {"name": name, "namespace": "default"}
        spec = {"clusterQueue": "wide"}
        found.append({"apiVersion": version, "kind": "LocalQueue", "metadata": meta, "spec": spec})
    kind = {"apiVersion": version, "kind": "WorkloadPriorityClass", "value": 10}
    classes = ("high", "high-priority", "low", "sample-priority")
    found += [{**kind, "metadata": {"name": name}} for name in classes]
    return "".join(dumped(found))


def test_work_as_people_write_it_comes_back_the_same() -> None:
    taken: dict[str, int] = {}

    def fill() -> None:
        doors = {"q", "one", "other", "default", "research", "local-queue"}
        doors |= {"user-queue", "default-queue"}
        report = import_documents(wide_open(doors), actor=None)
        assert not report.rejected
        for name, text in people.EXAMPLES.items():
            try:
                taken[name] = len(import_documents(text, actor=None).rejected)
            except Rejected:
                continue

    round_trip(fill)

    assert sum(not rejected for rejected in taken.values()) >= 30


def demo_platform() -> None:
    """The demo's teams, machines and queues, and work of each kind that it submits."""
    hire()
    import_documents(platform.dump(platform.articles()), actor=None)
    import_documents(platform.dump(platform.pool()), actor=None)
    world = load_world()
    for job in history.last_hours(clock.now()):
        submit_workload(workload_of(job), actor=None, world=world)


def test_what_the_demo_stands_on_comes_back_the_same() -> None:
    found = round_trip(demo_platform)

    kinds = {one["kind"] for one in found}
    assert kinds >= {"Team", "Namespace", "Node", "Cohort", "ClusterQueue", "Workload"}


@pytest.mark.long
def test_the_whole_demo_comes_back_over_itself() -> None:
    load_demo(clock.now(), days=5, say=lambda _line: None)

    texts = list(in_files(export_everything()))

    assert len(texts) > 1  # more than one import takes in
    assert differences(texts) == []


def test_an_export_of_one_version_changes_no_later_one() -> None:
    on_cluster(0, "kueue-flavor")
    row = ResourceFlavor.objects.get()
    body = versioned(manifest_of(describe_flavor(row)), row.version)
    body["spec"]["nodeLabels"]["generation"] = "2"
    text = "".join(dumped([body]))

    first, second = import_documents(text, actor=None), import_documents(text, actor=None)

    assert [first.results[0].action, first.results[0].verdict] == ["changed", "accepted"]
    assert (second.results[0].verdict, second.results[0].codes) == ("rejected", {"stale"})


def test_what_is_exported_is_kept_only_for_those_who_might_make_it(cast: Any) -> None:
    specs = [TeamSpec("spies"), CheckSpec("open-sesame", "manual", ("*",))]
    bodies = [manifest_of(specs[0]), work_manifest(specs[1])]

    report = import_documents("".join(dumped(bodies)), actor=cast.lea)

    assert [result.codes for result in report.results] == [{"NOT_ALLOWED"}, {"NOT_ALLOWED"}]


def test_work_that_changed_since_its_export_is_not_taken_for_the_same() -> None:
    on_cluster(16, "kueue-two-teams-rayjob")
    texts = list(in_files(export_everything(["Workload"])))
    Workload.objects.update(priority=7)

    said = ("NEEDS_WHOLE_CLUSTER", "name_taken")
    assert differences(texts) == [
        ("Workload", "ns-datos/batch-eval-llama70b", "rejected", "none", *said)
    ]
