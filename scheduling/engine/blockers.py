"""Blockers with their numbers: what the quota and what the nodes lack for one gang."""

import heapq
from collections.abc import Iterable, Mapping
from itertools import product

from scheduling.engine.atlas import Atlas
from scheduling.engine.books import Books
from scheduling.engine.capacity import Rooms
from scheduling.engine.feasibility import Finding, main_resource
from scheduling.engine.flavors import Option
from scheduling.engine.placement import fitting_pods
from scheduling.engine.plan import Blocker
from scheduling.engine.quota import QuotaLedger
from scheduling.engine.shortage import shortage
from scheduling.engine.snapshot import FlavorResource, PodSet, Workload
from scheduling.engine.terms import BlockerCode, DiagnosticCode
from scheduling.engine.together import assign_unit, units_of
from scheduling.engine.tree import Kind, QuotaKey
from scheduling.engine.usage import by_importance, demand, device_request, without_island

# Causes, as the registry of reasons names them.
KEPT, TOO_SMALL, TOO_SMALL_KEPT = "Kept", "TooSmall", "TooSmallKept"
Facts = dict[str, str | int]
Look = tuple[PodSet, Option]
MOST_HOLDERS = 20  # named in one blocker


def impossible(finding: Finding) -> Blocker | None:
    """Return a finding as the blocker IMPOSSIBLE; None for one that only warns."""
    if not finding.code.startswith("NEVER_FITS"):
        return None
    numbers = finding.numbers
    available = next((numbers[k] for k in ("ceiling", "have", "largest") if k in numbers), 0)
    return Blocker(
        BlockerCode.IMPOSSIBLE,
        str(numbers.get("resource", "")),
        int(numbers["need"]),
        int(available),
        str(numbers.get("queue") or numbers.get("level") or ""),
        {"sub_code": finding.code.value, **numbers},
    )


def never_fits_queue(blocker: Blocker) -> bool:
    """Return whether the blocker says that the queue's ceiling is too low."""
    return blocker.facts.get("sub_code") == DiagnosticCode.NEVER_FITS_QUEUE


def quota_blockers(
    books: Books, queue: QuotaKey, fr: FlavorResource, needed: int
) -> list[Blocker]:
    """Return why ``needed`` of one column is not to be had: own quota, limit, cohort.

    Told from the account in which less is left; what the other one has more is kept for others.
    """
    ledger = min((s.ledger for s in books.both), key=lambda one: one.available(queue, fr))
    nominal, used = ledger.promised(queue, fr), ledger.used(queue, fr)
    facts: Facts = {"flavor": fr.flavor, "nominal": nominal, "used": used}
    free = books.now.ledger.available(queue, fr)
    kept = max(0, free) - max(0, ledger.available(queue, fr))
    ceiling = ledger.potential(queue, fr)
    if needed > ceiling:
        never: Facts = {"sub_code": DiagnosticCode.NEVER_FITS_QUEUE.value, **facts}
        return [_short(BlockerCode.IMPOSSIBLE, fr, needed, ceiling, queue.name, never)]
    if used + needed <= nominal:
        return [_cohort_blocker(books, ledger, queue, fr, needed, kept)]
    own_kept = used - books.now.ledger.used(queue, fr)
    facts |= _own_lack(used, nominal, needed, min(kept, own_kept))
    own = _short(BlockerCode.QUOTA_NOMINAL, fr, needed, nominal - used, queue.name, facts)
    if ledger.nodes[queue].parent is None:
        return [own]
    found = [own]
    if limit := _limit_blocker(ledger, books.now.ledger, queue, fr, needed):
        found.append(limit)
    # What the limit would allow is not there while the lenders use their own.
    if limit is None or max(0, ledger.available(queue, fr)) < (limit.available or 0):
        found.append(_cohort_blocker(books, ledger, queue, fr, needed, kept))
    return found


def _kept(amount: int) -> Facts:
    """Return the facts of what is free and kept for work that goes first."""
    return {"cause": KEPT, "kept": amount} if amount > 0 else {}


def _own_lack(used: int, nominal: int, needed: int, kept: int) -> Facts:
    """Return the facts of what the own quota lacks: what has to end of all that is held.

    What is held may be more than the quota (loans, debts); then no more than all can end, and a
    request larger than the whole quota fits with a loan at best.
    """
    facts = _kept(kept)
    if needed > nominal:
        return {**facts, "cause": TOO_SMALL_KEPT if facts else TOO_SMALL}
    return {**facts, "missing": used + needed - nominal}


