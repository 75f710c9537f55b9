"""``POST /api/v1/manifests/``: who may send what, and how the answers look."""

import json
from typing import Any

import pytest
import yaml

from gpuplatform.common.models import AuditEntry
from queues.models import ClusterQueue, ResourceFlavor, Team
from queues.services import save_team
from queues.specs import TeamSpec
from scheduling.models import Workload
from tests.doors.samples import text_of

pytestmark = pytest.mark.django_db
PATH = "/api/v1/manifests/"
JOB = "kueue-job-label"


@pytest.mark.parametrize("kind", ["application/yaml", "text/yaml", "application/x-yaml"])
def test_yaml_is_taken_under_each_of_its_names(kind: str, ada: Any, send: Any) -> None:
    response = send(ada, "POST", PATH, text_of("kueue-flavor"), kind)

    assert response.status_code == 201
    (result,) = response.json()["results"]
    assert (result["kind"], result["name"]) == ("ResourceFlavor", "h100-sxm")
    assert (result["verdict"], result["action"]) == ("accepted", "created")


def test_json_is_taken_too(ada: Any, send: Any) -> None:
    flavor = {
        "apiVersion": "kueue.x-k8s.io/v1beta2",
        "kind": "ResourceFlavor",
        "metadata": {"name": "a100"},
    }

    assert send(ada, "POST", PATH, flavor).status_code == 201
    assert ResourceFlavor.objects.get().name == "a100"


def test_the_same_again_is_ok_and_unchanged(ada: Any, send: Any) -> None:
    send(ada, "POST", PATH, text_of("kueue-flavor"), "text/yaml")

    response = send(ada, "POST", PATH, text_of("kueue-flavor"), "text/yaml")

    assert response.status_code == 200
    assert response.json()["results"][0]["action"] == "unchanged"


def test_work_that_has_ended_is_left_out_and_refuses_nothing(ada: Any, send: Any) -> None:
    body = yaml.safe_load(text_of(JOB))
    body["status"] = {"conditions": [{"type": "Complete", "status": "True"}], "succeeded": 1}

    response = send(ada, "POST", PATH, body)

    (result,) = response.json()["results"]
    assert (response.status_code, result["verdict"], result["action"]) == (200, "accepted", "none")
    assert [found["code"] for found in result["diagnostics"]] == ["HAS_ENDED"]
    assert not Workload.objects.exists()


def test_a_mixed_answer_is_207_and_keeps_what_was_accepted(ada: Any, send: Any) -> None:
    send(ada, "POST", PATH, text_of("cluster-1-node"), "text/yaml")

    response = send(ada, "POST", PATH, text_of("kueue-two-teams-rayjob"), "text/yaml")

    assert response.status_code == 207
    verdicts = [result["verdict"] for result in response.json()["results"]]
    assert verdicts == ["accepted"] * 5 + ["rejected"]
    assert ClusterQueue.objects.count() == 2
    assert not Workload.objects.exists()
    assert response.json()["findings"][0]["code"] == "GUARANTEES_EXCEED_CAPACITY"


def test_all_or_nothing_keeps_nothing_of_a_mixed_submission(ada: Any, send: Any) -> None:
    send(ada, "POST", PATH, text_of("cluster-1-node"), "text/yaml")

    response = send(
        ada, "POST", f"{PATH}?atomic=true", text_of("kueue-two-teams-rayjob"), "text/yaml"
    )

    assert response.status_code == 422
    assert response["Content-Type"] == "application/problem+json"
    assert response.json()["undone"]
    assert not ClusterQueue.objects.exists()


def test_a_dry_run_decides_everything_and_keeps_nothing(ada: Any, send: Any) -> None:
    response = send(
        ada, "POST", f"{PATH}?dry_run=All", text_of("kueue-two-teams-rayjob"), "text/yaml"
    )

    assert response.status_code == 201
    assert response.json()["dry_run"]
    assert {result["verdict"] for result in response.json()["results"]} == {"accepted"}
    assert not ClusterQueue.objects.exists()
    assert not Workload.objects.exists()


def test_a_wholly_rejected_submission_is_problem_details_with_results(ada: Any, send: Any) -> None:
    response = send(ada, "POST", PATH, text_of(JOB), "text/yaml")

    answer = response.json()
    assert response.status_code == 422
    assert answer["type"] == "urn:gpuplatform:problem:queue_not_found"
    where = "/documents/0/metadata/labels/kueue.x-k8s.io~1queue-name"
    assert answer["errors"][0]["pointer"] == where
    assert answer["errors"][0]["path"] == "metadata.labels[kueue.x-k8s.io/queue-name]"
    assert answer["results"][0]["verdict"] == "rejected"


