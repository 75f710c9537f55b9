"""Plan in, rows out: the only writer of scheduling decisions."""

from collections.abc import Iterable, Mapping
from dataclasses import asdict
from typing import Any

from scheduling import checks, lines, moves, persist
from scheduling.applied import ApplyReport
from scheduling.engine.gangs import without
from scheduling.engine.parts import leaver, leaving_key
from scheduling.engine.plan import Admit, Blocker, Evict, Grow, Hold, Plan, Shrink
from scheduling.engine.reservations import idle_gpu_hours
from scheduling.engine.snapshot import Assignment
from scheduling.engine.snapshot import Workload as Known
from scheduling.engine.terms import Status
from scheduling.evicting import Eviction, Reservation, evict_all, reserve_all
from scheduling.faces import NO_GROWTH, Face, Held
from scheduling.jsontexts import as_text
from scheduling.loader import Loaded
from scheduling.models import Admission, Node, Placement, PodSet, Workload
from scheduling.moves import Line, Move
from scheduling.resizing import granted_gpus, grow, note_lost, resize
from scheduling.shrinking import set_apart

NOTHING_TOLD = ("", "[]", None)
PLACEMENT = (
    *("admission_id", "pod_set", "node", "count", "flavors", "requests", "charges"),
    "devices",
)
ADMISSION = ("id", "workload_id", "cluster_queue", "admitted_at", "is_reserved")

Admitted = tuple[Admit, dict[str, Any], int]  # with its facts, and the GPUs that it holds


def apply_plan(plan: Plan, world: Loaded, known: Mapping[str, Known] | None = None) -> ApplyReport:
    """Write a plan inside the caller's transaction, in a few statements for all decisions.

    Each decision is written whole or not at all: a workload that has changed since ``world`` was
    loaded, or one of whose nodes has, is left as it is. Holds cost nothing where they say what
    the row already says. What ``world`` says of rows is brought up to date with them.

    Args:
        plan: what was decided.
        world: the rows that it was decided on.
        known: the workloads as they were decided on, by key; those of the snapshot by default.
    """
    if known is None:
        known = {w.key: w for w in world.snapshot.workloads}
    applied = _Application(plan, world, known)
    for decision in plan.decisions:
        match decision:
            case Evict():
                applied.evict(decision)
            case Admit():
                applied.admit(decision)
            case Grow() | Shrink():
                applied.resize(decision)
    applied.write_moves()
    for decision in plan.decisions:
        if isinstance(decision, Hold):  # who runs by now may wait for further pods
            applied.hold(decision)
    applied.write_reasons()
    return applied.report


