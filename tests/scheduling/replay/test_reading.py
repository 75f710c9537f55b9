"""Traces and clusters in files: what is read, and what is told of bad ones, by line and field."""

import json

import pytest

from scheduling.engine.machines import CPU, GPU, MEMORY
from scheduling.engine.terms import Fairness, QueueingStrategy, ReclaimWithinCohort
from scheduling.replay.problems import BadFile
from scheduling.replay.reading import read_trace
from scheduling.replay.site import node_gpus, read_site

HEAD = "job_id,vc,submit_s,duration_s,gpus\n"


def shapes(text: str, node: int = 8) -> list[list[tuple[int, int]]]:
    found = read_trace("t.csv", text, node)
    return [
        [(p.count, p.requests.get(GPU, 0)) for p in one.workload.pod_sets]
        for one in found.arrivals
    ]


@pytest.mark.parametrize(
    ("gpus", "pods"),
    [(1, [(1, 1)]), (8, [(1, 8)]), (16, [(2, 8)]), (20, [(2, 8), (1, 4)]), (9, [(1, 8), (1, 1)])],
)
def test_work_gets_whole_nodes_and_one_smaller_pod_for_the_rest(gpus, pods):
    assert shapes(f"{HEAD}1,a,0,10,{gpus}\n") == [pods]


def test_fields_of_our_own_say_more():
    text = (
        "id,queue,team,submit_s,duration_s,gpus,pods,cpu,memory,priority,declared_s\n"
        "x,a,red,5,10,8,4,500m,2Gi,-3,12\ny,a,,0,1.5,0,,2,,,\n"
    )
    y, x = read_trace("t.csv", text, 8).arrivals
    asked = {GPU: 2, CPU: 500, MEMORY: 2 * 2**30}
    assert (x.workload.pod_sets[0].count, x.workload.pod_sets[0].requests) == (4, asked)
    assert (x.team, x.workload.priority, x.workload.duration_s) == ("red", -3, 12)
    assert (y.team, y.runs_s, y.workload.pod_sets[0].requests) == ("a", 1.5, {CPU: 2000})


def test_numbers_as_names_sort_by_number():
    keys = [
        a.workload.key for a in read_trace("t.csv", f"{HEAD}10,a,0,1,1\n9,a,0,1,1\n", 8).arrivals
    ]
    assert keys == ["09", "10"]


def test_json_is_read_as_csv_is():
    rows = [{"job_id": 1, "vc": "a", "submit_s": 0, "duration_s": 10, "gpus": 20}]
    assert (
        read_trace("t.json", json.dumps(rows), 8).arrivals
        == read_trace("t.csv", f"{HEAD}1,a,0,10,20\n", 8).arrivals
    )


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "line 1, id: is missing"),
        (HEAD, "there is no workload in it"),
        ("job_id,vc,submit_s,duration_s\n", "line 1, gpus: is missing"),
        (HEAD.replace("gpus", "gpus,colour"), "line 1, colour: is no field of a trace"),
        (HEAD.replace("vc", "vc,queue"), "line 1, queue: stands twice"),
        (f"{HEAD}1,a,0,10\n", "line 2: has 4 values, but the head names 5 fields"),
        (f"{HEAD}1,a,x,10,1\n", "line 2, submit_s: must be a number of seconds, not 'x'"),
        (f"{HEAD}1,a,nan,10,1\n", "line 2, submit_s: must be between 0 and 10000000000, not nan"),
        (f"{HEAD}1,a,0,-1,1\n", "line 2, duration_s: must be between 0"),
        (f"{HEAD}1,a,0,10,1.5\n", "line 2, gpus: must be a whole number, not '1.5'"),
        (f"{HEAD}1,a,0,10,0\n", "line 2, gpus: must be at least 1"),
        (f"{HEAD}1,,0,10,1\n", "line 2, queue: is missing"),
        (f"{HEAD}1,a,0,10,1\n1,a,0,10,1\n", "line 3, id: 1 stands in line 2 already"),
        (f"{HEAD}1,a,0,10,1\n2,a,0,,1\n", "line 3, duration_s: is missing"),
        (f"{HEAD[:-1]},pods\n1,a,0,10,5,2\n", "line 2, pods: 5 GPUs cannot be shared out"),
        (f"{HEAD[:-1]},cpu\n1,a,0,10,5,2x\n", "line 2, cpu: must be an amount"),
    ],
)
def test_a_bad_trace_is_told_by_line_and_field(text, told):
    with pytest.raises(BadFile) as caught:
        read_trace("t.csv", text, 8)
    assert f"t.csv: {told}" in str(caught.value)


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("[1]", "line 1: must be an object"),
        ("{}", "must be a list of workloads"),
        ("[{]", "line 1: "),
        ('[{"colour": 1}]', "line 1, colour: is no field of a trace"),
        (
            '[{"id": 1, "queue": "a", "submit_s": 0, "duration_s": 1, "gpus": true}]',
            "line 1, gpus",
        ),
        ('[{"id": 1, "queue": "a", "submit_s": 0, "duration_s": 1, "gpus": 1.5}]', "line 1, gpus"),
    ],
)
def test_a_bad_json_trace_is_told_by_entry_and_field(content, told):
    with pytest.raises(BadFile) as caught:
        read_trace("t.json", content, 8)
    assert f"t.json: {told}" in str(caught.value)


