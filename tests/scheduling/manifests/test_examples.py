"""Manifests as people write them, and exactly what each must yield (``admission.md`` 4).

``GOLDEN=write pytest tests/scheduling/manifests/test_examples.py`` writes the table anew; each
line of a difference is to be judged by the specification.
"""

import json
import os
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from gpuplatform.common.manifests import load_documents
from scheduling.manifests import Part, read
from scheduling.specs import PodSetSpec, WorkloadSpec

HERE = Path(__file__).parent
TABLE = HERE / "examples.json"
NEEDLESS = {"name", "count", "requests", "template"}  # said in words of their own
USUAL = PodSetSpec("main", 1, {})
OF_WORK = ("priority_class", "min_member", "role_minima", "elastic", "max_execution_time_s")
OF_WORK += ("expected_duration_s", "max_retries", "on_failure", "min_success", "ttl_s", "grace_s")
USUAL_WORK = WorkloadSpec("ns", "w", ())


def examples() -> dict[str, str]:
    parts = (HERE / "examples.yaml").read_text(encoding="utf-8").split("\n#### ")[1:]
    return {name: body for name, _newline, body in (part.partition("\n") for part in parts)}


EXAMPLES = examples()


def pods(pod_set: PodSetSpec) -> str:
    """Return a pod set in a line: count, requests of one pod, and what is not usual."""
    asked = " ".join(f"{name}={amount}" for name, amount in sorted(pod_set.requests.items()))
    more = [
        f"{one.name}: {getattr(pod_set, one.name)}"
        for one in fields(pod_set)
        if one.name not in NEEDLESS and getattr(pod_set, one.name) != getattr(USUAL, one.name)
    ]
    return "; ".join([f"{pod_set.name} {pod_set.count} x {asked or 'nothing'}", *more])


def told(part: Part) -> dict[str, Any]:
    """Return what became of a document."""
    works = [
        {
            f"{spec.name} in {spec.queue or 'no queue'}": [pods(one) for one in spec.pod_sets],
            **{n: v for n in OF_WORK if (v := getattr(spec, n)) != getattr(USUAL_WORK, n)},
        }
        for spec in part.specs
        if isinstance(spec, WorkloadSpec)
    ]
    found = sorted(f"{one.severity} {one.code} {one.path}" for one in part.diagnostics)
    follows = {"member_of": part.member_of} if part.member_of else {}
    return {"document": part.document.subject, "works": works, "found": found, **follows}


def answer(name: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(
        json.dumps([told(part) for part in read(load_documents(EXAMPLES[name]))])
    )
    return found


def table() -> dict[str, Any]:
    if os.environ.get("GOLDEN") == "write":
        made = {name: answer(name) for name in EXAMPLES}
        TABLE.write_text(json.dumps(made, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    found: dict[str, Any] = json.loads(TABLE.read_text(encoding="utf-8"))
    return found


EXPECTED = table()


def test_there_are_some_of_each_ecosystem() -> None:
    assert EXPECTED.keys() == EXAMPLES.keys()
    kinds = {one["document"].partition("/")[0] for told in EXPECTED.values() for one in told}
    assert len(EXAMPLES) >= 40
    assert len(kinds) >= 18


@pytest.mark.parametrize("name", EXAMPLES)
def test_a_manifest_yields_what_the_table_says(name: str) -> None:
    assert answer(name) == EXPECTED[name]
