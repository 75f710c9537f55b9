"""Plan in, rows out: the only writer of scheduling decisions."""

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field

from django.db.models import F

from scheduling import lifecycle, lines
from scheduling.checks import read_required
from scheduling.engine.gangs import without
from scheduling.engine.parts import leaver, leaving_key
from scheduling.engine.plan import Admit, Evict, Grow, Hold, Plan, Shrink
from scheduling.engine.reservations import idle_gpu_hours
from scheduling.engine.snapshot import Assignment
from scheduling.engine.snapshot import Workload as Known
from scheduling.engine.standing import shrunk
from scheduling.engine.terms import Status
from scheduling.lines import goes_to
from scheduling.loader import LIVE, Loaded, growth_key
from scheduling.models import Admission, Node, Placement, PodSet, Workload
from scheduling.shrinking import trim

HOLDING = (Status.ADMITTED.value, Status.RUNNING.value)
BATCH = 200  # rows per statement: SQLite bounds the parameters of one


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


def apply_plan(plan: Plan, world: Loaded) -> ApplyReport:
    """Write a plan inside the caller's transaction.

    Each decision is written whole or not at all: a workload that has changed since ``world`` was
    loaded, or one of whose nodes has, is left as it is. Holds cost nothing where they say what
    the row already says.
    """
    applied = _Application(plan, world)
    for decision in plan.decisions:
        match decision:
            case Evict():
                applied.evict(decision)
            case Admit():
                applied.admit(decision)
            case Grow() | Shrink():
                applied.resize(decision)
            case Hold():
                applied.hold(decision)
    applied.write()
    return applied.report