def test_only_the_first_problems_of_a_long_file_are_told():
    with pytest.raises(BadFile) as caught:
        read_trace("t.csv", HEAD + "1,a,x,10,1\n" * 50, 8)
    assert str(caught.value).endswith("t.csv: and 30 more")


OURS = {
    "nodes": [
        {"kind": "h100", "count": 2, "gpus": 8, "cpu": 96, "memory": 2**40},
        {"kind": "a100", "count": 1, "gpus": 4},
    ],
    "fairness": "history",
    "queues": [
        {
            "name": "a",
            "nominal": {"h100": 10, "a100": 2},
            "borrowing_limit": 4,
            "weight": 2,
            "strategy": "StrictFIFO",
            "reclaim": "Any",
        },
        {"name": "b", "nominal": {"h100": 6}},
    ],
}


def test_a_cluster_of_our_own_has_kinds_limits_weights_and_rights():
    found = read_site("c.json", json.dumps(OURS))
    assert [sum(n.labels["pool"] == kind for n in found.nodes) for kind in found.flavors] == [2, 1]
    assert (len({n.name for n in found.nodes}), node_gpus(found)) == (3, 8)
    assert found.cohorts["all"].fairness is Fairness.HISTORY
    one = found.cluster_queues["a"]
    assert [(c.flavor, q.nominal, q.borrowing_limit) for c, q in one.quotas.items()] == [
        ("h100", 10, 4),
        ("a100", 2, 4),
    ]
    assert (one.fair_weight, one.queueing_strategy) == (2.0, QueueingStrategy.STRICT_FIFO)
    assert one.preemption.reclaim_within_cohort is ReclaimWithinCohort.ANY
    assert found.cluster_queues["b"].quotas.keys() < one.quotas.keys()


def test_a_cluster_without_cohort_lends_nothing():
    found = read_site("c.json", json.dumps({**OURS, "cohort": False}))
    assert (found.cohorts, found.cluster_queues["a"].cohort) == ({}, None)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"nodes": []}, "nodes: must be a list with at least one entry"),
        ({"nodes": 3}, "nodes: must be a list"),
        ({"nodes": [{"count": 0, "gpus": 8}]}, "nodes[0].count: must be between 1"),
        ({"nodes": [{"count": 1}]}, "nodes[0].gpus: must be a whole number, not None"),
        ({"nodes": [{"count": 1, "gpus": 8, "size": 1}]}, "nodes[0].size: is no field here"),
        ({"queues": [{"name": "a", "nominal": {"v100": 1}}]}, "queues[0].nominal.v100: no node"),
        ({"queues": [{"nominal": {"h100": 1}}]}, "queues[0].name: must be a name"),
        ({"queues": [*OURS["queues"], OURS["queues"][1]]}, "queues: b stands twice"),
        ({"fairness": "much"}, "fairness: must be one of none, share, history, not 'much'"),
        ({"cohort": "yes"}, "cohort: must be true or false"),
        (
            {"queues": [{"name": "a", "nominal": {"h100": 1}, "weight": 0}]},
            "queues[0].weight: must be a number above 0",
        ),
        (
            {"queues": [{"name": "a", "nominal": {"h100": 1}, "weight": float("nan")}]},
            "queues[0].weight: must be a number above 0",
        ),
    ],
)
def test_a_bad_cluster_is_told_by_field(change, told):
    with pytest.raises(BadFile) as caught:
        read_site("c.json", json.dumps({**OURS, **change}))
    assert f"c.json: {told}" in str(caught.value)


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("", "line 1: "),
        ("[]", "must be an object"),
        (
            '{"nodes": 2, "gpus_per_node": 8, "total_gpus": 17, "nominal_gpus": {"a": 1}}',
            "total_gpus",
        ),
        ('{"nodes": 2, "gpus_per_node": 8, "nominal_gpus": {}}', "queues: must be a list"),
        (
            '{"nodes": true, "gpus_per_node": 8, "nominal_gpus": {"a": 1}}',
            "nodes: must be a whole",
        ),
    ],
)
def test_a_bad_public_cluster_is_told(content, told):
    with pytest.raises(BadFile) as caught:
        read_site("c.json", content)
    assert f"c.json: {told}" in str(caught.value)