def _limit_blocker(
    ledger: QuotaLedger, now: QuotaLedger, queue: QuotaKey, fr: FlavorResource, needed: int
) -> Blocker | None:
    """Return the lowest borrowing limit on the way up that the request would pass.

    What lies below it in the account of ``now`` beyond that is kept for others.
    """
    remaining, spare_now = needed, 0
    for node in ledger.path(queue):
        room, spare = ledger.borrowing_room(node, fr), ledger.spare(node, fr)
        if room is not None and remaining > spare + room:
            limit = ledger.quota(node, fr).borrowing_limit or 0
            facts: Facts = {"flavor": fr.flavor, "limit": limit, "kind": node.kind.value}
            available = spare + room + needed - remaining
            below = spare_now + now.spare(node, fr) + (now.borrowing_room(node, fr) or 0)
            facts |= _kept(below - max(0, available))
            return _short(BlockerCode.BORROW_LIMIT, fr, needed, available, node.name, facts)
        remaining, spare_now = remaining - spare, spare_now + now.spare(node, fr)
    return None


def _cohort_blocker(  # noqa: PLR0917 - the same as those above ask for
    books: Books,
    ledger: QuotaLedger,
    queue: QuotaKey,
    fr: FlavorResource,
    needed: int,
    kept: int,
) -> Blocker:
    """Blame the lenders where they use their own quota, else the cohort as a whole.

    The holders are those of now, the asking queue among them: what is only kept for somebody is
    told apart (``kept``), and both with what is left make up the cohort.
    """
    root = ledger.root(queue)
    queues = [node for node in ledger.members(root) if node.kind is Kind.QUEUE]
    others = [node for node in queues if node != queue and ledger.used(node, fr)]
    code = BlockerCode.LENDER_BUSY
    if not others or any(ledger.borrowed(node, fr) for node in (queue, *others)):
        code = BlockerCode.COHORT_EXHAUSTED
    now = books.now.ledger
    held = {node: amount for node in queues if (amount := now.used(node, fr))}
    facts: Facts = {"flavor": fr.flavor, "holders": _holders(held), **_kept(kept)}
    return _short(code, fr, needed, ledger.available(queue, fr), root.name, facts)


def _holders(used: Mapping[QuotaKey, int]) -> str:
    """Return who holds how much; of very many those who hold most, and the others as a sum.

    What each of a hundred waiting gangs says is a row of its own: it must not name a thousand.
    """
    named = list(used.items())
    if len(used) > MOST_HOLDERS:
        most = set(heapq.nlargest(MOST_HOLDERS, used, key=lambda node: (used[node], node.name)))
        named = [(node, amount) for node, amount in named if node in most]
    parts = [f"{node.name}: {amount}" for node, amount in named]
    rest = sum(used.values()) - sum(amount for _, amount in named)
    return ", ".join([*parts, *([f"+{len(used) - len(parts)}: {rest}"] if rest else [])])


def _short(  # noqa: PLR0917 - the fields of a blocker, in its order
    code: BlockerCode, fr: FlavorResource, needed: int, available: int, where: str, facts: Facts
) -> Blocker:
    return Blocker(code, fr.resource, needed, max(0, available), where, facts)


def room_blockers(
    atlas: Atlas, rooms: Rooms, workload: Workload, chosen: Mapping[str, Option]
) -> list[Blocker]:
    """Return why the nodes of the chosen flavors cannot take the gang as a whole."""
    looks = [(p, chosen[p.name]) for p in workload.pod_sets if p.name in chosen and p.count]
    looks = [(p, o) for p, o in looks if not atlas.suitable(p, o.values()).quota_only]
    if not looks:
        return []
    domain = next((b for b in (_domain(atlas, rooms, u) for u in _units(looks)) if b), None)
    return [*_taints(atlas, looks), *([domain] if domain else [_gang(atlas, rooms, looks)])]


def _units(looks: Iterable[Look]) -> list[list[Look]]:
    """Return the looks in the units in which they are placed."""
    by_name = {pod_set.name: (pod_set, option) for pod_set, option in looks}
    units = units_of(pod_set for pod_set, _ in by_name.values())
    return [[by_name[pod_set.name] for pod_set in unit] for unit in units]


