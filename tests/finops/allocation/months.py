"""Months as documents of facts: the articles' one, and random ones for laws."""

from datetime import UTC, datetime, timedelta
from fractions import Fraction
from typing import Any

from hypothesis import strategies as st

Document = dict[str, Any]

START = datetime(2026, 3, 27, tzinfo=UTC)  # the clocks of Madrid change on the 29th
HOURS = 96
TEAMS = ("ia", "datos", "web")
CLUSTERS = ("c1", "c2")
QUEUES = ("qa", "qb", "qc")
NAMESPACES = ("na", "nb", "llm")
FLAVORS = ("h100", "l40s")
ZONES = ("UTC", "Europe/Madrid", "Asia/Kolkata", "America/New_York")


def at(hour: float) -> str:
    """An instant so many hours after the beginning."""
    return (START + timedelta(hours=hour)).isoformat()


# ---- the articles' month -----------------------------------------------------------------------
def june(idle: str = "separate", **policy: str) -> Document:
    """Four GPUs for 720 hours at 1.40: 1,080, 432 and 252 of the hours are used."""
    window = {"from": "2026-06-01T00:00:00Z", "to": "2026-07-01T00:00:00Z"}
    used = {"datos": "1.5", "ia": "0.6", "plataforma": "0.35"}
    nominal = {"datos": 2, "ia": 1, "plataforma": 1}
    return {
        "period": {"start": window["from"], "end": window["to"]},
        "policy": {"idle": idle, **policy},
        "teams": [{"id": team} for team in used],
        "mappings": [{"kind": "queue", "value": f"cq-{team}", "team": team} for team in used],
        "prices": [{"flavor": "h100", "gpu_hour": "1.40"}],
        "capacity": [{"cluster": "c1", "node": "n1", "flavor": "h100", "gpus": 4, **window}],
        "quotas": [
            {
                "cluster": "c1",
                "queue": f"cq-{team}",
                "cohort": "main",
                "flavor": "h100",
                "nominal": gpus,
            }
            for team, gpus in nominal.items()
        ],
        "usage": [
            {
                "workload": f"work-of-{team}",
                "cluster": "c1",
                "queue": f"cq-{team}",
                "flavor": "h100",
                "gpus": gpus,
                **window,
            }
            for team, gpus in used.items()
        ],
    }


# ---- random months -----------------------------------------------------------------------------
def _numbers(*texts: str) -> st.SearchStrategy[str]:
    return st.sampled_from(texts)


def _some(values: tuple[str, ...]) -> st.SearchStrategy[str | None]:
    return st.sampled_from((None, *values))


@st.composite
def windows(draw: Any) -> dict[str, str]:
    """A window on the hour; it may begin before the period, or go on after it."""
    start = draw(st.integers(-12, HOURS - 1))
    end = draw(st.integers(start + 1, HOURS + 12))
    return {"from": at(start), "to": at(end)}


@st.composite
def _in_halves(draw: Any, row: st.SearchStrategy[Document]) -> list[Document]:
    """One row for all time, or two that follow each other."""
    if draw(st.booleans()):
        return [draw(row)]
    cut = at(draw(st.integers(1, HOURS - 1)))
    return [draw(row) | {"to": cut}, draw(row) | {"from": cut}]


@st.composite
def _keyed(draw: Any, keys: list[Document], row: st.SearchStrategy[Document]) -> list[Document]:
    """For some of the keys, one row or two that follow each other."""
    chosen = [key for key in keys if draw(st.booleans())]
    return [key | part for key in chosen for part in draw(_in_halves(row))]