@pytest.mark.usefixtures("three_teams")
def test_a_member_submits_work_to_the_own_queue(lea: Any, send: Any) -> None:
    response = send(lea, "POST", PATH, text_of(JOB), "text/yaml")

    assert response.status_code == 201
    workload = Workload.objects.get()
    assert response.json()["results"][0]["workloads"] == [str(workload.uid)]
    assert (workload.team.name, workload.submitted_by) == ("datos", lea)
    assert [event.kind for event in workload.events.all()] == ["submitted"]


@pytest.mark.usefixtures("three_teams")
@pytest.mark.parametrize("who", ["ian", "eve"])
def test_others_do_not(who: str, cast: Any, send: Any) -> None:
    response = send(getattr(cast, who), "POST", PATH, text_of(JOB), "text/yaml")

    assert response.status_code == 422
    assert {error["code"] for error in response.json()["errors"]} == {"QUEUE_NOT_FOUND"}
    assert not Workload.objects.exists()


@pytest.mark.parametrize(
    "sample", ["kueue-flavor", "kueue-three-teams", "cluster", "litellm-config", "volcano-queues"]
)
@pytest.mark.parametrize("who", ["lea", "ian", "aud", "eve"])
def test_promises_nodes_and_prices_are_not_for_everybody(
    who: str, sample: str, cast: Any, send: Any, rows: Any
) -> None:
    before = rows()

    response = send(getattr(cast, who), "POST", PATH, text_of(sample), "text/yaml")

    assert response.status_code == 403
    assert {error["code"] for error in response.json()["errors"]} == {"NOT_ALLOWED"}
    assert rows() == before


def test_a_read_token_sends_nothing(ada: Any, client: Any, token_of: Any) -> None:
    response = client.post(
        PATH,
        text_of("kueue-flavor"),
        content_type="text/yaml",
        headers={"Authorization": token_of(ada, "read")},
    )

    assert response.status_code == 403


QUEUE = """apiVersion: kueue.x-k8s.io/v1beta2
kind: ClusterQueue
metadata:
  name: cq
  labels: {gpuplatform.io/team: %s}
spec: {namespaceSelector: {}}
"""


def test_a_label_gives_a_queue_to_a_team_that_exists(ada: Any, send: Any) -> None:
    save_team(TeamSpec("datos", "Datos"), actor=None)

    send(ada, "POST", PATH, QUEUE % "datos", "text/yaml")

    assert ClusterQueue.objects.get().team.name == "datos"


def test_a_label_never_makes_a_team(ada: Any, send: Any) -> None:
    response = send(ada, "POST", PATH, QUEUE % "ghosts", "text/yaml")

    codes = [d["code"] for d in response.json()["results"][0]["diagnostics"]]
    assert codes == ["TEAM_NOT_FOUND"]
    assert ClusterQueue.objects.get().team is None


@pytest.mark.usefixtures("three_teams")
def test_a_queue_for_one_namespace_belongs_to_its_owner() -> None:
    owners = {q.name: q.team and q.team.name for q in ClusterQueue.objects.all()}

    assert owners == {"cq-datos": "datos", "cq-ia": "ia", "cq-plataforma": None}


@pytest.mark.usefixtures("three_teams")
def test_an_edit_names_the_pending_work_that_it_makes_impossible(
    ada: Any, lea: Any, send: Any
) -> None:
    send(lea, "POST", PATH, text_of(JOB), "text/yaml")
    smaller = text_of("kueue-three-teams").replace("nominalQuota: 2", "nominalQuota: 0")
    smaller = smaller.replace("borrowingLimit: 2", "borrowingLimit: 0")

    response = send(ada, "POST", PATH, smaller, "text/yaml")

    found = {finding["code"]: finding for finding in response.json()["findings"]}
    assert found["WORK_BECOMES_IMPOSSIBLE"]["numbers"]["workload"] == (
        "ns-datos/queue-label-example"
    )


