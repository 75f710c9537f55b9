"""The world as the cycle worker keeps it from cycle to cycle: read once, then fed by changes.

A kept world and a freshly read one lead to the same plan (``decisions.md`` 4). Whatever is no
change of a workload (queues, nodes, quotas), and whatever another process has decided, asks for
a new one. Source: ``performance.md`` 6.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import datetime
from typing import TypeVar
from uuid import UUID

from gpuplatform.common.models import Change
from gpuplatform.common.questions import Question
from scheduling import meter, persist
from scheduling.engine.cycle import advance
from scheduling.engine.desk import Desk
from scheduling.engine.holds import Holds
from scheduling.engine.parts import leaving_key
from scheduling.engine.plan import Hold
from scheduling.engine.renewal import renewed
from scheduling.engine.snapshot import Memory, Snapshot, Workload
from scheduling.engine.state import State
from scheduling.engine.terms import Status
from scheduling.engine.tree import queue_key, quota_tree
from scheduling.holders import Holder
from scheduling.lifecycle import CHANGED, STARTED
from scheduling.loader import Loaded, load, resized_at
from scheduling.models import Cycle
from scheduling.models import Workload as WorkloadRow
from scheduling.moves import Move
from scheduling.works import Works, keys_of, read_works

NEWEST = Question(lambda _: Cycle.objects.order_by("-id").values_list("pk")[:1])
OVERLAP = 1_000  # ids: a lower one may be committed after a higher one
Value = TypeVar("Value")


class Kept:
    """A world and its working state. Whoever fails to write what it decided throws it away."""

    def __init__(self, world: Loaded, seen: Iterable[int]) -> None:
        self.state = State(world.snapshot)
        self.world = replace(world, snapshot=replace(world.snapshot, workloads=()))
        self.standing: meter.Standing = {}
        self.last_cycle = world.last_cycle
        # queues whose waiting work is to be told why; "" stands for work outside them
        self.unsaid = {w.queue or "" for w in world.snapshot.workloads if w.admission is None}
        self.touched = {*world.snapshot.cluster_queues, ""}  # queues whose holdings may be new
        self.is_new = True  # nothing has been written of it yet
        self.has_let_go = False  # what a cycle must remember of that is not written yet
        self._seen = set(seen)
        self._trees = trees_of(world.snapshot)

    @classmethod
    def read(cls, now: datetime) -> "Kept":
        """Return the world as it stands in the tables.

        Which changes it contains is asked first: what is committed meanwhile is taken in later.
        """
        seen = list(Change.objects.order_by("-id").values_list("id", flat=True)[:OVERLAP])
        return cls(load(now), seen)

    # -- changes ------------------------------------------------------------------------------
    def news(self) -> list[tuple[int, str, str]]:
        """Return the changes that have not been taken in: number, topic, key. 1 query, or 2."""
        since = max(self._seen, default=0) - OVERLAP
        numbers = Change.objects.filter(id__gt=since).order_by("id").values_list("id", flat=True)
        unseen = [number for number in numbers if number not in self._seen]
        found = Change.objects.order_by("id").values_list("id", "topic", "key")
        return [one for part in persist.batches(unseen) for one in found.filter(id__in=part)]

    def is_outdated(self) -> bool:
        """Return whether somebody else has decided since, or everything was forgotten. 1 query."""
        newest: tuple[int, ...] = next(NEWEST.ask(), (0,))
        return newest != (self.last_cycle,)

    def feed(self, news: Collection[tuple[int, str, str]]) -> bool:
        """Take in changes; False: the world has to be read anew."""
        if any(topic not in (CHANGED, STARTED) or not key for _, topic, key in news):
            return False
        changed, started = (
            {UUID(key) for _, topic, keys in news if topic == word for key in keys.split(",")}
            for word in (CHANGED, STARTED)
        )
        self.take_in(sorted(changed | self._start(started - changed)))
        self._seen.update(number for number, _, _ in news)
        newest = max(self._seen, default=0)
        self._seen = {number for number in self._seen if number > newest - OVERLAP}
        return True

    def _start(self, uids: Collection[UUID]) -> set[UUID]:
        """Note who runs by now; return those of which more than that has changed."""
        others = set(uids)
        rows = WorkloadRow.objects.order_by().values_list("uid", "version", "status")
        for part in persist.batches(uids):
            for uid, version, status in rows.filter(uid__in=part):
                face = self.world.faces.get(str(uid))
                if face is not None and version - face.version in (0, 1):
                    face.version, face.status = version, status
                    others.discard(uid)
        return others

    def follows(self) -> bool:
        """Return whether it is as the rows are by now; what is new is taken in."""
        if self.is_new or self.is_outdated() or not self.feed(self.news()):
            return False
        if self.touched:
            self.read_touched()
        return True

    def let_go(self, released: Iterable[Holder]) -> None:
        """Let admissions be over that have been written as released just now.

        Who has ended with it is gone; of anybody else the rows say how it goes on.
        """
        others, state, released = [], self.state, list(released)
        self.has_let_go = True
        for queue in {one.cluster_queue for one in released}:
            self.unsaid |= self._beside(queue if queue in self._trees else None)
        for one in released:
            key = str(one.workload_id)
            in_parts = leaving_key(key) in state.workloads or state.copies.get(key)
            if one.workload.status != Status.FINISHED or one.is_part or in_parts:
                others.append(one.workload_id)
                continue
            state.drop(key)
            _put(self.world.admissions, key, None)
            _put(self.world.faces, key, None)
        self.take_in(sorted(others))

    def run(self, moves: Mapping[UUID, Move]) -> None:
        """Let gangs run that have been written as running just now."""
        for uid, move in moves.items():
            if (face := self.world.faces.get(str(uid))) is not None:
                face.follow(move)

    def note(self, changes: Iterable[int]) -> None:
        """Note the numbers of changes that it has followed as they were written."""
        self._seen.update(changes)

    def take_in(self, uids: Collection[UUID]) -> None:
        """Let these workloads be as their rows say now."""
        if not uids:
            return
        works = read_works(self.world.doors, uids)
        fresh = {work.key: work for work in works.workloads}
        for uid in uids:
            for key in keys_of(uid):
                self._follow(key, fresh.get(key))
                _put(self.world.admissions, key, works.held.get(key))
            _put(self.world.faces, str(uid), works.faces.get(str(uid)))
        self._note_size(works)

    def _follow(self, key: str, fresh: Workload | None) -> None:
        mine = self.state.workloads.get(key)
        if fresh is None:
            self.state.drop(key)
        elif mine is None or not _same(mine, fresh):
            self.state.put(fresh)
        for work in (mine, fresh):
            if work is not None:
                self.unsaid |= self._beside(work.queue)
                if work.admission is not None:
                    self.touched |= self.tree(work.queue)

    def _note_size(self, works: Works) -> None:
        latest = [at for at in (resized_at(works), self.world.resized_at) if at]
        self.world = replace(self.world, resized_at=max(latest, default=None))

    def tree(self, queue: str | None) -> frozenset[str]:
        """Return the queues of the same tree."""
        return self._trees.get(queue or "", frozenset({queue or ""}))

    def _beside(self, queue: str | None) -> frozenset[str]:
        return self.state.wards.beside(queue) | {queue or ""}

    # -- a cycle ------------------------------------------------------------------------------
    def advance(self, now: datetime) -> Desk:
        """Decide; the state is as decided afterwards, whatever becomes of it."""
        self.state = renewed(self.state)
        self.world = replace(self.world, now=now, snapshot=self.platform(now))
        return advance(self.state, now.timestamp())

    def platform(self, now: datetime) -> Snapshot:
        """Return hardware, promises and memory, without work."""
        return replace(self.state.platform, now=now.timestamp(), memory=self.state.memory())

    def holds(self, desk: Desk | None = None, queues: Collection[str] | None = None) -> list[Hold]:
        """Return why work waits: of some queues, or of all."""
        return list(Holds(self.state, desk.moves if desk else (), queues))

    def waiting(self, queues: Iterable[str]) -> int:
        """Return how many wait in these queues."""
        lines = self.state.lines
        return sum(len(places) for q in queues for places in lines.forms(q).values())

    def portion(self, most: int, after: str) -> list[str]:
        """Return queues whose waiting work is to be told why, from behind ``after`` on.

        So many that hardly more than ``most`` wait in them, but always one; those before
        ``after`` come last.
        """
        found, left = list[str](), most
        for queue in sorted(self.unsaid, key=lambda name: (name <= after, name)):
            left -= self.waiting([queue])
            if found and left < 0:
                break
            found.append(queue)
        return found

    def held_in(
        self, queues: Collection[str], works: Mapping[str, Workload] | None = None
    ) -> Snapshot:
        """Return the snapshot of what is held in these queues, now or as ``works`` say.

        Cost: O(what is held), however much waits.
        """
        mine = self.held(self.state.workloads if works is None else works)
        return replace(
            self.world.snapshot, workloads=tuple(w for w in mine if (w.queue or "") in queues)
        )

    def held(self, works: Mapping[str, Workload]) -> Iterator[Workload]:
        """Yield which of these workloads hold something on the strength of an open admission."""
        for key in self.world.admissions:
            work = works.get(key)
            if work is not None and work.admission is not None:
                yield work

    def wards_of(self, queues: Iterable[str | None]) -> set[str]:
        """Return all queues that can feel a move in one of these."""
        return {name for queue in queues for name in self._beside(queue)}

    def read_touched(self) -> None:
        """Read what is metered of queues in which the cluster may have ended work."""
        if self.is_new or not self.touched <= self._trees.keys():
            self.standing = meter.read_standing()
            return
        kept = {g: s for g, s in self.standing.items() if s.cluster_queue not in self.touched}
        self.standing = kept | meter.read_standing(self.touched)

    @property
    def last_change(self) -> int:
        """Return the number of the newest change that has been taken in."""
        return max(self._seen, default=0)

    def settled(self, cycle: int, at: datetime) -> None:
        """Note the number of the cycle that was written of it."""
        self.last_cycle = cycle
        self.world = replace(self.world, previous_at=at)


def stable(memory: Memory) -> Memory:
    """Return what of a memory is worth a row: not what only counts the time that passes."""
    kept = (replace(r, idle_gpu_seconds=0.0, counted_at=0.0) for r in memory.reservations)
    return replace(memory, reservations=tuple(kept))


def _same(mine: Workload, fresh: Workload) -> bool:
    """Return whether a row says what the state holds already."""
    return mine.key == fresh.key and _plain(mine) == _plain(fresh)


def _plain(work: Workload) -> Workload:
    """Return a workload without what no decision depends on: its version, the order of rows."""
    if work.admission is None:
        return replace(work, version=0)
    parts = tuple(sorted(work.admission.assignments, key=lambda one: one.pod_set))
    return replace(work, version=0, admission=replace(work.admission, assignments=parts))


def _put(table: dict[str, Value], key: str, value: Value | None) -> None:
    if value is None:
        table.pop(key, None)
    else:
        table[key] = value


def trees_of(platform: Snapshot) -> dict[str, frozenset[str]]:
    """Return for each queue the queues of its tree."""
    tree, members = quota_tree(platform), dict[object, set[str]]()
    for name in platform.cluster_queues:
        members.setdefault(tree.root(queue_key(name)), set()).add(name)
    return {name: frozenset(names) for names in members.values() for name in names}
