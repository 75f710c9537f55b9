"""``manage.py import_manifests``: what it prints, and how it ends."""

import json
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from queues.models import ClusterQueue, ResourceFlavor
from tests.doors.samples import EXAMPLES

pytestmark = pytest.mark.django_db


def run(*arguments: str) -> tuple[str, str, int]:
    out, err, code = StringIO(), StringIO(), 0
    try:
        call_command("import_manifests", *arguments, stdout=out, stderr=err)
    except SystemExit as stop:
        code = int(stop.code or 0)
    return out.getvalue(), err.getvalue(), code


def example(name: str) -> str:
    return str(EXAMPLES / f"{name}.yaml")


def test_accepted_files_are_listed_and_end_well() -> None:
    out, err, code = run(example("cluster"), example("kueue-flavor"))

    assert (err, code) == ("", 0)
    assert "accepted  created    Node h100-node-04" in out
    assert "accepted  created    ResourceFlavor h100-sxm" in out


def test_a_rejected_object_is_explained_and_ends_with_1() -> None:
    out, _, code = run(example("cluster-1-node"), example("kueue-two-teams-rayjob"))

    assert code == 1
    assert "rejected  none       RayJob ns-datos/batch-eval-llama70b" in out
    assert "NEVER_FITS_CLUSTER: The nodes that suit it can never give 16 GPUs: together" in out
    assert ClusterQueue.objects.count() == 2


def test_atomic_keeps_nothing_of_a_file_with_a_rejection() -> None:
    out, _, code = run("--atomic", example("cluster-1-node"), example("kueue-two-teams-rayjob"))

    assert code == 1
    assert "Nothing of this file was kept." in out
    assert not ClusterQueue.objects.exists()


def test_a_dry_run_keeps_nothing() -> None:
    _, _, code = run("--dry-run", example("kueue-flavor"))

    assert code == 0
    assert not ResourceFlavor.objects.exists()


def test_json_is_the_report() -> None:
    out, _, _ = run("--json", example("kueue-flavor"))

    report = json.loads(out)[example("kueue-flavor")]
    assert report["results"][0]["verdict"] == "accepted"


def test_an_unreadable_file_stops_nothing_but_itself(tmp_path: Path) -> None:
    broken = tmp_path / "broken.yaml"
    broken.write_text("a: [")

    _, err, code = run(str(broken), example("kueue-flavor"))

    assert code == 1
    assert "BAD_SYNTAX" in err
    assert ResourceFlavor.objects.exists()


def test_a_missing_file_is_named(tmp_path: Any) -> None:
    with pytest.raises(CommandError, match=r"nothing\.yaml"):
        run(str(tmp_path / "nothing.yaml"))
