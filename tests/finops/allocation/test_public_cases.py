"""Cases from the public trackers of OpenCost and LiteLLM, by their names in ``finops.md`` 8.

T1 stands in ``sources/test_loading_opencost.py`` and ``sources/test_prometheus.py``, T7 and T10 in
``sources/test_litellm.py`` and ``drift/``, for they are about what is read.
"""

from decimal import Decimal
from typing import Any

import pytest

from tests.finops.allocation.months import Document
from tests.finops.allocation.test_rules import amounts, findings, lines

HOUR = {"from": "2026-06-01T00:00:00Z", "to": "2026-06-01T01:00:00Z"}
DAY = {"from": "2026-06-01T00:00:00Z", "to": "2026-06-02T00:00:00Z"}
COSTS = ("cpu", "gpu", "ram", "pv", "network", "lb")


def iron(cluster: str, namespace: str, *costs: Any, **fields: Any) -> Document:
    """A row of OpenCost: cpu, gpu, ram, storage, network, load balancer."""
    named = {f"{name}_cost": str(cost) for name, cost in zip(COSTS, costs, strict=False)}
    return {"cluster": cluster, "namespace": namespace, **HOUR, **named} | fields


def node(
    cluster: str, cpus: Any, gpus: Any, gib: Any, name: str = "n1", **fields: Any
) -> Document:
    row = {"cluster": cluster, "node": name, "flavor": "f", "gpus": gpus, **HOUR}
    return row | {"cpus": cpus, "memory_gib": gib} | fields


def month(names: str, **facts: Any) -> Document:
    """An hour billed by OpenCost's rows, each price 1; teams own the namespaces so named."""
    teams = names.split()
    return {
        "period": {"start": HOUR["from"], "end": HOUR["to"]},
        "policy": {"usage_source": "opencost", "idle": "proportional"},
        "teams": [{"id": team} for team in teams],
        "mappings": [{"kind": "namespace", "value": team, "team": team} for team in teams],
        "prices": [{"flavor": "f", "gpu_hour": "1", "cpu_hour": "1", "gib_hour": "1"}],
    } | facts


def by_account(document: Document) -> dict[str, Decimal]:
    found: dict[str, Decimal] = {}
    for line in lines(document):
        account = line.get("team") or f"[{line['bucket']}]"
        found[account] = found.get(account, Decimal(0)) + Decimal(line["amount"])
    return found


def test_t3_idle_of_a_resource_that_nobody_used_stays_idle_of_that_resource() -> None:
    document = month("a", capacity=[node("c", 12, 12, 7)], iron=[iron("c", "a", 2, 0, 1)])
    assert by_account(document) == {"a": Decimal(19), "[idle_unattributed]": Decimal(12)}
    shares = amounts(document, "line_type")
    assert shares["a idle_share"] == "16.00"
    assert shares["[idle_unattributed] idle_unattributed"] == "12.00"
    assert sum(map(Decimal, shares.values())) == 31


# Kubecost's own world: ns1 in one cluster is shared by all, ns2 is in both, ns3 in the other.
T4 = {
    "capacity": [node("c1", 31, 6, 11), node("c2", 16, 6, 6)],
    "iron": [
        iron("c1", "ns1", 13, 3, 3, 3, 3, 3),
        iron("c1", "ns2", 3, 3, 3, 3, 3, 3),
        iron("c2", "ns2", 3, 3, 3, 3, 3, 3),
        iron("c2", "ns3", 3, 3, 3, 3, 3, 3),
    ],
    "shared": [{"id": "common", "namespace": "ns1", "method": "weighted"}],
}


def test_t4_a_team_pays_the_same_whoever_is_looked_at_beside_it() -> None:
    whole = by_account(month("ns2 ns3", **T4))
    assert whole == {"ns2": Decimal("74.77"), "ns3": Decimal("37.23")}
    assert sum(whole.values()) == 112
    # OpenCost's filter of ns2: its own cost with its part of ns1, and the idle behind both.
    idle = [
        Decimal(line["amount"])
        for line in lines(month("ns2 ns3", **T4))
        if (line.get("team"), line["origin"]) == ("ns2", "idle")
    ]
    assert sum(idle) == Decimal("20.10")  # 20.104, never 25.000
    assert whole["ns2"] - sum(idle) == Decimal("54.67")


NODES = [
    {"cluster": "c", "node": f"node-{n}", "flavor": "f", "gpus": 4, **DAY} for n in ("a", "b")
]
SPARE = {"cluster": "c", "node": "spare", "flavor": "f", "gpus": 4, **DAY}
T5 = [
    # idle by, the nodes, what each comes to
    ("cluster", NODES, {"a": "201.60", "b": "67.20"}),
    ("node", NODES, {"a": "134.40", "b": "134.40"}),
    ("cluster", [*NODES, SPARE], {"a": "302.40", "b": "100.80"}),
    ("node", [*NODES, SPARE], {"a": "134.40", "b": "134.40", "[idle_unattributed]": "134.40"}),
]