_MAPPED = st.fixed_dictionaries({"team": st.sampled_from(TEAMS)})
_MAPPING_KEYS: list[Document] = [
    *({"kind": "queue", "value": queue} for queue in QUEUES),
    {"kind": "queue", "value": "qa", "cluster": "c2"},
    *({"kind": "namespace", "value": name} for name in NAMESPACES),
    {"kind": "label", "key": "team", "value": "x"},
    {"kind": "annotation", "key": "owner", "value": "y"},
    {"kind": "litellm_team", "value": "t1"},
    {"kind": "litellm_team", "value": "t2"},
]
_PRICE = st.fixed_dictionaries(
    {
        "gpu_hour": _numbers("1.40", "0", "2.333"),
        "cpu_hour": _numbers("0", "0.0251"),
        "gib_hour": _numbers("0", "0.003"),
    }
)
_QUOTA = st.fixed_dictionaries(
    {
        "nominal": _numbers("0", "1", "2", "3.5"),
        "cohort": st.sampled_from((None, "main", "main", "side")),
        "borrowing_limit": st.sampled_from((None, "1")),
        "lending_limit": st.sampled_from((None, "0", "0.75", "1")),
    }
)
_MODE = st.fixed_dictionaries(
    {"mode": st.sampled_from(("direct", "serving_shared", "serving_priced", "external"))}
)
_CAPACITY = st.fixed_dictionaries(
    {
        "gpus": _numbers("2", "4"),
        "cpus": _numbers("0", "64"),
        "memory_gib": _numbers("0", "512"),
        "from": st.just(at(-1)),
    }
)
POLICIES = st.fixed_dictionaries(
    {
        "usage_source": st.sampled_from(("scheduler", "scheduler", "opencost")),
        "idle": st.sampled_from(
            ("separate", "hidden", "proportional", "even", "owner", "owner_net")
        ),
        "idle_scope": st.sampled_from(("cluster", "node")),
        "idle_basis": st.sampled_from(("period", "day")),
        "preempted": st.sampled_from(("borrower", "not_charged", "reclaimer")),
        "borrow_surcharge": _numbers("1", "1.25", "0.9"),
        "lender_credit": _numbers("0", "0.5"),
        "token_weight": st.sampled_from(("spend", "tokens", "gpu_seconds")),
        "tokens_without_team": st.sampled_from(("bucket", "owner")),
        "detail": st.sampled_from(("none", "workload")),
    }
).map(
    lambda policy: (
        policy | {"idle": "even"}
        if policy["usage_source"] == "opencost" and policy["idle"].startswith("owner")
        else policy
    )
)


@st.composite
def _usage(draw: Any, number: int) -> Document:
    return {
        "workload": f"w{number % 7}",
        "cluster": draw(st.sampled_from(CLUSTERS)),
        "queue": draw(_some(QUEUES)),
        "namespace": draw(_some(NAMESPACES)),
        "labels": draw(st.sampled_from(({}, {"team": "x"}))),
        "annotations": draw(st.sampled_from(({}, {"owner": "y"}))),
        "node": f"n{number}",
        "flavor": draw(st.sampled_from(FLAVORS)),
        "gpus": draw(_numbers("0", "1", "2", "0.5", "1.3")),
        "cpus": draw(_numbers("0", "8")),
        "memory_gib": draw(_numbers("0", "32.5")),
        "preempted": draw(st.booleans()),
        "reclaimed_by": draw(_some(TEAMS)),
        **draw(windows()),
    }


@st.composite
def _iron(draw: Any) -> Document:
    names = (*NAMESPACES, "__idle__", "__unmounted__", "__unallocated__")
    costs = ("gpu_cost", "cpu_cost", "ram_cost", "pv_cost", "network_cost", "lb_cost")
    return {
        "cluster": draw(st.sampled_from(CLUSTERS)),
        "node": draw(st.sampled_from(("n1", "n2"))),
        "namespace": draw(_some(names)),
        "labels": draw(st.sampled_from(({}, {"team": "x"}))),
        "gpu_hours": draw(_numbers("0", "24", "7.5")),
        **{name: draw(_numbers("0", "33.605", "-6.72", "0.001")) for name in costs},
        **draw(windows()),
    }


