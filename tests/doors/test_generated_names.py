"""Work without a name that says how it begins gets one, as from ``kubectl create``."""

import json
import re
from typing import Any

import pytest

from gpuplatform.common.manifests import load_documents
from gpuplatform.doors import naming
from gpuplatform.doors.importer import import_documents
from gpuplatform.doors.intake import read_submission
from scheduling.models import Workload
from tests.doors.samples import on_cluster
from tests.scheduling.manifests.public import KINDS, document, template

pytestmark = pytest.mark.django_db
NAME = re.compile(r"train-[bcdfghjklmnpqrstvwxz2456789]{5}", re.ASCII)
JOB = document("Job", "batch/v1", {"template": template()}, labels={})


def nameless(body: dict[str, Any], prefix: str = "train-") -> dict[str, Any]:
    meta = {key: value for key, value in body["metadata"].items() if key != "name"}
    return {**body, "metadata": {**meta, "generateName": prefix}}


def test_work_of_every_kind_is_named(django_assert_max_num_queries: Any) -> None:
    bodies = [nameless(body) for body, _counts in KINDS.values()]
    text = "\n---\n".join(json.dumps(body) for body in bodies)
    with django_assert_max_num_queries(len(bodies)):
        items = read_submission(text)
    names = [item.document.name for item in items]
    assert all(NAME.fullmatch(name) for name in names)
    assert len(set(names)) == len(names)
    for item in items:
        assert all(spec.name.startswith(item.document.name) for spec in item.specs)
        assert item.document.body["metadata"]["name"] == item.document.name
        (told,) = [found for found in item.diagnostics if found.code == "NAME_GENERATED"]
        assert (told.numbers["name"], told.path) == (item.document.name, "metadata.generateName")


def test_each_submission_is_new_work_and_a_dry_run_keeps_none() -> None:
    on_cluster(16)
    text = json.dumps(nameless(JOB))
    reports = [import_documents(text, actor=None, dry_run=dry) for dry in (True, False, False)]
    results = [result for report in reports for result in report.results]
    assert [result.action for result in results] == ["created"] * 3
    assert all("NAME_GENERATED" in result.codes for result in results)
    made = [result.name.partition("/")[2] for result in results]
    assert all(NAME.fullmatch(name) for name in made)
    assert set(Workload.objects.values_list("name", flat=True)) == set(made[1:])


def test_a_name_that_is_taken_is_not_given_again(monkeypatch: pytest.MonkeyPatch) -> None:
    on_cluster(16)
    letters = iter("bbbbbbbbbbccccc")
    monkeypatch.setattr(naming.secrets, "choice", lambda _letters: next(letters))
    for expected in ("train-bbbbb", "train-ccccc"):
        (result,) = import_documents(json.dumps(nameless(JOB)), actor=None).results
        assert result.name.endswith(expected)


@pytest.mark.parametrize(
    ("body", "name"),
    [
        (JOB | {"metadata": {"name": "a", "generateName": "b-"}}, "a"),
        ({"kind": "Node", "apiVersion": "v1", "metadata": {"generateName": "n-"}}, ""),
        (JOB | {"metadata": {"generateName": 7}}, ""),
    ],
)
def test_what_has_a_name_or_is_no_work_gets_none(body: dict[str, Any], name: str) -> None:
    (named,), told = naming.with_names(load_documents(json.dumps(body)))
    assert (named.name, told) == (name, {})


def test_a_long_beginning_is_cut() -> None:
    (named,), _told = naming.with_names(load_documents(json.dumps(nameless(JOB, "x" * 80))))
    assert (len(named.name), named.name[:58]) == (63, "x" * 58)
