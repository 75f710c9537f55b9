"""Plan in, rows out: the only writer of scheduling decisions."""

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from scheduling import lifecycle, persist
from scheduling.engine.gangs import without
from scheduling.engine.parts import leaver, leaving_key
from scheduling.engine.plan import Admit, Blocker, Evict, Grow, Hold, Plan, Shrink
from scheduling.engine.reservations import idle_gpu_hours
from scheduling.engine.snapshot import Assignment
from scheduling.engine.snapshot import Workload as Known
from scheduling.engine.terms import PendingReason, Status
from scheduling.lifecycle import Line, Step
from scheduling.lines import admitted_line, evicted_line, gpus_in, grown_line, resized_line
from scheduling.loader import Loaded
from scheduling.models import Admission, Node, Placement, PodSet, Workload
from scheduling.resizing import HOLDING, granted_gpus, grow, resize
from scheduling.works import NO_GROWTH, Face, Held, as_text

NOTHING_TOLD = ("", "[]", None)
PLACEMENT = (
    *("admission_id", "pod_set", "node", "count", "flavors", "requests", "charges"),
    "devices",
)
ADMISSION = ("id", "workload_id", "cluster_queue", "admitted_at")


@dataclass
class ApplyReport:
    """What became of a plan: keys of workloads, and a line for each decision that was written.

    ``stale`` were decided on rows that have changed since; the next cycle decides again.
    """

    admitted: list[str] = field(default_factory=list)
    evicted: list[str] = field(default_factory=list)
    resized: list[str] = field(default_factory=list)
    stale: list[str] = field(default_factory=list)
    held: int = 0
    lines: list[str] = field(default_factory=list)

    @property
    def moved(self) -> bool:
        """Return whether anybody holds other things than before."""
        return bool(self.admitted or self.evicted or self.resized)


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
        self._steps: dict[str, tuple[Step, Evict | Admit]] = {}
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
        victim, preemptor = self._face(decision.workload), self._face(decision.preemptor)
        right = decision.right.value if decision.right else ""
        gpus = victim.gpus if victim else 0
        self._move(
            decision,
            Status.PENDING,
            reason=decision.reason.value,
            facts={"right": right, "gpus": gpus, **_lost(decision)},
            other=preemptor.uid if preemptor else None,
        )

    def admit(self, decision: Admit) -> None:
        """Give quota and nodes to the whole gang, unless it or a chosen node has changed."""
        known = self._known[decision.workload]
        if known.replaces:
            self._grow(known, decision)
            return
        nodes = nodes_of(decision.assignments)
        if self._changed_nodes.intersection(nodes):
            self.report.stale.append(decision.workload)
            return
        facts = {
            "queue": known.queue or "",
            "gpus": gpus_in(known, decision.assignments),
            "nodes": len(nodes),
            "borrows": dict(decision.borrows),
            **_part_of(known, decision.assignments),
            **self._held_idle(decision.workload),
        }
        gpus = granted_gpus(known, decision.assignments)
        self._move(decision, Status.ADMITTED, facts=facts, gpus=gpus)

    def _move(self, decision: Evict | Admit, to: Status, **rest: Any) -> None:
        face = self._world.faces.get(decision.workload)
        current = Status(face.status) if face else Status.FINISHED
        if face is None or (current, to) not in lifecycle.TRANSITIONS:
            self.report.stale.append(decision.workload)
            return
        step = Step(face.uid, face.version, current, to, self._world.now, **rest)
        self._steps[decision.workload] = step, decision

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
        line = resized_line(workload, known, decision, preemptor)
        self.report.resized.append(decision.workload)
        self.report.lines.append(line)

    def _part(self, held: Held, known: Known, decision: Shrink) -> None:
        """Let the pods that were taken stand apart until the backend has seen them go."""
        now, reason = self._world.now, decision.reason.value
        part, _ = Admission.objects.update_or_create(
            workload_id=held.workload_id,
            is_part=True,
            released_at=None,
            defaults={"evicted_at": now, "eviction_reason": reason},
            create_defaults={
                "cluster_queue": held.cluster_queue,
                "admitted_at": held.admitted_at,
                "started_at": held.started_at,
                "evicted_at": now,
                "eviction_reason": reason,
                "is_part": True,
            },
        )
        key = leaving_key(known.key)
        pods = leaver(known, decision.pods, self._known.get(key)).admission
        assert pods is not None
        Placement.objects.filter(admission=part).delete()
        self._placements += _placements(part.pk, known, pods.assignments)
        self._world.admissions[key] = held._replace(pk=part.pk, evicted_at=now, is_part=True)

    def _tell_taken(self, workload: Face, preemptor: Face | None, decision: Shrink) -> None:
        now, right = self._world.now, decision.right.value if decision.right else ""
        pods = sum(one.count for one in decision.pods)
        facts = {"taken": pods, "right": right, **_lost(decision)}
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
        self.report.lines.append(grown_line(workload, known, decision))

    def hold(self, decision: Hold) -> None:
        """Note why the workload waits, if the row says anything else."""
        workload = self._face(decision.workload)
        if workload is None:
            return
        if self._known[decision.workload].replaces or workload.status in HOLDING:
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
        taken = lifecycle.take([step for step, _ in self._steps.values()])
        done = [one for one in self._steps.values() if one[0].workload in taken]
        self.report.stale += [k for k, one in self._steps.items() if one[0].workload not in taken]
        self._write_evictions([(s, d) for s, d in done if isinstance(d, Evict)])
        self._write_admissions([(s, d) for s, d in done if isinstance(d, Admit)])
        persist.insert(Placement, PLACEMENT, self._placements)
        lifecycle.tell_all(self._lines)

    def write_reasons(self) -> None:
        """Write why others wait. A hold never touches work that has left Pending."""
        columns = ("pending_reason", "blockers", "position")
        persist.update(Workload, ("uid", "status"), columns, self._held)
        persist.update(Workload, ("uid", "status"), ("growth",), self._growing)

    def _write_evictions(self, done: list[tuple[Step, Evict]]) -> None:
        """Ask for the release of what the victims hold, and say for whom."""
        now, going = self._world.now, list[tuple[Any, ...]]()
        for step, decision in done:
            victim, preemptor = self._face(decision.workload), self._face(decision.preemptor)
            assert victim is not None
            if (held := self._world.admissions.get(decision.workload)) and not held.evicted_at:
                going.append((held.pk, now, decision.reason.value))
                self._world.admissions[decision.workload] = held._replace(evicted_at=now)
            if preemptor is not None:
                right, facts = (
                    decision.right.value if decision.right else "",
                    {"gpus": victim.gpus},
                )
                line = Line(preemptor.uid, now, "preempting", right, facts, victim.uid)
                self._lines.append(line)
            self.report.evicted.append(decision.workload)
            self.report.lines.append(evicted_line(victim, decision, preemptor))
            victim.follow(step)
            victim.told = (PendingReason.PENDING_EVALUATION.value, *NOTHING_TOLD[1:])
        persist.update(Admission, ("id",), ("evicted_at", "eviction_reason"), going)

    def _write_admissions(self, done: list[tuple[Step, Admit]]) -> None:
        """Write what is held from now on."""
        now, admissions, anew = self._world.now, list[tuple[Any, ...]](), []
        for pk, (step, decision) in zip(persist.new_ids(Admission, len(done)), done, strict=True):
            face, known = self._world.faces[decision.workload], self._known[decision.workload]
            admissions.append((pk, face.uid, known.queue or "", now))
            self._placements += _placements(pk, known, decision.assignments)
            if known.reclaimable:  # who starts again, starts all anew
                anew.append(face.uid)
            self.report.admitted.append(decision.workload)
            self.report.lines.append(admitted_line(face, known, decision))
            self._world.admissions[decision.workload] = face.holds(pk, known.queue or "", now)
            face.follow(step)
            face.told = NOTHING_TOLD
        persist.insert(Admission, ADMISSION, admissions)
        if anew:
            PodSet.objects.filter(workload__in=anew).update(finished=0)


def _lost(decision: Evict | Shrink) -> dict[str, float]:
    """Return the GPU-hours of progress that an eviction throws away, to a tenth."""
    lost = round(decision.lost_gpu_hours, 1)
    return {"lost_gpu_hours": lost} if lost else {}


def _part_of(known: Known, assignments: Iterable[Assignment]) -> dict[str, int]:
    """Return how many pods of how many start, where not all do (``admission.md`` K36)."""
    pods = sum(assignment.count for assignment in assignments)
    asked = sum(pod_set.count for pod_set in known.pod_sets)
    return {} if pods == asked else {"pods": pods, "of_pods": asked}


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