class _Application:
    """One plan on its way into the tables: collected decision by decision, written together."""

    def __init__(self, plan: Plan, world: Loaded, known: Mapping[str, Known]) -> None:
        self.report = ApplyReport()
        self._world, self._known = world, known
        self._changed_nodes = _changed_nodes(plan, world)
        self._checks: checks.Required | None = None  # read where somebody starts
        self._evicts: list[Evict] = []
        self._admits: list[Admitted] = []
        self._lines: list[Line] = []
        self._placements: list[tuple[Any, ...]] = []
        self._held: list[tuple[Any, ...]] = []
        self._growing: list[tuple[Any, ...]] = []
        self._blockers: dict[int, tuple[object, list[dict[str, Any]], str]] = {}

    def _face(self, key: str | None) -> Face | None:
        """Return what the rows say of a workload, or of the one that asks to grow."""
        known = self._known.get(key or "")
        return self._world.faces.get(known.replaces or known.key) if known else None

    def evict(self, decision: Evict) -> None:
        """Take the admission back; the backend releases what it holds."""
        self._evicts.append(decision)

    def admit(self, decision: Admit) -> None:
        """Give quota and nodes to the whole gang, unless it or a chosen node has changed."""
        known = self._known[decision.workload]
        if known.replaces:
            self._grow(known, decision)
            return
        nodes, face = nodes_of(decision.assignments), self._face(decision.workload)
        gone = self._changed_nodes.intersection(nodes)
        if face is None or gone or face.status != Status.PENDING:
            self.report.stale.append(decision.workload)
            return
        facts = {
            "queue": known.queue or "",
            "gpus": lines.gpus_in(known, decision.assignments),
            "nodes": len(nodes),
            "borrows": dict(decision.borrows),
            **lines.part_of(known, decision.assignments),
            **self._held_idle(decision.workload),
        }
        gpus = granted_gpus(known, decision.assignments)
        self._admits.append((decision, facts, gpus))

    def resize(self, decision: Grow | Shrink) -> None:
        """Let a running gang have more pods, or let some of its surplus go."""
        workload, known = self._face(decision.workload), self._known[decision.workload]
        held, preemptor = self._world.admissions.get(decision.workload), None
        if isinstance(decision, Grow):
            after = decision.assignments
        else:
            assert known.admission is not None
            after = without(known.admission.assignments, decision.pods)
            preemptor = self._face(decision.preemptor)
        grows = isinstance(decision, Grow)
        gone = grows and self._changed_nodes.intersection(nodes_of(after))
        if workload is None or held is None or gone or not resize(workload, known, after):
            self.report.stale.append(decision.workload)
            return
        Placement.objects.filter(admission=held.pk).delete()
        self._placements += _placements(held.pk, known, after)
        if isinstance(decision, Shrink):
            self._part(held, known, decision)
            self._tell_taken(workload, preemptor, decision)
        else:
            self._tell_grown(workload, known, after)
        self.report.resized.append(decision.workload)
        self.report.say(lines.resized_line, workload, known, decision, preemptor)

    def _part(self, held: Held, known: Known, decision: Shrink) -> None:
        """Let the pods that were taken stand apart until the backend has seen them go."""
        now = self._world.now
        part = set_apart(held, now, decision.reason.value)
        key = leaving_key(known.key)
        pods = leaver(known, decision.pods, self._known.get(key)).admission
        assert pods is not None
        note_lost(held.pk, known, decision.pods, now)
        Placement.objects.filter(admission=part).delete()
        self._placements += _placements(part.pk, known, pods.assignments)
        self._world.admissions[key] = held._replace(pk=part.pk, evicted_at=now, is_part=True)

    def _tell_taken(self, workload: Face, preemptor: Face | None, decision: Shrink) -> None:
        now, right = self._world.now, decision.right.value if decision.right else ""
        pods = sum(one.count for one in decision.pods)
        facts = {"taken": pods, "right": right, **lines.lost_by(decision)}
        reason, by = decision.reason.value, preemptor.uid if preemptor else None
        self._lines.append(Line(workload.uid, now, "surplus_taken", reason, facts, by))
        if preemptor is not None:
            taken = {"taken": pods}
            line = Line(preemptor.uid, now, "preempting", right, taken, workload.uid)
            self._lines.append(line)

    def _tell_grown(self, workload: Face, known: Known, after: tuple[Assignment, ...]) -> None:
        """Write that it has more pods, or has those back that went with their node."""
        before = known.admission.assignments if known.admission else ()
        pods, had = sum(a.count for a in after), sum(a.count for a in before)
        facts = {"pods": pods, "from_pods": had, "gpus": workload.gpus}
        kind = "grown" if pods > had else "mended"
        self._lines.append(Line(workload.uid, self._world.now, kind, facts=facts))

    def _held_idle(self, key: str) -> dict[str, float]:
        """Return the GPU-hours that were held idle until this one could start, if any."""
        now = self._world.snapshot.now
        kept = (one for one in self._world.snapshot.memory.reservations if one.workload == key)
        hours = round(sum(idle_gpu_hours(one, now) for one in kept), 2)
        return {"held_idle_gpu_hours": hours} if hours else {}

    def _grow(self, known: Known, decision: Admit) -> None:
        """Give a running workload the pods that it asked for, on the admission that it has."""
        workload, held = self._face(known.key), self._world.admissions.get(known.replaces)
        gone = self._changed_nodes.intersection(nodes_of(decision.assignments))
        if workload is None or held is None or gone or not grow(workload, known, decision):
            self.report.stale.append(decision.workload)
            return
        self._tell_grown(workload, self._known[known.replaces], decision.assignments)
        Placement.objects.filter(admission=held.pk).delete()
        self._placements += _placements(held.pk, known, decision.assignments)
        self.report.admitted.append(decision.workload)
        self.report.say(lines.grown_line, workload, known, decision)

    def hold(self, decision: Hold) -> None:
        """Note why the workload waits, if the row says anything else."""
        workload = self._face(decision.workload)
        if workload is None:
            return
        key = decision.workload
        if self._known[key].replaces or key in self._world.admissions:  # it holds something
            self._hold_growth(workload, decision)
            return
        if workload.status != Status.PENDING:
            return
        self.report.held += 1
        blockers, text = self._worded(decision.blockers)
        told = (decision.reason.value, text, decision.position)
        if workload.told != told:
            workload.told = told
            row = (workload.uid, Status.PENDING.value, told[0], blockers, told[2])
            self._held.append(row)

    def _hold_growth(self, workload: Face, decision: Hold) -> None:
        """Note why a running workload waits for the pods that it asked for."""
        blockers, _ = self._worded(decision.blockers)
        waits = {"reason": decision.reason.value, "blockers": blockers}
        asked = workload.growth != NO_GROWTH or not self._known[decision.workload].replaces
        after = {**workload.grows, **waits}
        if asked and workload.growth != as_text(after):
            workload.growth = as_text(after)
            self._growing.append((workload.uid, workload.status, after))

    def _worded(self, blockers: tuple[Blocker, ...]) -> tuple[list[dict[str, Any]], str]:
        """Return blockers as a row holds them, and as text; once for those of one form."""
        known = self._blockers.get(id(blockers))
        if known is None:
            rows = [asdict(blocker) for blocker in blockers]
            known = self._blockers[id(blockers)] = blockers, rows, as_text(rows)
        return known[1], known[2]

    def write_moves(self) -> None:
        """Write who holds what from now on; whatever has changed meanwhile is left out."""
        self._write_evictions()
        self._write_admissions()
        persist.insert(Placement, PLACEMENT, self._placements)
        moves.tell_all(self._lines)

    def write_reasons(self) -> None:
        """Write why others wait. A hold never touches work that has left Pending."""
        columns = ("pending_reason", "blockers", "position")
        persist.update(Workload, ("uid", "status"), columns, self._held)
        persist.update(Workload, ("uid", "status"), ("growth",), self._growing)

    def _write_evictions(self) -> None:
        """Take admissions back, in a few statements for all of them."""
        if not self._evicts:
            return
        asked = [(one, self._eviction(one)) for one in self._evicts]
        taken = evict_all([eviction for _, eviction in asked if eviction], self._world.now)
        for decision, eviction in asked:
            if eviction is None or eviction.face.uid not in taken:
                self.report.stale.append(decision.workload)
            else:
                self._note_evicted(eviction, decision)

    def _eviction(self, decision: Evict) -> Eviction | None:
        face, preemptor = self._face(decision.workload), self._face(decision.preemptor)
        if face is None:
            return None
        right = decision.right
        facts: dict[str, Any] = {"right": right.value if right else "", "gpus": face.gpus}
        facts |= {
            # The engine counts from the admission; before its pods were ready it had done nothing.
            **(lines.lost_by(decision) if face.status == Status.RUNNING else {}),
            **lines.goes_to(decision),
            **lines.shares_of(decision),
        }
        return Eviction(face, decision.reason, facts, preemptor.uid if preemptor else None)

    def _note_evicted(self, eviction: Eviction, decision: Evict) -> None:
        face, now, preemptor = eviction.face, self._world.now, self._face(decision.preemptor)
        if (held := self._world.admissions.get(decision.workload)) and not held.evicted_at:
            self._world.admissions[decision.workload] = held._replace(evicted_at=now)
        if preemptor is not None:
            kind = "consolidating" if decision.moves_to else "preempting"
            right, gpus = eviction.facts["right"], {"gpus": eviction.facts["gpus"]}
            self._lines.append(Line(preemptor.uid, now, kind, right, gpus, face.uid))
        self.report.evicted.append(decision.workload)
        self.report.say(lines.evicted_line, face, decision, preemptor)

    def _write_admissions(self) -> None:
        """Write what is held from now on; where checks have still to agree it is reserved."""
        started = self._start()
        done = [one for one in self._admits if one[0].workload in started]
        self.report.stale += [d.workload for d, _, _ in self._admits if d.workload not in started]
        admissions, anew = [], []
        now, ids = self._world.now, persist.new_ids(Admission, len(done))
        for pk, (decision, _, _) in zip(ids, done, strict=True):
            face, known = self._world.faces[decision.workload], self._known[decision.workload]
            queue, reserved = known.queue or "", face.status == Status.PENDING
            admissions.append((pk, face.uid, queue, now, reserved))
            self._placements += _placements(pk, known, decision.assignments)
            if known.reclaimable:  # who starts again, starts all anew
                anew.append(face.uid)
            self.report.admitted.append(decision.workload)
            self.report.say(lines.admitted_line, face, known, decision)
            self._world.admissions[decision.workload] = face.holds(pk, queue, now)
        persist.insert(Admission, ADMISSION, admissions)
        for part in persist.batches(anew):
            PodSet.objects.filter(workload__in=part).update(finished=0)

    def _start(self) -> set[str]:
        """Move the workloads that are admitted; return the keys of those that had not changed."""
        if not self._admits:
            return set()
        self._checks = self._checks or checks.read_required()
        free: list[Admitted] = []
        asked: list[Admitted] = []
        for one in self._admits:
            (asked if self._checks.of(self._queue_of(one[0])) else free).append(one)
        faces, now = self._world.faces, self._world.now
        taken = {
            d.workload: Move(faces[d.workload], Status.ADMITTED, now, facts=facts, gpus=gpus)
            for d, facts, gpus in free
        }
        done = moves.take(list(taken.values()))
        started = {key for key, move in taken.items() if move.workload.uid in done}
        for key in started:
            faces[key].follow(taken[key])
            faces[key].told = NOTHING_TOLD
        return started | self._reserve(asked)

    def _queue_of(self, decision: Admit) -> str:
        return self._known[decision.workload].queue or ""

    def _reserve(self, asked: list[Admitted]) -> set[str]:
        """Keep quota and nodes until checks have agreed."""
        if not asked:
            return set()
        assert self._checks is not None
        faces, required = self._world.faces, self._checks
        wanted = {}
        for decision, facts, gpus in asked:
            face, names = faces[decision.workload], required.of(self._queue_of(decision))
            reservation = Reservation(face, names, required.awaited(names), facts, gpus)
            wanted[decision.workload] = reservation
        done = reserve_all(list(wanted.values()), self._world.now)
        return {key for key, one in wanted.items() if one.face.uid in done}


