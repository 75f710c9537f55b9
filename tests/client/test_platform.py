"""gpuctl and the platform: promises, machines, money, and who one is."""

import json
import stat
from pathlib import Path
from typing import Any

import pytest
import yaml

from finops import billing
from gpuplatform.common.models import AuditEntry
from queues.models import ClusterQueue, Cohort, FlavorQuota
from scheduling.cycle import run_cycle
from scheduling.models import Node, Placement
from scheduling.reconciler import reconcile
from tests.client.conftest import Run
from tests.scheduling.loop.world import nodes, queue, work

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def platform(cast: Any) -> None:
    nodes(2)
    queue("datos", 4, cohort="all")
    queue("ia", 4, cohort="all")
    work("datos", "train", gpus=3)
    run_cycle()
    reconcile()


def test_avail_tells_own_from_borrowed_and_the_largest_gang(gpuctl: Run, cast: Any) -> None:
    (row,) = gpuctl(cast.lea, "avail").rows
    assert row[:6] == ["cq-datos", "h100-sxm", "active", "4", "3", "1"]
    assert row[6:8] == ["4", "5"]
    assert "host=" in row[8]
    (row,) = json.loads(gpuctl(cast.lea, "avail", "-o", "json").out)
    assert (row["in_quota_now"], row["borrowable_now"], row["lent"]) == (1, 4, 0)
    assert gpuctl(cast.lea, "avail", "-q", "cq-ia").out == ""
    Node.objects.exclude(name__in=Placement.objects.values("node")).update(schedulable=False)
    (row,) = json.loads(gpuctl(cast.lea, "avail", "-o", "json").out)
    assert (row["borrowable_now"], row["free_on_nodes"]) == (4, 1), "quota is no place to stand"


def test_the_tree_has_cohorts_and_queues_with_their_gpus(gpuctl: Run, cast: Any) -> None:
    FlavorQuota.objects.create(
        cohort=Cohort.objects.get(name="all"),
        flavor="h100-sxm",
        resource="nvidia.com/gpu",
        nominal=2,
    )
    told = yaml.safe_load(gpuctl(cast.ada, "tree", "-o", "json").out)
    keys = ("kind", "name", "parent", "flavor", "nominal", "used", "borrowed")
    assert [[str(row.get(key)) for key in keys] for row in told] == [
        ["cohort", "all", "None", "h100-sxm", "2", "None", "None"],
        ["queue", "cq-datos", "all", "h100-sxm", "4", "3", "0"],
        ["queue", "cq-ia", "all", "h100-sxm", "4", "0", "0"],
    ]
    out = gpuctl(cast.ada, "tree").out
    assert ("cohort" in out, "  cq-datos" in out) == (True, True), "indented below its cohort"


def test_what_get_prints_can_be_changed_compared_and_applied(
    gpuctl: Run, cast: Any, tmp_path: Path
) -> None:
    file = tmp_path / "queue.yaml"
    file.write_text(gpuctl(cast.ada, "get", "queue", "cq-datos", "-o", "yaml").out)
    assert gpuctl(cast.ada, "diff", "-f", str(file)).code == 0
    assert gpuctl(cast.ada, "apply", "-f", str(file)).rows == [
        ["ClusterQueue", "cq-datos", "accepted", "unchanged"]
    ]
    body = yaml.safe_load(file.read_text())
    quotas = body["spec"]["resourceGroups"][0]["flavors"][0]["resources"]
    quotas[0]["nominalQuota"] = "2"
    file.write_text(yaml.safe_dump(body))
    done = gpuctl(cast.ada, "diff", "-f", str(file))
    assert (done.code, "nominalQuota: '2'" in done.out) == (1, True)
    assert gpuctl(cast.ada, "apply", "-f", str(file), "--dry-run").code == 0
    assert ClusterQueue.objects.get(name="cq-datos").version == 1
    reason = "Agreed in the June review"
    done = gpuctl(cast.ada, "apply", "-f", str(file), "--reason", reason)
    assert done.rows == [["ClusterQueue", "cq-datos", "accepted", "changed"]]
    assert AuditEntry.objects.get(action="cluster_queue.updated").reason == reason
    done = gpuctl(cast.ada, "apply", "-f", str(file))  # of a version that is no more
    assert done.code == 4
    assert "stale" in done.err


def test_a_new_object_is_applied_without_a_version(gpuctl: Run, cast: Any) -> None:
    text = "kind: topology\nname: dc\nlevels: [rack]\n"
    done = gpuctl(cast.ada, "apply", "-f", "-", text=text)
    assert done.rows == [["topology", "dc", "accepted", "created"]]
    assert gpuctl(cast.ada, "apply", "-f", "-", text=text).code == 4  # it wants a version now


def test_manifests_are_applied_with_a_reason(gpuctl: Run, cast: Any) -> None:
    text = (
        "apiVersion: kueue.x-k8s.io/v1beta1\nkind: ResourceFlavor\nmetadata: {name: l40s}\n"
        "spec: {nodeLabels: {accelerator: l40s}}\n"
    )
    done = gpuctl(cast.ada, "apply", "-f", "-", "--reason", "New machines", text=text)
    assert done.rows == [["ResourceFlavor", "l40s", "accepted", "created"]]
    assert AuditEntry.objects.get(action="resource_flavor.created").reason == "New machines"


@pytest.mark.parametrize(
    ("options", "policy"), [((), "Hold"), (("--drain",), "HoldAndDrain")], ids=["hold", "drain"]
)
def test_a_queue_is_stopped_and_resumed(
    gpuctl: Run, cast: Any, options: tuple[str, ...], policy: str
) -> None:
    assert gpuctl(cast.ada, "stop", "queue", "cq-datos", *options).code == 0
    assert ClusterQueue.objects.get(name="cq-datos").stop_policy == policy
    assert gpuctl(cast.ada, "resume", "queue", "cq-datos").code == 0
    assert ClusterQueue.objects.get(name="cq-datos").stop_policy == "None"


