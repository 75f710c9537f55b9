"""Contradictions among facts whose fields are each right: the cross checks of FORMAT.md 1."""

from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator, Sequence

from finops.allocation.facts import Capacity, Facts, Iron, SharedItem, Usage
from finops.allocation.places import BUCKETS, IDLE_NAMESPACE
from finops.allocation.problems import Problem
from finops.allocation.timeline import Coverage, Dated, InForce, inside, span

Keyed = Iterable[tuple[str, Hashable]]


def contradictions(facts: Facts) -> Iterator[Problem]:
    """Yield every contradiction, by path and code, in no order."""
    yield from _duplicates(facts)
    yield from overlaps(facts)
    yield from _teams(facts)
    yield from _currencies(facts)
    yield from _prices(facts)
    yield from _shared(facts)
    yield from _mappings(facts)
    yield from _tokens(facts)
    yield from _for_policy(facts)
    yield from (
        Problem(f"adjustments[{index}].amount", "not_cents")
        for index, row in enumerate(facts.adjustments)
        if row.amount * 100 % 1
    )


# ---- rows of one list ------------------------------------------------------------------------
def _duplicates(facts: Facts) -> Iterator[Problem]:
    yield from _repeated("teams", (team.id for team in facts.teams))
    yield from _repeated("shared", (item.id for item in facts.shared))
    yield from _repeated("adjustments", (row.id for row in facts.adjustments))
    yield from _repeated("tokens", (row.request_id for row in facts.tokens))
    yield from _repeated(
        "usage", ((u.cluster, u.workload, u.node, u.flavor, u.start) for u in facts.usage)
    )


def _repeated(name: str, keys: Iterable[Hashable]) -> Iterator[Problem]:
    seen: set[Hashable] = set()
    for index, key in enumerate(keys):
        if key is None:
            continue
        if key in seen:
            yield Problem(f"{name}[{index}]", "duplicate")
        seen.add(key)


def overlaps(facts: Facts) -> Iterator[Problem]:
    """Yield the rows whose window shares time with an earlier one of the same key."""
    keyed: dict[str, tuple[Sequence[Dated], list[Hashable]]] = {
        "mappings": (
            facts.mappings,
            [(row.kind, row.cluster, row.key, row.value) for row in facts.mappings],
        ),
        "namespaces": (facts.namespaces, [(n.cluster, n.namespace) for n in facts.namespaces]),
        "deployments": (facts.deployments, [row.model_group for row in facts.deployments]),
        "prices": (facts.prices, [row.flavor for row in facts.prices]),
        "token_prices": (facts.token_prices, [row.model_group for row in facts.token_prices]),
        "quotas": (facts.quotas, [(q.cluster, q.queue, q.flavor) for q in facts.quotas]),
        "capacity": (facts.capacity, [(c.cluster, c.node, c.flavor) for c in facts.capacity]),
    }
    for name, (rows, keys) in keyed.items():
        taken: dict[Hashable, Coverage] = defaultdict(Coverage)
        for index, (row, key) in enumerate(zip(rows, keys, strict=True)):
            if taken[key].add(span(row)):
                yield Problem(f"{name}[{index}]", "overlap")


# ---- names -----------------------------------------------------------------------------------
def _teams(facts: Facts) -> Iterator[Problem]:
    known = {team.id for team in facts.teams}
    for path, team in _team_names(facts):
        if team is not None and team not in known:
            yield Problem(path, "unknown_team")
    for index, row in enumerate(facts.teams):
        if row.id in BUCKETS:
            yield Problem(f"teams[{index}].id", "reserved")


def _team_names(facts: Facts) -> Iterator[tuple[str, str | None]]:
    for index, mapping in enumerate(facts.mappings):
        yield f"mappings[{index}].team", mapping.team
    for index, adjustment in enumerate(facts.adjustments):
        yield f"adjustments[{index}].team", adjustment.team
    for index, use in enumerate(facts.usage):
        yield f"usage[{index}].reclaimed_by", use.reclaimed_by
    for index, item in enumerate(facts.shared):
        for team in item.percentages:
            yield f"shared[{index}].percentages.{team}", team