class _Application:
    """One plan on its way into the tables: states change at once, the other rows in bulk."""

    def __init__(self, plan: Plan, world: Loaded) -> None:
        self.report = ApplyReport()
        self._world = world
        self._known = {w.key: w for w in world.snapshot.workloads}
        self._rows = _rows()
        self._rows |= {growth_key(uid): row for uid, row in self._rows.items()}
        self._changed_nodes = _changed_nodes(plan, world)
        self._checks = read_required()
        self._admissions: list[Admission] = []
        self._placements: list[Placement] = []
        self._held: list[Workload] = []
        self._growing: list[Workload] = []

    def evict(self, decision: Evict) -> None:
        """Take the admission back; the backend releases what it holds."""
        victim, now = self._rows.get(decision.workload), self._world.now
        preemptor = self._rows.get(decision.preemptor or "")
        right = decision.right.value if decision.right else ""
        gpus = {"gpus": victim.gpus if victim else 0}
        facts = {"right": right, **gpus, **_lost(decision), **goes_to(decision)}
        if (
            victim is None
            or victim.version != self._known[decision.workload].version
            or not lifecycle.evict(victim, decision.reason, at=now, facts=facts, other=preemptor)
        ):
            self.report.stale.append(decision.workload)
            return
        if preemptor is not None:
            kind = "consolidating" if decision.moves_to else "preempting"
            lifecycle.tell(preemptor, kind, at=now, reason=right, facts=gpus, other=victim)
        self.report.evicted.append(decision.workload)
        self.report.lines.append(lines.evicted_line(victim, decision, preemptor))

    def admit(self, decision: Admit) -> None:
        """Give quota and nodes to the whole gang, unless it or a chosen node has changed."""
        workload, known = self._rows.get(decision.workload), self._known[decision.workload]
        if known.replaces:
            self._grow(workload, known, decision)
            return
        nodes = nodes_of(decision.assignments)
        gpus = _granted_gpus(known, decision.assignments)
        facts = {
            "queue": known.queue or "",
            "gpus": lines.gpus_in(known, decision.assignments),
            "nodes": len(nodes),
            "borrows": dict(decision.borrows),
            **_part_of(known, decision.assignments),
            **self._held_idle(decision.workload),
        }
        untouched = not self._changed_nodes.intersection(nodes)
        if (
            workload is None
            or not untouched
            or not self._give(workload, known, facts=facts, gpus=gpus)
        ):
            self.report.stale.append(decision.workload)
            return
        if known.reclaimable:  # who starts again, starts all anew
            PodSet.objects.filter(workload=workload).update(finished=0)
        admission = Admission(
            workload=workload,
            cluster_queue=known.queue or "",
            admitted_at=self._world.now,
            is_reserved=workload.status == Status.PENDING,
        )
        self._admissions.append(admission)
        self._placements += _placements(admission, known, decision.assignments)
        self.report.admitted.append(decision.workload)
        self.report.lines.append(lines.admitted_line(workload, known, decision))

    def resize(self, decision: Grow | Shrink) -> None:
        """Let a running gang have more pods, or let some of its surplus go."""
        workload, known = self._rows.get(decision.workload), self._known[decision.workload]
        admission, preemptor = self._world.admissions.get(decision.workload), None
        if isinstance(decision, Grow):
            after = decision.assignments
        else:
            assert known.admission is not None
            after = without(known.admission.assignments, decision.pods)
            preemptor = self._rows.get(decision.preemptor or "")
        grows = isinstance(decision, Grow)
        gone = grows and self._changed_nodes.intersection(nodes_of(after))
        if workload is None or admission is None or gone or not resize(workload, known, after):
            self.report.stale.append(decision.workload)
            return
        Placement.objects.filter(admission=admission).delete()
        self._placements += _placements(admission, known, after)
        if isinstance(decision, Shrink):
            self._part(admission, known, decision)
            self._tell_taken(workload, preemptor, decision)
        else:
            self._tell_grown(workload, known, after)
        line = lines.resized_line(workload, known, decision, preemptor)
        self.report.resized.append(decision.workload)
        self.report.lines.append(line)

    def _part(self, admission: Admission, known: Known, decision: Shrink) -> None:
        """Let the pods that were taken stand apart until the backend has seen them go."""
        part, _ = Admission.objects.update_or_create(
            workload_id=admission.workload_id,
            is_part=True,
            released_at=None,
            defaults={"evicted_at": self._world.now, "eviction_reason": decision.reason.value},
            create_defaults={
                "cluster_queue": admission.cluster_queue,
                "admitted_at": admission.admitted_at,
                "started_at": admission.started_at,
                "evicted_at": self._world.now,
                "eviction_reason": decision.reason.value,
                "is_part": True,
            },
        )
        before = self._known.get(leaving_key(known.key))
        pods = leaver(known, decision.pods, before).admission
        assert pods is not None
        Placement.objects.filter(admission=part).delete()
        self._placements += _placements(part, known, pods.assignments)

    def _tell_taken(
        self, workload: Workload, preemptor: Workload | None, decision: Shrink
    ) -> None:
        now, right = self._world.now, decision.right.value if decision.right else ""
        pods = sum(one.count for one in decision.pods)
        facts = {"taken": pods, "right": right, **_lost(decision)}
        reason = decision.reason.value
        lifecycle.tell(
            workload, "surplus_taken", at=now, reason=reason, facts=facts, other=preemptor
        )
        if preemptor is not None:
            lifecycle.tell(
                preemptor,
                "preempting",
                at=now,
                reason=right,
                facts={"taken": pods},
                other=workload,
            )

    def _tell_grown(self, workload: Workload, known: Known, after: tuple[Assignment, ...]) -> None:
        """Write that it has more pods, or has those back that went with their node."""
        before = known.admission.assignments if known.admission else ()
        pods, had = sum(a.count for a in after), sum(a.count for a in before)
        facts = {"pods": pods, "from_pods": had, "gpus": workload.gpus}
        kind = "grown" if pods > had else "mended"
        lifecycle.tell(workload, kind, at=self._world.now, facts=facts)

    def _held_idle(self, key: str) -> dict[str, float]:
        """Return the GPU-hours that were held idle until this one could start, if any."""
        now = self._world.snapshot.now
        kept = (one for one in self._world.snapshot.memory.reservations if one.workload == key)
        hours = round(sum(idle_gpu_hours(one, now) for one in kept), 2)
        return {"held_idle_gpu_hours": hours} if hours else {}

    def _grow(self, workload: Workload | None, known: Known, decision: Admit) -> None:
        """Give a running workload the pods that it asked for, on the admission that it has."""
        admission = self._world.admissions.get(known.replaces)
        gone = self._changed_nodes.intersection(nodes_of(decision.assignments))
        if workload is None or admission is None or gone or not grow(workload, known, decision):
            self.report.stale.append(decision.workload)
            return
        self._tell_grown(workload, self._known[known.replaces], decision.assignments)
        Placement.objects.filter(admission=admission).delete()
        self._placements += _placements(admission, known, decision.assignments)
        self.report.admitted.append(decision.workload)
        self.report.lines.append(lines.grown_line(workload, known, decision))

    def hold(self, decision: Hold) -> None:
        """Note why the workload waits, if the row says anything else."""
        workload = self._rows.get(decision.workload)
        if workload is None:
            return
        if self._known[decision.workload].replaces or workload.status in HOLDING:
            self._hold_growth(workload, decision)
            return
        if workload.status != Status.PENDING:
            return
        self.report.held += 1
        blockers = [asdict(blocker) for blocker in decision.blockers]
        says = (workload.pending_reason, workload.blockers, workload.position)
        if says != (decision.reason, blockers, decision.position):
            workload.pending_reason = decision.reason.value
            workload.blockers = blockers
            workload.position = decision.position
            self._held.append(workload)

    def _hold_growth(self, workload: Workload, decision: Hold) -> None:
        """Note why a running workload waits for the pods that it asked for."""
        blockers = [asdict(blocker) for blocker in decision.blockers]
        waits = {"reason": decision.reason.value, "blockers": blockers}
        asked = workload.growth or not self._known[decision.workload].replaces
        if asked and workload.growth != {**workload.growth, **waits}:
            workload.growth = {**workload.growth, **waits}
            self._growing.append(workload)

    def write(self) -> None:
        """Write what was collected. A hold never touches work that has left Pending."""
        Admission.objects.bulk_create(self._admissions, batch_size=BATCH)
        for placement in self._placements:
            placement.admission_id = placement.admission.pk
        Placement.objects.bulk_create(self._placements, batch_size=BATCH)
        pending = Workload.objects.filter(status=Status.PENDING)
        columns = ["pending_reason", "blockers", "position"]
        pending.bulk_update(self._held, columns, batch_size=BATCH)
        holding = Workload.objects.filter(status__in=HOLDING)
        holding.bulk_update(self._growing, ["growth"], batch_size=BATCH)

    def _give(
        self, workload: Workload, known: Known, *, facts: Mapping[str, object], gpus: int
    ) -> bool:
        """Admit a workload, or reserve for it where checks have still to agree."""
        now, names = self._world.now, self._checks.of(known.queue or "")
        if workload.version != known.version:
            return False
        if names:
            told = {**facts, "checks": ", ".join(names)}
            return lifecycle.reserve(workload, names, at=now, facts=told, gpus=gpus)
        return lifecycle.transition(workload, Status.ADMITTED, at=now, facts=facts, gpus=gpus)


