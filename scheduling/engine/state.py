"""The working state of one cluster: books, running and waiting work, claims.

Kept across cycles and fed by changes; a kept state and a fresh one lead to the same plan. A change
of the platform (queues, flavors, nodes) asks for ``State(replace(state.snapshot(), nodes=...))``.
"""

import heapq
import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace

from scheduling.engine.atlas import Atlas
from scheduling.engine.books import Books
from scheduling.engine.candidates import Running
from scheduling.engine.choosing import Chooser
from scheduling.engine.claims import Claims
from scheduling.engine.consolidation import Consolidator
from scheduling.engine.cutting import Cutting
from scheduling.engine.doors import Doors
from scheduling.engine.explain import Explainer
from scheduling.engine.fairness import Regime
from scheduling.engine.flavors import Assigner
from scheduling.engine.gangs import may_lack_pods, smallest_gang
from scheduling.engine.gates import Why
from scheduling.engine.growth import asked, original_of
from scheduling.engine.history import Past
from scheduling.engine.lines import Lines, Walk
from scheduling.engine.losses import Losses
from scheduling.engine.newcomers import Newcomers
from scheduling.engine.parts import is_lacking, leaver, leaving_key, reduced_by
from scheduling.engine.plan import Evict, Shrink
from scheduling.engine.preemption import Preemptor
from scheduling.engine.regrowth import Yields
from scheduling.engine.reservations import Reservations, elder_from, starves_at
from scheduling.engine.rests import Rests
from scheduling.engine.shapes import Shapes
from scheduling.engine.snapshot import Admission, Assignment, Memory, PodSet, Snapshot, Workload
from scheduling.engine.standing import standing
from scheduling.engine.tenure import safe_until
from scheduling.engine.terms import BlockerCode, StopPolicy
from scheduling.engine.tree import cohorts_in_cycles
from scheduling.engine.usual import Waiting
from scheduling.engine.wards import Wards