@pytest.mark.parametrize(
    ("who", "line", "code"),
    [
        ("lea", "stop queue cq-datos", 6),
        ("lea", "stop queue cq-ia", 3),
        ("ada", "stop cohort all", 2),
        ("ada", "get quux", 2),
        ("ada", "get queue nobody", 3),
        ("ada", "get queue ../teams", 3),
        ("ada", "get queue ..", 3),
        ("ada", "stop queue ../../nodes", 3),
        ("ada", "cordon ../agents", 3),
        ("lea", "avail -q nobody", 3),
        ("lea", "avail -q cq-ia", 3),
        ("ada", "frobnicate", 2),
        ("ada", "apply -f /nowhere/at/all.yaml", 2),
        ("lea", "cordon h100-node-01", 6),
        ("lea", "bill ia --month 2026-06", 3),
        ("lea", "cost --month 2026-6", 2),
    ],
)
def test_each_kind_of_failure_has_its_exit_code(
    gpuctl: Run, cast: Any, who: str, line: str, code: int
) -> None:
    done = gpuctl(getattr(cast, who), *line.split())
    assert (done.code, done.out) == (code, "")
    assert done.err


@pytest.mark.parametrize("line", ["cost --month 2026-6", "bill ia --month June"])
def test_a_month_written_otherwise_is_told_how_one_is_written(
    gpuctl: Run, cast: Any, line: str
) -> None:
    assert "write year and month like 2026-06" in " ".join(
        gpuctl(cast.fin, *line.split()).err.replace("│", " ").split()
    )


def test_nodes_say_what_is_free_and_can_be_cordoned(gpuctl: Run, cast: Any) -> None:
    rows = gpuctl(cast.lea, "nodes").rows
    assert sorted(row[3:] for row in rows) == [["4", "0", "4", "0"], ["4", "3", "1", "0"]]
    assert gpuctl(cast.ada, "cordon", "h100-node-01", "--dry-run").code == 0
    assert Node.objects.get(name="h100-node-01").schedulable
    assert gpuctl(cast.ada, "cordon", "h100-node-01", "--reason", "New fans are needed").code == 0
    assert not Node.objects.get(name="h100-node-01").schedulable
    row = next(row for row in gpuctl(cast.lea, "nodes").rows if row[0] == "h100-node-01")
    assert (row[2], row[5]) == ("cordoned", "0")
    assert gpuctl(cast.ada, "uncordon", "h100-node-01").code == 0
    node = next(row[0] for row in gpuctl(cast.lea, "nodes").rows if row[4] == "3")
    tried = gpuctl(cast.ada, "drain", node, "--dry-run")
    assert "nothing was changed" in tried.err
    assert "go elsewhere where there is room" in " ".join(tried.err.split())
    assert not Node.objects.get(name=node).draining
    assert gpuctl(cast.ada, "drain", node, "--reason", "New fans are needed").code == 0
    assert Node.objects.get(name=node).draining


def test_a_bill_and_a_month_are_printed_to_the_cent(gpuctl: Run, cast: Any) -> None:
    from django.utils import timezone  # noqa: PLC0415

    now = timezone.now()
    billing.rebuild_draft(f"{now:%Y-%m}", now=now)
    done = gpuctl(cast.lea, "bill", "datos", "-o", "json")
    bill = json.loads(done.out)
    total = sum(round(100 * float(line["amount"])) for line in bill["lines"])
    assert total == round(100 * float(bill["total"]))
    assert len(gpuctl(cast.lea, "bill", "datos").rows) == len(bill["lines"])
    assert [row[0] for row in gpuctl(cast.lea, "cost", "--by", "team").rows] == ["datos"]


def test_whoami_says_roles_teams_and_scopes(gpuctl: Run, cast: Any) -> None:
    done = gpuctl(cast.lea, "whoami", scopes=("read",))
    assert "user    lea" in done.out
    assert "teams   datos (lead)" in done.out
    assert "scopes  read" in done.out


def test_a_login_is_tried_and_kept_for_its_owner_only(
    gpuctl: Run, cast: Any, home: Path, token_of: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert gpuctl(cast.lea, "login", "http://testserver", text="gpt_wrong\n").code == 0
    monkeypatch.delenv("GPUCTL_URL")
    monkeypatch.delenv("GPUCTL_TOKEN")
    (file,) = (home / "gpuctl").iterdir()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    from gpuplatform.client.main import main  # noqa: PLC0415

    assert main(["whoami"]) == 0
    assert main(["config", "use", "other"]) == 3
    assert main(["config", "forget", "default"]) == 0
    assert main(["whoami"]) == 6


def test_a_wrong_token_is_not_kept(gpuctl: Run, cast: Any, home: Path) -> None:
    gpuctl(cast.lea, "version")
    done = gpuctl(None, "login", "http://testserver", "--token", "gpt_wrong")
    assert done.code == 6
    assert not (home / "gpuctl").exists()


def test_a_token_is_shown_to_no_other_server(
    gpuctl: Run, cast: Any, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from gpuplatform.client import config  # noqa: PLC0415

    gpuctl(cast.lea, "login", "http://testserver")
    monkeypatch.delenv("GPUCTL_TOKEN")
    monkeypatch.setenv("GPUCTL_URL", "http://elsewhere")
    assert config.read().chosen() == config.Place("http://elsewhere", "")
