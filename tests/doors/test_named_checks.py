"""Admission checks in Kueue's manifests: queues name them, and they are asked of their work."""

import json
from typing import Any

import pytest

from gpuplatform.doors.importer import import_documents
from gpuplatform.doors.report import ImportReport
from scheduling.checks import MANUAL, read_required
from scheduling.models import AdmissionCheck

pytestmark = pytest.mark.django_db
KUEUE = {"apiVersion": "kueue.x-k8s.io/v1beta2"}


def queue(name: str = "cq", **spec: Any) -> dict[str, Any]:
    labels = {"gpuplatform.io/team": "datos"}
    return {
        **KUEUE,
        "kind": "ClusterQueue",
        "metadata": {"name": name, "labels": labels},
        "spec": {"namespaceSelector": {}, **spec},
    }


def check(name: str, controller: str) -> dict[str, Any]:
    spec = {"controllerName": controller, "parameters": {"kind": "Config", "name": "a"}}
    return {**KUEUE, "kind": "AdmissionCheck", "metadata": {"name": name}, "spec": spec}


def take_in(*documents: dict[str, Any]) -> ImportReport:
    report = import_documents("\n---\n".join(map(json.dumps, documents)), actor=None)
    assert not report.rejected, [result.diagnostics for result in report.rejected]
    return report


def asked() -> dict[str, list[str]]:
    return dict(AdmissionCheck.objects.values_list("name", "queues"))


@pytest.fixture(autouse=True)
def team(datos: Any) -> Any:
    return datos


@pytest.mark.parametrize(
    "spec",
    [
        {"admissionChecks": ["review", "spend"]},
        {"admissionChecksStrategy": {"admissionChecks": [{"name": "review"}, {"name": "spend"}]}},
    ],
)
def test_a_queue_names_its_checks_in_both_spellings(spec: dict[str, Any]):
    documents = [
        queue(**spec),
        check("review", "example.com/review"),
        check("spend", "gpuplatform.io/budget"),
    ]
    report = take_in(*documents)
    assert asked() == {"review": ["cq"], "spend": ["cq"]}
    kinds = dict(AdmissionCheck.objects.values_list("name", "kind"))
    assert kinds == {"review": MANUAL, "spend": "budget"}
    assert read_required().of("cq") == ("review", "spend")
    assert [result.codes for result in report.results] == [set(), {"CHECK_BY_PEOPLE"}, set()]
    versions = list(AdmissionCheck.objects.values_list("version", flat=True))
    again = take_in(*documents)
    assert {result.action for result in again.results} == {"unchanged"}
    assert list(AdmissionCheck.objects.values_list("version", flat=True)) == versions


def test_a_check_that_nobody_has_made_is_made_for_people_to_answer():
    (result,) = take_in(queue(admissionChecks=["review"])).results
    assert "CHECK_MADE" in result.codes
    assert AdmissionCheck.objects.get().kind == MANUAL
    assert asked() == {"review": ["cq"]}
    assert "CHECK_MADE" not in take_in(queue(admissionChecks=["review"])).results[0].codes


def test_a_manifest_takes_back_what_it_asked_for_and_nothing_else():
    take_in(queue(admissionChecks=["review", "spend"]), queue("other", admissionChecks=["spend"]))
    AdmissionCheck.objects.create(name="here", kind=MANUAL, queues=["cq"])
    AdmissionCheck.objects.create(name="all", kind=MANUAL, queues=["*"])
    take_in(queue(admissionChecks=["spend", "all"]))
    assert asked() == {"review": [], "spend": ["cq", "other"], "here": ["cq"], "all": ["*"]}
    take_in(queue())
    assert asked() == {"review": [], "spend": ["other"], "here": ["cq"], "all": ["*"]}


def test_flavors_of_a_check_are_told_to_count_for_all():
    rule = {"name": "review", "onFlavors": ["h100"]}
    (result,) = take_in(queue(admissionChecksStrategy={"admissionChecks": [rule]})).results
    (told,) = [d for d in result.diagnostics if d.code == "CHECK_FOR_ALL_FLAVORS"]
    assert told.path == "spec.admissionChecksStrategy.admissionChecks[0].onFlavors"


def test_a_manifest_of_a_check_leaves_what_was_set_up_here():
    AdmissionCheck.objects.create(
        name="spend", kind=MANUAL, queues=["*"], description="Ask Fin", parameters={"a": 1}
    )
    take_in(check("spend", "gpuplatform.io/budget"))
    row = AdmissionCheck.objects.get()
    assert (row.kind, row.queues, row.description) == ("budget", ["*"], "Ask Fin")
    assert row.parameters == {"a": 1}


def test_a_name_that_is_none_refuses_the_queue_and_changes_nothing():
    report = import_documents(json.dumps(queue(admissionChecks=["No Name"])), actor=None)
    assert report.rejected
    assert not AdmissionCheck.objects.exists()
