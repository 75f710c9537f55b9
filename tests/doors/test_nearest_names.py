"""A queue or a kind that is not there: what was probably meant, among what the reader sees."""

from typing import Any

import pytest

from queues.models import ClusterQueue
from tests.doors.test_workloads_api import BODY, PATH

pytestmark = pytest.mark.django_db


def refusal(answer: Any) -> tuple[int, str]:
    return answer.status_code, answer.json()["errors"][0]["detail"]


@pytest.mark.parametrize(
    ("queue", "words"),
    [
        (
            "lq-dato",
            "The queue lq-dato does not exist in namespace ns-datos; did you mean lq-datos?",
        ),
        ("elsewhere", "The queue elsewhere does not exist in namespace ns-datos."),
        (
            "cq-datos",
            "Work cannot name the cluster queue cq-datos directly; did you mean lq-datos?",
        ),
        ("cq-ia", "The queue cq-ia does not exist in namespace ns-datos."),  # a foreign one
    ],
)
def test_a_queue_that_is_not_there_is_answered_in_words_that_fit(
    three_teams: None, lea: Any, send: Any, queue: str, words: str
) -> None:
    assert refusal(send(lea, "POST", PATH, {**BODY, "queue": queue})) == (422, words)


def test_an_open_cluster_queue_of_ones_own_may_be_meant(
    three_teams: None, lea: Any, send: Any
) -> None:
    ClusterQueue.objects.filter(name="cq-datos").update(namespace_selector={})
    said = refusal(send(lea, "POST", PATH, {**BODY, "queue": "cq-dato"}))[1]
    assert said.endswith("did you mean cq-datos?")


def test_a_check_for_a_queue_that_is_not_there_speaks_of_no_namespace(
    three_teams: None, ada: Any, send: Any
) -> None:
    body = {"kind": "manual", "queues": ["cq-dato"]}
    answer = send(ada, "PUT", "/api/v1/admission-checks/approval/", body)
    assert refusal(answer) == (422, "There is no cluster queue cq-dato; did you mean cq-datos?")


@pytest.mark.parametrize(
    ("head", "nearest"),
    [
        ("apiVersion: kueue.x-k8s.io/v1beta1\nkind: ClusterQueu", "ClusterQueue (kueue.x-k8s.io)"),
        ("apiVersion: v1\nkind: LocalQueue", "LocalQueue (kueue.x-k8s.io)"),
        ("apiVersion: batch/v1\nkind: job", "Job (batch, batch.volcano.sh)"),
        ("apiVersion: v1\nkind: Secret", ""),
    ],
)
def test_a_kind_that_is_not_read_is_answered_with_the_nearest_and_its_group(
    ada: Any, send: Any, head: str, nearest: str
) -> None:
    answer = send(
        ada, "POST", "/api/v1/manifests/", f"{head}\nmetadata: {{name: a}}\n", "text/yaml"
    )
    status, said = refusal(answer)
    assert (status, said.partition("did you mean ")[2].rstrip("?")) == (422, nearest)