def _placements(
    admission: int, known: Known, assignments: Iterable[Assignment]
) -> list[tuple[Any, ...]]:
    """Return a row for each node of each pod set; one without a node where there are none."""
    pod_sets = {pod_set.name: pod_set for pod_set in known.pod_sets}
    return [
        (
            admission,
            assignment.pod_set,
            node,
            count,
            dict(assignment.flavors),
            dict(pod_sets[assignment.pod_set].requests),
            pod_sets[assignment.pod_set].charges,
            [list(pod) for pod in assignment.devices.get(node, ())],
        )
        for assignment in assignments
        for node, count in (assignment.nodes or {"": assignment.count}).items()
    ]


def nodes_of(assignments: Iterable[Assignment]) -> set[str]:
    """Return the names of all nodes on which these assignments put pods."""
    return {name for assignment in assignments for name in assignment.nodes}


def _changed_nodes(plan: Plan, world: Loaded) -> set[str]:
    """Return the chosen nodes that are no longer as they were loaded; lock the others.

    PostgreSQL makes an editor of a locked node wait for the commit. SQLite has one writer anyway.
    """
    more = [d for d in plan.decisions if isinstance(d, Admit | Grow)]
    chosen = {name for decision in more for name in nodes_of(decision.assignments)}
    if not chosen:
        return set()
    locked = Node.objects.select_for_update().filter(name__in=chosen).order_by("name")
    versions = dict(locked.values_list("name", "version"))
    return {name for name in chosen if versions.get(name) != world.nodes[name].version}
