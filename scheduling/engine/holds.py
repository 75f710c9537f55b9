"""Why everybody who waits is waiting, told from the state as a cycle left it.

Equal forms are explained once. Cost: O(waiting work), and one search for each form.
"""

import math
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import AbstractContextManager

from scheduling.engine.gates import Why, blocked, shut
from scheduling.engine.ordering import queue_order
from scheduling.engine.partial import smallest
from scheduling.engine.plan import Blocker, Hold, Move, can_never_start
from scheduling.engine.reservations import elder_from, starves_at
from scheduling.engine.rests import rest_of
from scheduling.engine.rivals import Rivals
from scheduling.engine.shapes import Form, form_of
from scheduling.engine.snapshot import Claim, Reservation, Workload
from scheduling.engine.state import State
from scheduling.engine.surplus import next_piece
from scheduling.engine.terms import BlockerCode, PendingReason
from scheduling.engine.tree import QuotaKey

MOST_TRIED = 8  # gangs of which each is tried by itself, whether a workload waits for it
Lifted = Callable[[Iterable[str]], AbstractContextManager[None]]
_NODES = {BlockerCode.GANG_NO_FIT, BlockerCode.TOPOLOGY_NO_DOMAIN, BlockerCode.FRAGMENTED}


class Holds:
    """The decisions on waiting work; ``instants`` are those at which time alone may end a wait.

    ``queues``: those of which work is told; all by default. "" stands for work outside them.
    """

    def __init__(
        self, state: State, moves: Iterable[Move] = (), queues: Collection[str] | None = None
    ) -> None:
        self._state, self._rivals, self._queues = state, Rivals(state, moves), queues
        self._nodes: dict[QuotaKey, frozenset[str]] = {}  # that a queue's flavors have
        self.instants = [claim.expires_at for claim in state.claims.standing()]
        self.instants += state.losses.instants(state.now)
        starts = (state.reservations[key].starts_at for key in state.reservations)
        self.instants += [at for at in starts if at > state.now]

    def __iter__(self) -> Iterator[Hold]:
        """Yield one decision for each waiting workload: blocked ones, unmanaged ones, lines.

        Running gangs that lack pods come last.
        """
        state = self._state
        for key in sorted(self._asked(state.blocked)):
            rest = rest_of(state.workloads[key])
            self.instants += [] if rest is None else [rest]
            yield Hold(key, *blocked(state.workloads[key]))
        for workload in queue_order(state.workloads[k] for k in self._asked(state.unmanaged)):
            yield Hold(workload.key, *self._explain(workload))
        for queue in sorted(state.lines.queues()):
            if self._queues is None or queue in self._queues:
                yield from self._line(queue)
        yield from self._lacking()

    def _asked(self, keys: Iterable[str]) -> Iterable[str]:
        """Return which of these workloads are to be told of."""
        queues, works = self._queues, self._state.workloads
        if queues is None:
            return keys
        return [key for key in keys if (works[key].queue or "") in queues]

    def _lacking(self) -> Iterator[Hold]:
        """Yield why running gangs do not have all their pods yet."""
        state, known = self._state, dict[Form, Why]()
        for key in sorted(self._asked(state.lacking)):
            gang = state.workloads[key]
            piece = next_piece(state, gang, gang.admission.assignments if gang.admission else ())
            form = form_of(piece)
            if form not in known:
                known[form] = self._explain(piece)
            yield Hold(key, *known[form])

    def _line(self, queue: str) -> Iterator[Hold]:
        state = self._state
        closed = shut(state.platform, state.circular, queue)
        known: dict[object, Why] = {}
        strict: str | None = None
        ahead = 0
        for key in state.walk(queue):
            workload = state.workloads[key]
            if closed is not None:
                yield Hold(key, *closed)
                continue
            if strict is not None:
                why = _behind(workload, strict, ahead)
            else:
                why = state.waiting.get(key) or self._known(workload, known)
            if can_never_start(why[0], (blocker.code for blocker in why[1])):
                yield Hold(key, *why)
            else:
                ahead += 1
                yield Hold(key, *why, position=ahead)
            strict = key if state.strict.get(queue) == key else strict

    def _known(self, workload: Workload, known: dict[object, Why]) -> Why:
        state = self._state
        claim, reserved = state.claims.lift(workload.key), state.reservations.lift(workload.key)
        if claim is not None or reserved is not None:  # what is kept for it is not what it lacks
            why = self._explain(workload, claimed=claim is not None, has_turn=True)
            if claim is not None:
                state.claims.keep(claim)
            if reserved is not None:
                state.reservations.keep(reserved)
                why = why[0], (_turn(reserved), *why[1])
            return why
        if state.claims.protected_from(workload.key):
            return self._explain(workload)  # it may evict fewer than its equals
        form = form_of(workload), state.reservations.binding(workload, state.now)
        if form not in known:
            known[form] = self._explain(workload)
        return known[form]

    def _explain(
        self, workload: Workload, *, claimed: bool = False, has_turn: bool = False
    ) -> Why:
        """Explain a refusal; first what only time can remove, if the workload fits without it.

        Who has the turn, for room is kept for it, has nobody before it. What counts is the fewest
        pods with which it would start; of a grown copy, the difference.
        """
        state = self._state
        bound = () if claimed else state.reservations.binding(workload, state.now)
        with state.reservations.aside(bound):
            workload = state.intern(smallest(state.asking(workload)))
            reason, blockers = state.explainer.why(workload)
            if not any(blocker.code is BlockerCode.IMPOSSIBLE for blocker in blockers):
                kept = (*self._claimed(workload), *self._reserved(workload, bound))
                blockers = (*kept, *self._sheltered(workload), *blockers)
                if reason is not PendingReason.NO_MATCHING_FLAVOR and not has_turn:
                    blockers = (*blockers, *self._rivals.ahead(workload))
                self._wait_to_starve(workload, blockers)
        return reason, blockers

    def _wait_to_starve(self, workload: Workload, blockers: Iterable[Blocker]) -> None:
        """Note from when nodes are held for a gang that finds none."""
        at = starves_at(self._state.platform.patience, workload)
        lacks_nodes = any(blocker.code in _NODES for blocker in blockers)
        if at is not None and at > self._state.now and lacks_nodes:
            self.instants.append(at)

    def _claimed(self, workload: Workload) -> Iterator[Blocker]:
        """Name the claims that must go so that the workload fits; none where that is no help."""
        claims = self._state.claims
        others = [one for one in claims.standing() if one.workload != workload.key]
        found = [one.workload for one in others if self._meets(workload, one)]
        claimants = self._needed(workload, found, claims.lifted)
        if claimants:
            facts: dict[str, str | int] = {"claimants": ", ".join(sorted(claimants))}
            yield Blocker(BlockerCode.CLAIMED, facts=facts)

    def _reserved(self, workload: Workload, binding: tuple[str, ...]) -> Iterator[Blocker]:
        """Name the gangs whose reservation it waits behind, if it would fit without them."""
        state = self._state
        ones = [state.reservations[key] for key in self._in_the_way(workload, binding)]
        if ones:
            elder = elder_from(state.platform.patience, workload)
            self.instants += [elder] if elder > state.now else []
            names = ", ".join(sorted(one.workload for one in ones))
            facts: dict[str, str | int] = {"reserved_for": names}
            facts["until"] = math.ceil(max(one.starts_at for one in ones))
            promised = all(one.promised for one in ones)
            yield Blocker(BlockerCode.RESERVED if promised else BlockerCode.HELD, facts=facts)

    def _in_the_way(self, workload: Workload, binding: Iterable[str]) -> list[str]:
        """Return which of these reservations must go so that it fits; none where that is no help.

        Where it need not wait for all, those go that start first.
        """
        kept = self._state.reservations
        found = [key for key in binding if self._meets(workload, kept[key])]
        found.sort(key=lambda k: (kept[k].promised, -kept[k].starts_at, k))
        return self._needed(workload, found, kept.lifted)

    def _needed(self, workload: Workload, keys: list[str], lifted: Lifted) -> list[str]:
        """Return who must let go so that the workload fits, none of whom could stay.

        The first of ``keys`` stay where some can. Of many, all are returned: each would cost a
        placement.
        """

        def fits_without(some: list[str]) -> bool:
            with lifted(some):
                return self._state.assigner.assign(workload, self._state.books.both) is not None

        if not keys or not fits_without(keys):
            return []
        found = keys
        for key in keys if len(keys) <= MOST_TRIED else ():
            fewer = [other for other in found if other != key]
            if fewer and fits_without(fewer):
                found = fewer
        return found

    def _meets(self, workload: Workload, kept: Claim | Reservation) -> bool:
        """Return whether it keeps quota of the workload's tree, or nodes of its pools.

        Work that no queue pays for may stand on any node.
        """
        books = self._state.books
        own = books.queue(workload)
        other = books.queue(self._state.workloads[kept.workload])
        if own is None or other is None:
            return True
        if books.soon.ledger.root(own) == books.soon.ledger.root(other):
            return True
        if own not in self._nodes:
            flavors = {fr.flavor for fr in books.snapshot.cluster_queues[own.name].quotas}
            nodes = (node.name for f in flavors for node in books.atlas.nodes_of(f))
            self._nodes[own] = frozenset(nodes)
        return any(not self._nodes[own].isdisjoint(a.nodes) for a in kept.assignments)

    def _sheltered(self, workload: Workload) -> Iterator[Blocker]:
        """Say how many could give way but for their minimum runtime, and until when."""
        protected = self._state.claims.protected_from(workload.key)
        shelter = self._state.preemptor.shelter(workload, protected)
        if shelter is None:
            return
        self.instants.append(shelter.until)
        victims, until = len(shelter.victims), math.ceil(shelter.until)
        facts: dict[str, str | int] = {"victims": victims, "until": until}
        yield Blocker(BlockerCode.MINIMUM_RUNTIME, where=workload.queue or "", facts=facts)


def _turn(reservation: Reservation) -> Blocker:
    """Return what is kept for a gang, and until when it should start."""
    code = BlockerCode.PROMISED if reservation.promised else BlockerCode.GATHERING
    nodes = {node for one in reservation.assignments for node in one.nodes}
    facts: dict[str, str | int] = {"until": math.ceil(reservation.starts_at), "nodes": len(nodes)}
    return Blocker(code, facts=facts)


def _behind(workload: Workload, head: str, ahead: int) -> Why:
    facts: dict[str, str | int] = {"ahead": ahead, "head": head}
    blocker = Blocker(BlockerCode.BEHIND_IN_QUEUE, where=workload.queue or "", facts=facts)
    return PendingReason.PENDING_EVALUATION, (blocker,)