def _lost(decision: Evict | Shrink) -> dict[str, float]:
    """Return the GPU-hours of progress that an eviction throws away, to a tenth."""
    lost = round(decision.lost_gpu_hours, 1)
    return {"lost_gpu_hours": lost} if lost else {}


def resize(workload: Workload, known: Known, assignments: Iterable[Assignment]) -> bool:
    """Write what a running workload holds; False where it has changed since it was seen."""
    unchanged = Workload.objects.filter(pk=workload.pk, version=known.version, status__in=HOLDING)
    gpus = _granted_gpus(known, assignments)
    if not unchanged.update(version=F("version") + 1, gpus=gpus, growth={}):
        return False
    workload.version, workload.gpus, workload.growth = known.version + 1, gpus, {}
    return True


def grow(workload: Workload, known: Known, decision: Admit) -> bool:
    """Write the size that a running workload had asked for; False where it has changed since."""
    if not resize(workload, known, decision.assignments):
        return False
    more = PodSet.objects.filter(workload=workload).exclude(wanted=None)
    more.update(count=F("wanted"), wanted=None)
    return True


def trim_placements(world: Loaded) -> None:
    """Take the pods off the nodes of elastic work that was brought to a smaller size.

    Which pods go follows from the engine's rule, so quota, nodes and rows agree. Costs nothing
    where nothing shrank.
    """
    for work in world.snapshot.workloads:
        if work.admission is None:
            continue
        wanted = {pod_set.name: pod_set.count for pod_set in work.pod_sets}
        for assignment in work.admission.assignments:
            pods = wanted.get(assignment.pod_set, assignment.count)
            if pods < assignment.count:
                placed = Placement.objects.filter(
                    admission=world.admissions[work.key], pod_set=assignment.pod_set
                )
                trim(placed, shrunk(assignment.nodes or {"": assignment.count}, pods))


def _granted_gpus(known: Known, assignments: Iterable[Assignment]) -> int:
    requests = {pod_set.name: pod_set.requests for pod_set in known.pod_sets}
    return lifecycle.gpus_of((a.count, requests[a.pod_set]) for a in assignments)


def _part_of(known: Known, assignments: Iterable[Assignment]) -> dict[str, int]:
    """Return how many pods of how many start, where not all do (``admission.md`` K36)."""
    pods = sum(assignment.count for assignment in assignments)
    asked = sum(pod_set.count for pod_set in known.pod_sets)
    return {} if pods == asked else {"pods": pods, "of_pods": asked}


def _placements(
    admission: Admission, known: Known, assignments: Iterable[Assignment]
) -> list[Placement]:
    """Return a row for each node of each pod set; one without a node where there are none."""
    pod_sets = {pod_set.name: pod_set for pod_set in known.pod_sets}
    return [
        Placement(
            admission=admission,
            pod_set=assignment.pod_set,
            node=node,
            count=count,
            flavors=dict(assignment.flavors),
            requests=dict(pod_sets[assignment.pod_set].requests),
            charges=pod_sets[assignment.pod_set].charges,
            devices=[list(pod) for pod in assignment.devices.get(node, ())],
        )
        for assignment in assignments
        for node, count in (assignment.nodes or {"": assignment.count}).items()
    ]


def _rows() -> dict[str, Workload]:
    """Return the live workloads as they are now, by key."""
    live = Workload.objects.filter(status__in=LIVE).defer("template", "annotations", "labels")
    return {str(row.uid): row for row in live}


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
