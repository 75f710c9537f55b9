"""What there is: machines, kinds of nodes, cohorts and queues, written as manifests."""

from typing import Any

import yaml

from queues.manifests import kueue

Document = dict[str, Any]
POOL_LEVELS = ("gpuplatform.io/block", "gpuplatform.io/rack", "kubernetes.io/hostname")
GPU = "nvidia.com/gpu"
NO_LIMIT = None


class _Plain(yaml.SafeDumper):
    """Write every value out: the reader refuses aliases."""

    def ignore_aliases(self, data: Any) -> bool:
        """Return True: never an alias."""
        del data
        return True


def dump(documents: list[Document]) -> str:
    """Return documents as one YAML text."""
    return yaml.dump_all(documents, Dumper=_Plain, sort_keys=False)


def articles() -> list[Document]:
    """Return the articles' three teams on their node of 4 GPUs, lenders allowed to reclaim."""
    quotas = {"datos": (2, 2, None), "ia": (1, None, 1), "plataforma": (1, 3, None)}
    return [
        node("h100-node-01", gpus=4, labels={"accelerator": "h100-sxm"}, cpu=120, memory="960Gi"),
        flavor("h100-sxm", {"accelerator": "h100-sxm"}),
        *(namespace(team) for team in quotas),
        *(
            queue(team, "llm-platform", {"h100-sxm": limits}, reclaim="LowerPriority")
            for team, limits in quotas.items()
        ),
        *(local_queue(team) for team in quotas),
    ]


def pool() -> list[Document]:
    """Return 64 nodes x 8 GPUs in three levels, and six teams in two cohorts, one nested."""
    h100, a100 = "h100-pool", "a100-pool"
    return [
        {
            "apiVersion": "kueue.x-k8s.io/v1beta2",
            "kind": "Topology",
            "metadata": {"name": "pool"},
            "spec": {"levels": [{"nodeLabel": label} for label in POOL_LEVELS]},
        },
        flavor(h100, {"gpuplatform.io/pool": "h100"}, topology="pool"),
        flavor(a100, {"gpuplatform.io/pool": "a100"}, topology="pool"),
        priority("research", 0),
        priority("standard", 50),
        priority("production", 100),
        cohort("company", {h100: (32, None, None)}, fairness="history"),
        cohort("research", {}, parent="company"),
        *(namespace(team) for team in ("vision", "speech", "bio", "search", "recsys", "robotics")),
        queue("search", "company", {h100: (96, 32, 64)}),
        queue("recsys", "company", {h100: (64, 32, NO_LIMIT), a100: (32, 16, NO_LIMIT)}),
        queue("robotics", "company", {a100: (64, 32, NO_LIMIT)}),
        queue("vision", "research", {h100: (96, 64, NO_LIMIT)}, safe_s=3_600),
        queue("speech", "research", {h100: (64, 32, NO_LIMIT)}),
        queue("bio", "research", {h100: (32, 32, NO_LIMIT), a100: (32, 32, NO_LIMIT)}),
        *(
            local_queue(team)
            for team in ("vision", "speech", "bio", "search", "recsys", "robotics")
        ),
        *pool_nodes(),
    ]


def pool_nodes() -> list[Document]:
    """Return four blocks of four racks of four nodes; the last block has A100."""
    return [
        node(
            f"gpu-{block}{rack}-{slot}",
            gpus=8,
            labels={
                "gpuplatform.io/pool": "a100" if block == "d" else "h100",
                "gpuplatform.io/block": f"block-{block}",
                "gpuplatform.io/rack": f"rack-{block}{rack}",
            },
        )
        for block in "abcd"
        for rack in range(1, 5)
        for slot in range(1, 5)
    ]


def node(
    name: str, *, gpus: int, labels: dict[str, str], cpu: int = 192, memory: str = "2000Gi"
) -> Document:
    """Return one ready machine."""
    amounts = {"cpu": str(cpu), "memory": memory, GPU: str(gpus), "pods": "110"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {**labels, "kubernetes.io/hostname": name}},
        "status": {
            "capacity": amounts,
            "allocatable": amounts,
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }


def flavor(name: str, labels: dict[str, str], topology: str = "") -> Document:
    """Return a kind of node."""
    spec: Document = {"nodeLabels": labels}
    if topology:
        spec["topologyName"] = topology
    return _kueue("ResourceFlavor", name, spec)


def priority(name: str, value: int) -> Document:
    """Return a named priority; its value stands at the top, not in a spec."""
    return {
        "apiVersion": "kueue.x-k8s.io/v1beta2",
        "kind": "WorkloadPriorityClass",
        "metadata": {"name": name},
        "value": value,
    }


def namespace(team: str) -> Document:
    """Return a team's namespace."""
    return {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"name": f"ns-{team}", "labels": {"gpuplatform.io/team": team}},
    }


Limits = tuple[int, int | None, int | None]  # nominal, borrowing limit, lending limit


def cohort(name: str, quotas: dict[str, Limits], parent: str = "", fairness: str = "") -> Document:
    """Return a cohort with its own quota; the top one may say by what its tree shares."""
    spec: Document = {"parentName": parent} if parent else {}
    if quotas:
        spec["resourceGroups"] = [_group(quotas)]
    document = _kueue("Cohort", name, spec)
    if fairness:
        document["metadata"]["annotations"] = {kueue.FAIRNESS: fairness}
    return document


def queue(
    team: str, cohort: str, quotas: dict[str, Limits], reclaim: str = "Any", safe_s: int = 0
) -> Document:
    """Return a team's ClusterQueue ``cq-<team>`` with the recommended rights to evict.

    ``safe_s``: for how many seconds its work is safe from eviction.
    """
    document = _kueue(
        "ClusterQueue",
        f"cq-{team}",
        {
            "cohortName": cohort,
            "queueingStrategy": "BestEffortFIFO",
            "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": f"ns-{team}"}},
            "resourceGroups": [_group(quotas)],
            "preemption": {
                "reclaimWithinCohort": reclaim,
                "withinClusterQueue": "LowerPriority",
            },
        },
    )
    document["metadata"]["labels"] = {"gpuplatform.io/team": team}
    if safe_s:
        document["metadata"]["annotations"] = {kueue.MINIMUM_RUNTIME: str(safe_s)}
    return document


def local_queue(team: str) -> Document:
    """Return the door from a team's namespace to its queue."""
    document = _kueue("LocalQueue", f"lq-{team}", {"clusterQueue": f"cq-{team}"})
    document["metadata"]["namespace"] = f"ns-{team}"
    return document


def _group(quotas: dict[str, Limits]) -> Document:
    return {
        "coveredResources": [GPU],
        "flavors": [
            {"name": name, "resources": [_quota(*limits)]} for name, limits in quotas.items()
        ],
    }


def _quota(nominal: int, borrowing: int | None, lending: int | None) -> Document:
    quota: Document = {"name": GPU, "nominalQuota": nominal}
    if borrowing is not None:
        quota["borrowingLimit"] = borrowing
    if lending is not None:
        quota["lendingLimit"] = lending
    return quota


def _kueue(kind: str, name: str, spec: Document) -> Document:
    return {
        "apiVersion": "kueue.x-k8s.io/v1beta2",
        "kind": kind,
        "metadata": {"name": name},
        "spec": spec,
    }