def _currencies(facts: Facts) -> Iterator[Problem]:
    for name in ("prices", "iron", "tokens", "token_prices", "shared", "adjustments"):
        for index, row in enumerate(getattr(facts, name)):
            if row.currency is not None and row.currency != facts.period.currency:
                yield Problem(f"{name}[{index}].currency", "currency_mismatch")


# ---- money -----------------------------------------------------------------------------------
def _prices(facts: Facts) -> Iterator[Problem]:
    prices = InForce((price.flavor, price) for price in facts.prices)
    listed: dict[str, Sequence[Capacity | Usage]] = {
        "capacity": facts.capacity,
        "usage": facts.usage,
    }
    for name, rows in listed.items():
        for index, row in enumerate(rows):
            window = inside(row, facts.period)
            if window is not None and not prices.covers(row.flavor, window):
                yield Problem(f"{name}[{index}].flavor", "price_missing")


def _shared(facts: Facts) -> Iterator[Problem]:
    for index, item in enumerate(facts.shared):
        code = _percentages(item)
        if code:
            yield Problem(f"shared[{index}].percentages", code)
        code = _exactly_one(item.amount, item.namespace)
        if code:
            yield Problem(f"shared[{index}].amount", code)


def _percentages(item: SharedItem) -> str | None:
    if item.method != "fixed":
        return "not_allowed" if item.percentages else None
    return None if sum(item.percentages.values()) == 100 else "not_100"  # noqa: PLR2004


def _exactly_one(first: object, second: object) -> str | None:
    if (first is None) != (second is None):
        return None
    return "required" if first is None else "not_allowed"


# ---- what goes together ----------------------------------------------------------------------
def _mappings(facts: Facts) -> Iterator[Problem]:
    for index, mapping in enumerate(facts.mappings):
        needs_key = mapping.kind in {"label", "annotation"}
        if needs_key != (mapping.key is not None):
            yield Problem(f"mappings[{index}].key", "required" if needs_key else "not_allowed")
        if mapping.kind == "litellm_team" and mapping.cluster is not None:
            yield Problem(f"mappings[{index}].cluster", "not_allowed")
    for index, load in enumerate(facts.loads):
        if load.source == "tokens" and load.cluster is not None:
            yield Problem(f"loads[{index}].cluster", "not_allowed")


def _tokens(facts: Facts) -> Iterator[Problem]:
    for index, row in enumerate(facts.tokens):
        code = _exactly_one(row.at, row.day)
        if code:
            yield Problem(f"tokens[{index}].at", code)


def _for_policy(facts: Facts) -> Iterator[Problem]:
    policy = facts.policy
    is_ours = policy.usage_source == "scheduler"
    if policy.idle in {"owner", "owner_net"} and not is_ours:
        yield Problem("policy.idle", "needs_scheduler")
    if policy.idle_scope == "node":
        name = "usage" if is_ours else "iron"
        for index in _without_node(facts.usage) if is_ours else _without_node(facts.iron):
            yield Problem(f"{name}[{index}].node", "required")
    if policy.token_weight == "gpu_seconds":  # noqa: S105
        yield from _throughputs(facts)


def _throughputs(facts: Facts) -> Iterator[Problem]:
    for index, deployment in enumerate(facts.deployments):
        for name in ("tokens_per_second", "gpus"):
            if not getattr(deployment, name):
                yield Problem(f"deployments[{index}].{name}", "required")


def _without_node(rows: Sequence[Usage | Iron]) -> Iterator[int]:
    for index, row in enumerate(rows):
        if row.node is None and (isinstance(row, Usage) or _has_pool(row)):
            yield index


def _has_pool(row: Iron) -> bool:
    has_cost = bool(row.gpu_cost or row.cpu_cost or row.ram_cost)
    return has_cost and row.namespace != IDLE_NAMESPACE