def test_volcano_queues_that_state_nothing_share_by_weight(ada: Any, send: Any) -> None:
    send(ada, "POST", PATH, text_of("cluster"), "text/yaml")
    queues = [
        {
            "apiVersion": "scheduling.volcano.sh/v1beta1",
            "kind": "Queue",
            "metadata": {"name": name},
            "spec": {"weight": weight},
        }
        for name, weight in (("a", 3), ("b", 1))
    ]

    send(ada, "POST", PATH, "\n---\n".join(map(json.dumps, queues)), "text/yaml")

    shares = {
        queue.name: queue.quotas.get(resource="nvidia.com/gpu").nominal
        for queue in ClusterQueue.objects.all()
    }
    assert shares == {"a": 12, "b": 4}
    told = AuditEntry.objects.filter(action="cluster_queue.shared_by_weight").order_by("subject")
    assert [(e.actor_name, e.subject, e.after["nominal"]["nvidia.com/gpu"]) for e in told] == [
        ("system", "a", 12),
        ("system", "b", 4),
    ]
    send(ada, "POST", PATH, "\n---\n".join(map(json.dumps, queues)), "text/yaml")
    assert told.count() == 2  # nothing has changed


# ---- a Deployment that is scaled ---------------------------------------------------------------
def scaled(replicas: int, image: str = "v0.9.0") -> str:
    text = text_of("deployment-team-labels").replace("replicas: 1", f"replicas: {replicas}")
    return text.replace("v0.9.0", image)


def test_a_deployment_sent_with_more_replicas_gets_the_new_ones_only(ada: Any, send: Any) -> None:
    (first,) = send(ada, "POST", PATH, scaled(1), "text/yaml").json()["results"]

    response = send(ada, "POST", PATH, scaled(3), "text/yaml")

    (result,) = response.json()["results"]
    assert (response.status_code, result["verdict"], result["action"]) == (
        201,
        "accepted",
        "created",
    )
    assert result["workloads"][:1] == first["workloads"]
    names = Workload.objects.order_by("name").values_list("name", flat=True)
    assert list(names) == [f"vllm-llama-70b-{number}" for number in range(3)]


@pytest.mark.parametrize("asked", [1, 0])
def test_a_deployment_sent_with_fewer_replicas_cancels_none_and_names_the_surplus(
    asked: int, ada: Any, send: Any
) -> None:
    send(ada, "POST", PATH, scaled(3), "text/yaml")

    (result,) = send(ada, "POST", PATH, scaled(asked), "text/yaml").json()["results"]

    (warning,) = [d for d in result["diagnostics"] if d["code"] == "SURPLUS_REPLICAS"]
    names = [f"vllm-llama-70b-{number}" for number in range(asked, 3)]
    assert warning["numbers"] == {
        "asked": asked,
        "surplus": len(names),
        "workloads": ", ".join(names),
    }
    assert (result["verdict"], warning["severity"]) == ("accepted", "warning")
    assert Workload.objects.filter(status="pending").count() == 3


def test_the_same_replicas_are_unchanged_and_another_image_still_takes_the_name(
    ada: Any, send: Any
) -> None:
    send(ada, "POST", PATH, scaled(2), "text/yaml")

    (same,) = send(ada, "POST", PATH, scaled(2), "text/yaml").json()["results"]
    (other,) = send(ada, "POST", PATH, scaled(2, "v0.9.1"), "text/yaml").json()["results"]

    assert (same["action"], "SURPLUS_REPLICAS" in str(same)) == ("unchanged", False)
    assert (other["verdict"], "name_taken" in str(other)) == ("rejected", True)


def test_somebody_else_s_replicas_are_not_named(ada: Any, eve: Any, datos: Any, send: Any) -> None:
    send(ada, "POST", PATH, scaled(2), "text/yaml")

    (result,) = send(eve, "POST", PATH, scaled(0), "text/yaml").json()["results"]

    assert "SURPLUS_REPLICAS" not in str(result)


@pytest.mark.usefixtures("three_teams")
def test_a_ceiling_of_another_teams_queue_is_as_little_there_as_one_of_nobody(
    lea: Any, send: Any
) -> None:
    ClusterQueue.objects.filter(name="cq-ia").update(team=Team.objects.get(name="ia"))
    pod = {"resources": {"requests": {"nvidia.com/gpu": 1}}, "name": "c"}
    job: dict[str, Any] = {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {
            "name": "large",
            "namespace": "ns-datos",
            "labels": {"kueue.x-k8s.io/queue-name": "lq-datos"},
        },
        "spec": {
            "tasks": [{"replicas": 500, "name": "t", "template": {"spec": {"containers": [pod]}}}]
        },
    }

    def told(queue: str) -> str:
        job["spec"]["queue"] = queue
        answer = send(lea, "POST", PATH + "?dry_run=All", job)
        return json.dumps(answer.json()["results"]).replace(queue, "THE-QUEUE")

    assert "THE-QUEUE" in told("cq-nope")
    assert told("cq-ia") == told("cq-nope")
