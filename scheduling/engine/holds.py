"""Why everybody who waits is waiting, told from the state as a cycle left it.

Equal forms are explained once. Cost: O(waiting work), and one search for each form.
"""

import math
from collections.abc import Iterable, Iterator

from scheduling.engine.gates import Why, blocked, shut
from scheduling.engine.ordering import queue_order
from scheduling.engine.partial import smallest
from scheduling.engine.plan import Blocker, Hold, Move
from scheduling.engine.rivals import Rivals
from scheduling.engine.shapes import Form, form_of
from scheduling.engine.snapshot import Workload
from scheduling.engine.state import State
from scheduling.engine.surplus import next_piece
from scheduling.engine.terms import BlockerCode, PendingReason


class Holds:
    """The decisions on waiting work; ``instants`` are those at which time alone may end a wait."""

    def __init__(self, state: State, moves: Iterable[Move] = ()) -> None:
        self._state, self._rivals = state, Rivals(state, moves)
        self.instants = [claim.expires_at for claim in state.claims.standing()]

    def __iter__(self) -> Iterator[Hold]:
        """Yield one decision for each waiting workload: blocked ones, unmanaged ones, lines.

        Running gangs that lack pods come last.
        """
        state = self._state
        for key in sorted(state.blocked):
            yield Hold(key, *blocked(state.workloads[key]))
        for workload in queue_order(state.workloads[key] for key in state.unmanaged):
            yield Hold(workload.key, *self._explain(workload))
        for queue in sorted(state.lines.queues()):
            yield from self._line(queue)
        yield from self._lacking()

    def _lacking(self) -> Iterator[Hold]:
        """Yield why running gangs do not have all their pods yet."""
        state, known = self._state, dict[Form, Why]()
        for key in sorted(state.lacking):
            gang = state.workloads[key]
            piece = next_piece(state, gang, gang.admission.assignments if gang.admission else ())
            form = form_of(piece)
            if form not in known:
                known[form] = self._explain(piece)
            yield Hold(key, *known[form])

    def _line(self, queue: str) -> Iterator[Hold]:
        state = self._state
        closed = shut(state.platform, state.circular, queue)
        known: dict[Form, Why] = {}
        strict: str | None = None
        for position, key in enumerate(state.walk(queue), start=1):
            workload = state.workloads[key]
            if closed is not None:
                yield Hold(key, *closed)
            elif strict is not None:
                yield Hold(key, *_behind(workload, strict, position - 1), position=position)
            elif key in state.waiting:
                yield Hold(key, *state.waiting[key], position=position)
            else:
                yield Hold(key, *self._known(workload, known), position=position)
            strict = key if state.strict.get(queue) == key else strict

    def _known(self, workload: Workload, known: dict[Form, Why]) -> Why:
        claim = self._state.claims.lift(workload.key)
        if claim is not None:  # what is kept for it is not what it lacks
            why = self._explain(workload)
            self._state.claims.keep(claim)
            return why
        if self._state.claims.protected_from(workload.key):
            return self._explain(workload)  # it may evict fewer than its equals
        form = form_of(workload)
        if form not in known:
            known[form] = self._explain(workload)
        return known[form]

    def _explain(self, workload: Workload) -> Why:
        """Explain a refusal; first what only time can remove, if the workload fits without it.

        What counts is the fewest pods with which it would start; of a grown copy, the difference.
        """
        workload = self._state.intern(smallest(self._state.asking(workload)))
        reason, blockers = self._state.explainer.why(workload)
        if not any(blocker.code is BlockerCode.IMPOSSIBLE for blocker in blockers):
            blockers = (*self._claimed(workload), *self._sheltered(workload), *blockers)
            if reason is not PendingReason.NO_MATCHING_FLAVOR:
                blockers = (*blockers, *self._rivals.ahead(workload))
        return reason, blockers

    def _claimed(self, workload: Workload) -> Iterator[Blocker]:
        """Name the claims if the workload would fit without them."""
        state = self._state
        claimants = state.claims.keys() - {workload.key}
        if not claimants:
            return
        with state.claims.lifted():
            fits = state.assigner.assign(workload, state.books.both) is not None
        if fits:
            facts: dict[str, str | int] = {"claimants": ", ".join(sorted(claimants))}
            yield Blocker(BlockerCode.CLAIMED, facts=facts)

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


def _behind(workload: Workload, head: str, ahead: int) -> Why:
    facts: dict[str, str | int] = {"ahead": ahead, "head": head}
    blocker = Blocker(BlockerCode.BEHIND_IN_QUEUE, where=workload.queue or "", facts=facts)
    return PendingReason.PENDING_EVALUATION, (blocker,)