class State:
    """Everything a cycle decides on, in the form in which it decides quickly."""

    def __init__(self, snapshot: Snapshot) -> None:
        seen = Memory(machines=snapshot.memory.machines)
        platform = replace(snapshot, workloads=(), memory=seen)
        self.platform = platform
        self.workloads: dict[str, Workload] = {}
        self.now = snapshot.now
        self.atlas = Atlas(platform)
        self.books = Books(platform, self.atlas)
        self.assigner = Assigner(self.books)
        self.newcomers = Newcomers(self.books, self.assigner)
        self.consolidator = Consolidator(self.books, self.assigner, self.newcomers.reseating)
        self.running = Running(())
        self.shapes = Shapes()
        self.cutting = Cutting(self.books, self.running, self.intern)
        self.past = Past(platform, self.books.now.ledger, snapshot.memory.history)
        self.regime = Regime(platform, self.books.soon.ledger, self.past)
        tree = self.books.now.ledger.tree
        self.doors = Doors(platform, tree, snapshot.memory.consumption)
        self.preemptor = Preemptor(
            self.books,
            self.assigner,
            self.running,
            self.regime,
            self.cutting,
            consumption=self.doors.consumption,
        )
        self.chooser = Chooser(self.books, self.assigner, self.preemptor)
        self.explainer = Explainer(self.books, self.assigner)
        self.claims = Claims(self.books, self.workloads, self.asking)
        self.reservations = Reservations(self.preemptor.ways, self.workloads, self.asking)
        self.forecasts = 0  # earliest starts looked for
        self.replaced: set[str] = set()  # in the cycle that is under way
        self.yields = Yields(snapshot.memory.held_less)
        self.losses = Losses(self.atlas.nodes, snapshot.gang_grace_s, snapshot.memory.absent)
        self.circular = cohorts_in_cycles(platform.cohorts)
        self.wards = Wards(platform, tree, self.atlas)
        self.lines = Lines()
        self.expected = Waiting(self.atlas)
        self.unmanaged: set[str] = set()  # waiting outside every queue
        self.blocked: set[str] = set()  # waiting, and kept out by the rows
        self.draining: set[str] = set()  # running in a queue that drains
        self.releasing: dict[str, Workload] = {}
        self.waiting: dict[str, Why] = {}  # who waits for victims, since its last evaluation
        self.strict: dict[str, str] = {}  # StrictFIFO queue -> the head that blocks it
        self._shelters: list[tuple[float, str]] = []  # when work of a queue loses protection
        self.copies = Counter[str]()  # grown ones that wait, by what they are going to replace
        self._rests = Rests()
        self.lacking: set[str] = set()  # running gangs that ask for more pods than they hold
        self._starving: list[tuple[float, str]] = []  # when work of a queue has waited long
        self._smallest: dict[tuple[int, int | None], tuple[PodSet, ...]] = {}
        self._elastic: dict[tuple[int, int | None], bool] = {}
        for workload in snapshot.workloads:
            self.put(workload)
        self.claims.restore(snapshot.memory)
        self.reservations.restore(snapshot.memory)
        self._lobby = snapshot.memory.lobby

    def snapshot(self) -> Snapshot:
        """Return the state as one frozen value. Cost: O(everything)."""
        workloads = tuple(self.workloads.values())
        return replace(self.platform, now=self.now, workloads=workloads, memory=self.memory())

    def memory(self) -> Memory:
        """Return what the next cycle must know beside the rows."""
        claims, less = self.claims, self.yields.before
        past, consumption = self.past.entries(), self.doors.entries()
        return Memory(
            claims.standing(),
            claims.evicted_by(),
            self._lobby,
            past,
            consumption,
            less,
            self.reservations.standing(),
            dict(self.losses.since),
            self.atlas.machines,
        )

    def asking(self, workload: Workload) -> Workload:
        """Return the workload with what it needs room for to start.

        Of a grown copy that is the difference, of a gang with a minimum its smallest form.
        """
        original = self.original(workload) if workload.replaces else None
        if original is not None:
            return self.intern(asked(workload, original, self.atlas))
        if not self.may_lack(workload):
            return workload
        kind = id(workload.pod_sets), workload.min_member
        if kind not in self._smallest:
            self._smallest[kind] = self.intern(smallest_gang(workload)).pod_sets
        return replace(workload, pod_sets=self._smallest[kind], min_member=None)

    def may_lack(self, workload: Workload) -> bool:
        """Return whether work of this state runs with fewer pods than it asks for.

        The answer of :func:`~scheduling.engine.gangs.may_lack_pods`, once for equal work.
        """
        kind = id(workload.pod_sets), workload.min_member
        known = self._elastic.get(kind)
        if known is None:
            known = self._elastic[kind] = may_lack_pods(workload)
        return known

    def original(self, workload: Workload) -> Workload | None:
        """Return the running workload that this one is going to replace, if there is one."""
        if not workload.replaces:
            return None
        return original_of(workload, self.workloads, self.releasing.keys() | self.replaced)

    def intern(self, workload: Workload) -> Workload:
        """Return the workload with the pod sets that its equals have."""
        return self.shapes.intern(workload)

    # -- changes ------------------------------------------------------------------------------

    def put(self, workload: Workload) -> None:
        """Let a workload be as given: a new one, or a known one that changed."""
        key, claim, reserved = workload.key, None, None
        if key in self.workloads:
            claim, reserved = self.claims.lift(key), self.reservations.lift(key)
            self._forget(self.workloads[key])
        workload = self.shapes.intern(self._rests.enter(workload, self.now))
        self.workloads[key] = workload
        self._learn(workload)
        if claim is not None:
            self.claims.keep(claim)
        if reserved is not None:
            self.reservations.keep(reserved)
        self.claims.review(workload)

    def drop(self, key: str) -> None:
        """Let a workload be gone: finished, cancelled or deleted. Unknown keys are fine."""
        if key in self.workloads:
            self.claims.lift(key)
            self.claims.forget(key)
            self.reservations.lift(key)
            gone = self.workloads.pop(key)
            self._forget(gone)
            self.claims.review(gone)

    def _learn(self, workload: Workload) -> None:
        self.wards.touch(workload.queue)
        self._stir(workload)
        if workload.admission is None:
            self._await(workload)
            return
        assignments, books = standing(workload), self.books
        if workload.releasing:
            books.hold(workload, assignments, (books.now,))
            self.releasing[workload.key] = workload
        else:
            books.hold(workload, assignments, books.both)
            books.stay(workload, assignments)
            self._run(workload, assignments)

    def _stir(self, workload: Workload) -> None:
        """Note that what the workload holds has changed, for those who remember use."""
        self.past.touch(workload.queue)
        self.doors.touch(workload)

    def _await(self, workload: Workload) -> None:
        self.expected.add(workload)
        self.copies[workload.replaces] += 1
        if workload.blocked:
            self.blocked.add(workload.key)
        elif workload.queue is None:
            self.unmanaged.add(workload.key)
        else:
            self.lines.add(workload)
            if self.atlas.nodes:  # patience is about nodes
                self._note_patience(workload, workload.queue)

    def _note_patience(self, workload: Workload, queue: str) -> None:
        """Note from when the wait of a workload alone may change what is decided."""
        patience = self.platform.patience
        for at in (starves_at(patience, workload), elder_from(patience, workload)):
            if at is not None and at > self.now:
                heapq.heappush(self._starving, (at, queue))

    def _run(self, workload: Workload, held: tuple[Assignment, ...]) -> None:
        self._rise(workload, held)
        self.yields.add(workload)
        queue = self.platform.cluster_queues.get(workload.queue or "")
        stopped = queue is not None and queue.stop_policy is StopPolicy.HOLD_AND_DRAIN
        if stopped or (queue is not None and workload.blocked == BlockerCode.QUEUE_STOPPED):
            self.draining.add(workload.key)
        if queue is not None and queue.minimum_runtime.seconds:
            heapq.heappush(self._shelters, (safe_until(queue, workload), queue.name))

    def _rise(self, workload: Workload, held: tuple[Assignment, ...]) -> None:
        """Let a workload be somebody's possible victim, its surplus piece by piece.

        While pods of it are away nobody knows what of it is surplus.
        """
        self.losses.add(workload)
        if not self.may_lack(workload):
            self.running.add(workload, self.books.charge(workload, held))
            return
        if workload.key in self.losses:
            self.running.add(workload, self.books.charge(workload, held))
        else:
            self.cutting.add(workload)
        if is_lacking(workload):
            self.lacking.add(workload.key)

    def sink(self, workload: Workload) -> None:
        """Undo a :meth:`_rise`: nobody may take it any more."""
        self.cutting.remove(workload)
        self.lacking.discard(workload.key)
        self.losses.remove(workload.key)

    def _forget(self, workload: Workload) -> None:
        self.wards.touch(workload.queue)
        self._stir(workload)
        self.waiting.pop(workload.key, None)
        if workload.admission is None:
            self._leave_line(workload)
            return
        assignments, books = standing(workload), self.books
        if workload.releasing:
            self.releasing.pop(workload.key)
        else:
            books.leave(workload, assignments)
            self.sink(workload)
            self.yields.remove(workload.key)
            self.draining.discard(workload.key)
        books.drop(workload, assignments, (books.now,))

    def _leave_line(self, workload: Workload) -> None:
        self.expected.add(workload, -1)
        self.copies[workload.replaces] -= 1
        if workload.blocked:
            self.blocked.discard(workload.key)
        elif workload.queue is None:
            self.unmanaged.discard(workload.key)
        else:
            self.lines.remove(workload)

    def pass_time(self, now: float) -> None:
        """Let it be ``now``: what only time changes has changed."""
        self.now = self.preemptor.now = now
        self.regime.history.open(now)
        self.doors.open(now)
        self.losses.open(now)
        for workload in self.claims.refresh(now):
            self.wards.touch(workload.queue)
        for workload in self._rests.due(now, self.workloads):
            self.put(workload)
        while self._shelters and self._shelters[0][0] <= now:
            self.wards.touch(heapq.heappop(self._shelters)[1])
        while self._starving and self._starving[0][0] <= now:
            self.wards.touch(heapq.heappop(self._starving)[1])

    def wakes_at(self) -> float:
        """Return when running work first loses its protection, if nothing else happens."""
        return self._shelters[0][0] if self._shelters else math.inf

    # -- what a cycle decided -----------------------------------------------------------------

    def settle_use(self) -> None:
        """Let what everybody holds now count from now on."""
        self.past.settle(self.now)
        queues = self.doors.touched_queues()
        works = [work for queue in queues for work in self.running.of(queue)]
        works += [work for work in self.releasing.values() if work.queue in queues]
        self.doors.settle(works)

    def seat(self, workload: Workload, assignments: tuple[Assignment, ...]) -> None:
        """Let a workload run whose quota and nodes the cycle has taken already.

        What has finished of it before gives back its quota at once.
        """
        self._leave_line(workload)
        self.waiting.pop(workload.key, None)
        admitted = replace(workload, admission=Admission(self.now, assignments))
        self.workloads[workload.key] = admitted
        held = standing(admitted)
        if held is not assignments:
            self.books.leave(workload, assignments)
            self.books.drop(workload, assignments, (self.books.now,))
            self.books.hold(admitted, held, self.books.both)
            self.books.stay(admitted, held)
        self.wards.touch(workload.queue)
        self._stir(workload)
        self._run(admitted, held)

    def retire(self, key: str) -> None:
        """Let a workload be gone whose pods a copy has taken over."""
        gone = self.workloads.pop(key)
        self._forget(gone)
        self.claims.forget(key)
        self.claims.review(gone)

    def dismiss(self, decision: Evict) -> None:
        """Let a workload be on its way out whose quota the cycle has given back already."""
        going = replace(self.workloads[decision.workload], releasing=True)
        self.sink(going)  # its surplus may have been taken for somebody before it went itself
        self.workloads[going.key] = self.releasing[going.key] = going
        self.draining.discard(going.key)
        self.yields.remove(going.key)
        self.claims.review(going)
        self.wards.touch(going.queue)

    def grown(self, key: str, assignments: tuple[Assignment, ...]) -> None:
        """Let a running gang stand on what the cycle has given it beside what it had."""
        before = self.workloads[key]
        assert before.admission is not None
        admission = replace(before.admission, assignments=assignments)
        self._change(before, replace(before, admission=admission))

    def shrunk(self, decision: Shrink) -> None:
        """Let surplus be on its way out whose quota the cycle has given back already."""
        before = self.workloads[decision.workload]
        after = reduced_by(before, decision.pods)
        self._change(before, after)
        part = self.intern(
            leaver(before, decision.pods, self.workloads.get(leaving_key(before.key)))
        )
        self.workloads[part.key] = self.releasing[part.key] = part
        self.claims.review(after)

    def _change(self, before: Workload, after: Workload) -> None:
        """Let a running gang hold other pods; its books are as they must be already."""
        self.sink(before)
        self.yields.remove(before.key)
        self.workloads[after.key] = after
        self._rise(after, standing(after))
        self.yields.add(after)
        self.wards.touch(after.queue)
        self._stir(after)

    def touched(self) -> Iterable[str]:
        """Return the queues with waiting work that have to be looked at, sorted."""
        return sorted(self.lines.queues() & set(self.wards.touched()))

    def walk(self, queue: str) -> Walk:
        """Return the walk along one queue's line, waiting preemptors first."""
        kept = {*self.claims.waiting_in(queue), *self.reservations.waiting_in(queue)}
        works = (self.workloads[key] for key in kept)
        mine = [work for work in works if work.admission is None]  # others leave, to move
        return Walk(self.lines.forms(queue), self.doors.precedence, mine)

    def favoured(self, key: str) -> bool:
        """Return whether room is kept for a waiting workload: it is looked at first."""
        return key in self.claims or key in self.reservations

    def running_near(self, workload: Workload) -> list[Workload]:
        """Return the running work that may stand in the workload's way."""
        queues = sorted(self.wards.beside(workload.queue))
        return [work for queue in queues for work in self.running.any_order(queue)]