@pytest.mark.parametrize(("scope", "nodes", "expected"), T5)
def test_t5_idle_of_a_node_is_not_idle_of_the_cluster(
    scope: str, nodes: list[Document], expected: dict[str, str]
) -> None:
    found = by_account(
        month(
            "a b",
            period={"start": DAY["from"], "end": DAY["to"]},
            policy={"usage_source": "opencost", "idle": "proportional", "idle_scope": scope},
            prices=[{"flavor": "f", "gpu_hour": "1.40"}],
            capacity=nodes,
            iron=[
                iron("c", "a", 0, "100.80", node="node-a", gpu_hours=72, **DAY),
                iron("c", "b", 0, "33.60", node="node-b", gpu_hours=24, **DAY),
            ],
        )
    )
    assert found == {name: Decimal(amount) for name, amount in expected.items()}
    assert sum(found.values()) == len(nodes) * Decimal("134.40")


PRICED = {"model_group": "m", "input_per_million": "0.78", "output_per_million": "0.78"}
T9 = [
    # what the row says, and what is billed for its tokens, and what is found
    ({}, "0.01", ["zero_spend"]),
    ({"cache_hit": True}, "0", []),
    ({"status": "failure"}, "0", []),
    ({"model_group": "unpriced", "prompt_tokens": 1000}, "0", ["no_price"]),
]


@pytest.mark.parametrize(("said", "amount", "found"), T9)
def test_t9_a_streamed_request_without_spend_costs_its_tokens(
    said: Document, amount: str, found: list[str]
) -> None:
    row = {"at": "2026-06-01T00:30:00Z", "team_id": "t", "model_group": "m"}
    row |= {"prompt_tokens": 11_500, "completion_tokens": 500, "spend": "0"}
    document = month(
        "a",
        mappings=[{"kind": "litellm_team", "value": "t", "team": "a"}],
        namespaces=[{"namespace": "out", "mode": "external"}],
        deployments=[
            {"model_group": name, "cluster": "c", "namespace": "out"} for name in ("m", "unpriced")
        ],
        token_prices=[PRICED],
        tokens=[row | said],
    )
    billed = sum(by_account(document).values(), Decimal(0))
    assert billed == Decimal(amount)  # 0.00936
    codes = ("zero_spend", "no_price")
    assert [code for code in codes if findings(document, code)] == found


CLOCKS = [
    # a month of Madrid with a clock change: its hours, and four GPUs at 1.40
    ("2026-10-01T00:00:00+02:00", "2026-11-01T00:00:00+01:00", "4172.00"),
    ("2026-03-01T00:00:00+01:00", "2026-04-01T00:00:00+02:00", "4160.80"),
]


@pytest.mark.parametrize(("start", "end", "amount"), CLOCKS)
def test_a_month_of_a_clock_change_has_745_or_743_hours(start: str, end: str, amount: str) -> None:
    window = {"from": start, "to": end}
    document = month(
        "a",
        period={"start": start, "end": end, "time_zone": "Europe/Madrid"},
        policy={"idle": "separate"},
        prices=[{"flavor": "f", "gpu_hour": "1.40"}],
        capacity=[{"cluster": "c", "node": "n", "flavor": "f", "gpus": 4, **window}],
    )
    assert by_account(document) == {"[idle]": Decimal(amount)}


def test_a_week_with_two_days_without_data_costs_seven_days() -> None:
    week = {"from": "2026-06-01T00:00:00Z", "to": "2026-06-08T00:00:00Z"}
    days = {
        n: {"from": f"2026-06-0{n}T00:00:00Z", "to": f"2026-06-0{n + 1}T00:00:00Z"}
        for n in range(1, 8)
    }
    loaded = [n for n in days if n not in (3, 6)]
    document = month(
        "a",
        period={"start": week["from"], "end": week["to"]},
        prices=[{"flavor": "f", "gpu_hour": "1.40"}],
        capacity=[{"cluster": "c", "node": "n", "flavor": "f", "gpus": 4, **week}],
        iron=[iron("c", "a", 0, "134.40", gpu_hours=96, **days[n]) for n in loaded],
        loads=[{"source": "iron", **days[n]} for n in loaded],
    )
    assert by_account(document) == {"a": Decimal("672.00"), "[unmeasured]": Decimal("268.80")}
    assert sum(by_account(document).values()) == Decimal("940.80")
    (gap,) = findings(document, "missing_coverage")
    assert (gap["level"], Decimal(gap["numbers"]["hours"])) == ("critical", 48)
