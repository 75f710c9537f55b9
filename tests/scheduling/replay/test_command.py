"""``manage.py replay``: profiles and policies on one trace, in one table, one file of figures."""

import gzip
import io
import json
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command

from scheduling.replay.figures import figures_of
from scheduling.replay.player import play
from scheduling.replay_report import html_report
from tests.scheduling.replay.scenes import comes, of, site

TRACE = "job_id,vc,submit_s,duration_s,gpus\n1,a,0,100,3\n2,a,10,50,2\n3,b,20,10,1\n"
CLUSTER = {"nodes": 1, "gpus_per_node": 4, "nominal_gpus": {"a": 2, "b": 2}}


@pytest.fixture
def files(tmp_path: Path) -> tuple[str, str]:
    trace, cluster = tmp_path / "jobs.csv.gz", tmp_path / "cluster.json"
    trace.write_bytes(gzip.compress(TRACE.encode()))
    cluster.write_text(json.dumps(CLUSTER))
    return str(trace), str(cluster)


def replay(files: tuple[str, str], *options: str) -> str:
    out = io.StringIO()
    call_command("replay", files[0], "--cluster", files[1], *options, stdout=out)
    return out.getvalue()


def test_one_line_for_each_profile_and_policy(files, tmp_path):
    figures = tmp_path / "figures.json"
    profiles = "--profile", "recommended", "--profile", "kueue"
    policies = "--policy", "as-given", "--policy", "isolated+strict"
    told = replay(files, *profiles, *policies, "--json", str(figures))
    names = ["as-given", "isolated+strict", "kueue: as-given", "kueue: isolated+strict"]
    lines = told.splitlines()
    assert [line.startswith(name) for line, name in zip(lines[1:], names, strict=True)] == [
        True
    ] * 4
    found = json.loads(figures.read_text())
    assert [one["name"] for one in found] == names
    assert found[0]["waits"]["mean_s"] == pytest.approx(30.0)  # 0, 90 and 0 seconds
    assert found[1]["unfinished"] == 1  # three GPUs of a quota of two


def test_the_report_stands_by_itself_and_names_what_was_compared(files, tmp_path):
    report = tmp_path / "report.html"
    replay(files, "--policy", "as-given", "--policy", "reclaim", "--html", str(report))
    text = report.read_text()
    assert "<script src" not in text
    assert "prefers-color-scheme: dark" in text
    charts = json.loads(
        text.split("const CHARTS = ")[1].split(";\n", 1)[0].rpartition("]")[0] + "]"
    )
    assert [chart["id"] for chart in charts] == ["waits", "sizes", "lent"]
    assert {trace["name"] for trace in charts[0]["data"]} == {"as-given", "reclaim"}


def test_a_report_shows_names_as_text():
    name = "</script><script>alert(1)</script>"
    one = site(**{name: 4})
    told = html_report(name, [figures_of(name, one, play(one, of(comes("x", 0, 1, 1, name))))])
    assert "<script>alert" not in told


@pytest.mark.parametrize(
    ("trace", "cluster", "options", "told"),
    [
        ("job_id\n", CLUSTER, (), "jobs.csv: line 1, queue: is missing"),
        (TRACE.replace("100", "long"), CLUSTER, (), "line 2, duration_s: must be a number"),
        (TRACE, {**CLUSTER, "nodes": 0}, (), "cluster.json: nodes: must be between 1"),
        (TRACE.replace("b,20", "c,20"), CLUSTER, (), "queues: the trace names others: c"),
        (TRACE, CLUSTER, ("--policy", "isolated+much"), "'much' is none of as-given"),
        (TRACE, CLUSTER, ("--json", "/nowhere/at/all.json"), "/nowhere/at/all.json"),
    ],
)
def test_bad_files_are_told_by_name_line_and_field(tmp_path, trace, cluster, options, told):
    files = tmp_path / "jobs.csv", tmp_path / "cluster.json"
    files[0].write_text(trace)
    files[1].write_text(json.dumps(cluster))
    with pytest.raises(CommandError) as caught:
        replay((str(files[0]), str(files[1])), *options)
    assert told in str(caught.value)


def test_a_file_that_is_not_there_is_told(files):
    with pytest.raises(CommandError, match=r"nothing\.csv"):
        replay(("nothing.csv", files[1]))
