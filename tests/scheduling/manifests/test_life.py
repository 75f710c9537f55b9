"""What manifests say of a workload's life: policies, retries, gates, grace, time to keep."""

from typing import Any

import pytest

from tests.scheduling.manifests.reading import TEMPLATE, codes, job, only, parts_of, volcano

QUEUE = {"kueue.x-k8s.io/queue-name": "lq"}


def read(policies: list[dict[str, Any]], **spec: Any):
    (part,) = parts_of(volcano({"queue": "q", "policies": policies, **spec}))
    return part


def stored(action: str, *events: str, code: int | None = None, pod_set: str = "") -> dict:
    return {"action": action, "events": list(events), "exit_code": code, "pod_set": pod_set}


def test_policies_of_the_job_and_of_its_tasks_are_kept():
    done = [{"event": "TaskCompleted", "action": "CompleteJob"}]
    tasks = [{"name": "chief", "policies": done, "template": TEMPLATE}]
    given = [
        {"events": ["PodFailed", "PodEvicted"], "action": "AbortJob"},
        {"exitCode": 42, "action": "TerminateJob"},
    ]
    part = read(given, tasks=tasks)
    assert only(part).policies == (
        stored("CompleteJob", "TaskCompleted", pod_set="chief"),
        stored("AbortJob", "PodFailed", "PodEvicted"),
        stored("TerminateJob", code=42),
    )
    assert codes(part) == []


def test_volcano_does_nothing_that_no_policy_asks_for():
    part = read([], maxRetry=5, minSuccess=3, ttlSecondsAfterFinished=600)
    spec = only(part)
    assert (spec.on_failure, spec.max_retries, spec.min_success, spec.ttl_s) == ("keep", 5, 3, 600)


@pytest.mark.parametrize("name", ["*", "AnyEvent"])
def test_a_policy_for_every_event_has_two_names(name: str):
    part = read([{"event": name, "action": "RestartJob"}])
    assert only(part).policies == (stored("RestartJob", "*"),)
    assert codes(part) == ["RESTART_WITHOUT_MIN_RUNTIME"]


@pytest.mark.parametrize(
    ("policies", "code", "path"),
    [
        ([{"event": "PodPending", "action": "RestartJob"}], "POLICY_EVENT", "[0].event"),
        ([{"event": "OutOfSync", "action": "AbortJob"}], "POLICY_EVENT", "[0].event"),
        ([{"event": "PodFailed", "action": "RestartTask"}], "POLICY_ACTION", "[0].action"),
        ([{"event": "PodFailed", "action": "ResumeJob"}], "POLICY_ACTION", "[0].action"),
        ([{"action": "RestartJob"}], "POLICY_EVENT_OR_CODE", "[0]"),
        (
            [{"event": "PodFailed", "exitCode": 3, "action": "AbortJob"}],
            "POLICY_EVENT_OR_CODE",
            "[0]",
        ),
        ([{"exitCode": 0, "action": "AbortJob"}], "POLICY_EXIT_CODE_ZERO", "[0].exitCode"),
        (
            [
                {"event": "PodFailed", "action": "AbortJob"},
                {"event": "PodFailed", "action": "CompleteJob"},
            ],
            "POLICY_TWICE",
            "[1].event",
        ),
        (
            [
                {"event": "*", "action": "AbortJob"},
                {"event": "PodFailed", "action": "CompleteJob"},
            ],
            "POLICY_ANY_ALONE",
            "",
        ),
    ],
)
def test_policies_that_would_not_be_followed_are_refused(policies, code, path):
    part = read(policies)
    found = [(d.code, d.path, d.is_error) for d in part.diagnostics]
    assert found == [(code, f"spec.policies{path}", True)]


def test_gates_stand_in_an_annotation():
    notes = {"kueue.x-k8s.io/admission-gated-by": "a.example/one, b.example/two,"}
    (part,) = parts_of(job(labels=QUEUE, annotations=notes))
    assert only(part).gates == ("a.example/one", "b.example/two")
    assert codes(part) == []


@pytest.mark.parametrize(("text", "kept"), [("requeue", "requeue"), ("replace", "replace")])
def test_a_gang_may_want_no_part_of_it_replaced(text: str, kept: str):
    (part,) = parts_of(job(labels=QUEUE, annotations={"gpuplatform.io/on-node-loss": text}))
    assert (only(part).on_node_loss, codes(part)) == (kept, [])


def test_another_word_for_it_is_refused():
    (part,) = parts_of(job(labels=QUEUE, annotations={"gpuplatform.io/on-node-loss": "panic"}))
    assert codes(part) == ["BAD_VALUE"]


def test_the_longest_grace_of_its_pods_counts():
    slow = {"spec": {**TEMPLATE["spec"], "terminationGracePeriodSeconds": 300}}
    tasks = [
        {"name": "a", "template": slow},
        {"name": "b", "template": TEMPLATE},
    ]
    (part,) = parts_of(volcano({"queue": "q", "tasks": tasks}))
    assert only(part).grace_s == 300
    (part,) = parts_of(job({"ttlSecondsAfterFinished": 60}, labels=QUEUE))
    assert (only(part).grace_s, only(part).ttl_s) == (None, 60)