def _taints(atlas: Atlas, looks: Iterable[Look]) -> Iterable[Blocker]:
    for pod_set, option in looks:
        suitable = atlas.suitable(pod_set, option.values())
        if not suitable.nodes and suitable.taint:
            facts: Facts = {"taint": suitable.taint, "pod_set": pod_set.name}
            yield Blocker(BlockerCode.TAINT, where=_names(option), facts=facts)


def _domain(atlas: Atlas, rooms: Rooms, unit: list[Look]) -> Blocker | None:
    """Return the blocker of a unit that would fit if its pods need not stand together."""
    for pod_set, option in unit:
        if fitting_pods(atlas, rooms, pod_set, option.values()) < pod_set.count:
            return None
    pod_sets = tuple(pod_set for pod_set, _ in unit)
    lack = shortage(atlas, rooms, pod_sets, [option for _, option in unit])
    if lack is None:
        return None
    resource = main_resource(lack.pod_sets)
    need = demand(lack.pod_sets)[resource]
    facts: Facts = {"pods": lack.pods, "fits": lack.fits, "pod_set": lack.pod_sets[0].name}
    return Blocker(
        BlockerCode.TOPOLOGY_NO_DOMAIN,
        resource,
        need,
        need * lack.fits // lack.pods,
        lack.level,
        {**facts, **lack.facts},
    )


def _gang(atlas: Atlas, rooms: Rooms, looks: list[Look]) -> Blocker:
    """Return GANG_NO_FIT with the scarcest resource, or FRAGMENTED if the sums suffice."""
    pod_sets = [pod_set for pod_set, _ in looks]
    need = demand(pod_sets)
    names = {n for p, o in looks for n in atlas.suitable(p, o.values()).nodes}
    free = {r: _free(rooms, names, r) for r in need}
    pods = sum(pod_set.count for pod_set in pod_sets)
    fits = min(_fits(atlas, rooms, looks), pods - 1)  # not all, for the gang does not
    facts: Facts = {"pods": pods, "fits": fits, "nodes": len(names), **_excluded(atlas, looks)}
    where = _names(*(option for _, option in looks))
    short = [resource for resource in by_importance(need) if free[resource] < need[resource]]
    if short:
        scarce = short[0]
        return Blocker(
            BlockerCode.GANG_NO_FIT, scarce, need[scarce], max(0, free[scarce]), where, facts
        )
    resource = main_resource(pod_sets)
    facts["free"] = free[resource]
    far = [(without_island(pod_set), option) for pod_set, option in looks]
    if far != looks and _fits(atlas, rooms, far) > fits:
        near = max(asked.count for p in pod_sets if (asked := device_request(p)))
        facts |= {"cause": "Islands", "near": near}
    usable = need[resource] * fits // pods
    return Blocker(BlockerCode.FRAGMENTED, resource, need[resource], usable, where, facts)


def _free(rooms: Rooms, names: Iterable[str], resource: str) -> int:
    return sum(max(0, min(room.free(name, resource) for room in rooms)) for name in names)


def _fits(atlas: Atlas, rooms: Rooms, looks: list[Look]) -> int:
    """Return how many pods would fit, pod set after pod set."""
    fits = 0
    with rooms[0].trial():  # all rooms share one journal
        for unit in _units(looks):
            pod_sets = tuple(pod_set for pod_set, _ in unit)
            placed = assign_unit(atlas, rooms, pod_sets, [option for _, option in unit])
            if placed is None:
                fits += sum(_some(atlas, rooms, look) for look in unit)
                continue
            for pod_set, found in zip(pod_sets, placed, strict=True):
                fits += pod_set.count
                for room, (node, pods) in product(rooms, found.nodes.items()):
                    room.take(node, pod_set, pods, found.devices.get(node, ()))
    return fits


def _some(atlas: Atlas, rooms: Rooms, look: Look) -> int:
    """Return how many of the pods single nodes could take."""
    pod_set, option = look
    return min(fitting_pods(atlas, rooms, pod_set, option.values()), pod_set.count)


def _excluded(atlas: Atlas, looks: list[Look]) -> Facts:
    facts: Facts = {}
    for pod_set, option in looks:
        for why, count in atlas.suitable(pod_set, option.values()).excluded.items():
            facts[f"excluded_{why}"] = max(count, int(facts.get(f"excluded_{why}", 0)))
    return facts


def _names(*options: Option) -> str:
    return ",".join(sorted({name for option in options for name in option.values()}))