@st.composite
def _token(draw: Any) -> Document:
    return {
        "at": at(draw(st.integers(-1, HOURS))),
        "team_id": draw(st.sampled_from((None, "", "t1", "t2", "gone"))),
        "model_group": draw(st.sampled_from(("m1", "m2", "m3"))),
        "tags": draw(st.lists(st.sampled_from(("a", "b")), max_size=3)),
        "prompt_tokens": draw(st.sampled_from((0, 1000, 2_000_000))),
        "completion_tokens": draw(st.sampled_from((0, 333))),
        "spend": draw(_numbers("0", "1.005", "12")),
        "cache_hit": draw(st.sampled_from((False, False, True))),
        "status": draw(st.sampled_from(("success", "success", "failure"))),
    }


@st.composite
def _shared(draw: Any) -> list[Document]:
    found: list[Document] = []
    for name in ("s1", "s2"):
        method = draw(st.sampled_from((None, "even", "weighted", "fixed")))
        if method is None:
            continue
        item: Document = {"id": name, "method": method}
        item |= draw(st.sampled_from(({"amount": "100.01"}, {"namespace": "nb"})))
        if method == "fixed":
            item["percentages"] = {"ia": "33.3", "datos": "66.7"}
        found.append(item | draw(st.sampled_from(({}, {"to": at(31)}))))
    return found


@st.composite
def months(draw: Any) -> Document:
    """A month with everything in it that a bill knows."""
    seen = range(draw(st.integers(0, 8)))
    deployed = [{"model_group": name} for name in ("m1", "m2")]
    return {
        "period": {
            "start": at(0),
            "end": at(HOURS),
            "time_zone": draw(st.sampled_from(ZONES)),
        },
        "policy": draw(POLICIES),
        "teams": [{"id": name, "accounting_mode": "chargeback"} for name in TEAMS],
        "mappings": draw(_keyed(_MAPPING_KEYS, _MAPPED)),
        "namespaces": draw(_keyed([{"namespace": name} for name in NAMESPACES], _MODE)),
        "deployments": draw(
            _keyed(
                deployed,
                st.fixed_dictionaries(
                    {
                        "cluster": st.sampled_from(CLUSTERS),
                        "namespace": st.sampled_from(("llm", "na")),
                        "tokens_per_second": _numbers("2000", "700"),
                        "gpus": _numbers("4", "1"),
                    }
                ),
            )
        ),
        "prices": [
            {"flavor": flavor} | row for flavor in FLAVORS for row in draw(_in_halves(_PRICE))
        ],
        "capacity": draw(
            _keyed(
                [
                    {"cluster": cluster, "node": node, "flavor": flavor}
                    for cluster in CLUSTERS
                    for node, flavor in (("n1", "h100"), ("n2", "h100"), ("n3", "l40s"))
                ],
                _CAPACITY,
            )
        ),
        "quotas": draw(
            _keyed(
                [
                    {"cluster": "c1", "queue": queue, "flavor": flavor}
                    for queue in QUEUES
                    for flavor in FLAVORS
                ],
                _QUOTA,
            )
        ),
        "usage": [draw(_usage(number)) for number in seen],
        "iron": draw(st.lists(_iron(), max_size=4)),
        "tokens": draw(st.lists(_token(), max_size=6)),
        "token_prices": [
            {"model_group": "m1", "input_per_million": "0.78", "output_per_million": "0.8"}
        ],
        "loads": draw(
            st.sampled_from(
                (
                    [],
                    [{"source": "usage", "from": at(-5), "to": at(40)}],
                    [{"source": "iron", "cluster": "c1", "from": at(10), "to": at(200)}],
                )
            )
        ),
        "shared": draw(_shared()),
        "adjustments": [
            {"id": "a1", "team": "ia", "amount": draw(_numbers("0", "-3.17")), "reason": "late"}
        ],
    }


def exact(text: str | int) -> Fraction:
    """A number of a document."""
    return Fraction(text)
