"""Manifests in: read all, keep promises first, decide workloads one by one, say everything.

Unreadable text refuses the whole submission. Readable objects are decided one by one, as with
``kubectl apply``; ``atomic`` makes it all or nothing. Each object is one transaction.
"""

from collections.abc import Iterable
from dataclasses import replace

from django.db import transaction

from gpuplatform.common.diagnostics import Diagnostic, errors_of
from gpuplatform.common.problems import Rejected
from gpuplatform.common.progress import report as report_progress
from gpuplatform.doors import consequences, promises
from gpuplatform.doors.hypernodes.keeping import keep as keep_hypernode
from gpuplatform.doors.hypernodes.specs import HyperNodeSpec
from gpuplatform.doors.intake import RANKS, Item, read_submission
from gpuplatform.doors.replicas import already_there, standing, surplus
from gpuplatform.doors.report import CREATED, UNCHANGED, ImportReport, ObjectResult
from queues.access import Actor, actor_for
from queues.models import User
from queues.specs import ClusterQueueSpec
from scheduling.loader import load_snapshot
from scheduling.manifests.kueue import KIND as EXPORTED
from scheduling.manifests.work import VOLCANO_DEFAULT
from scheduling.routes import resolve_queue
from scheduling.selectors.edits import standing_now
from scheduling.selectors.forecast import forecast
from scheduling.services import Refused, load_world, submit_workload, within_rights
from scheduling.specs import WorkloadSpec
from scheduling.world import World


def import_documents(
    text: str | bytes,
    *,
    actor: Actor | User | None,
    atomic: bool = False,
    dry_run: bool = False,
    reason: str = "",
) -> ImportReport:
    """Take a submission in and return what became of each object.

    Args:
        text: YAML with several documents, or JSON.
        actor: who asks; None for the system, which may do everything.
        atomic: keep nothing if one object is rejected.
        dry_run: decide everything, keep nothing.
        reason: why promises change, for the audit trail.

    Raises:
        Rejected: the text cannot be read; nothing was changed.
    """
    items = read_submission(text)
    asking = actor_for(actor) if isinstance(actor, User) else actor
    if not (atomic or dry_run):
        return _Import(items, asking, reason).run()
    with transaction.atomic():
        report = _Import(items, asking, reason).run()
        report.dry_run = dry_run
        if dry_run:
            _foretell(report, asking)
        report.undone = atomic and bool(report.rejected)
        if dry_run or report.undone:
            transaction.set_rollback(True)
    return report


def _foretell(report: ImportReport, actor: Actor | None) -> None:
    """Say of each workload that would be new what the next cycle would do with it."""
    fresh = [result for result in report.results if result.action == CREATED and result.workloads]
    if fresh:
        keys = dict.fromkeys(uid for result in fresh for uid in result.workloads)
        told = forecast(keys, load_snapshot(), actor)
        for result in fresh:
            result.tell(told[uid] for uid in result.workloads)


class _Import:
    """One submission on its way in."""

    def __init__(self, items: list[Item], actor: Actor | None, reason: str) -> None:
        self.items = items
        self.actor = actor
        self.reason = reason
        self.user = actor.user if actor else None
        self.hypernodes: set[str] = set()  # that are kept
        self.results = {
            item.document.index: ObjectResult(item.document, item.kind, item.name)
            for item in items
        }

    def run(self) -> ImportReport:
        """Keep everything that may be kept; results stand in the order of the submission."""
        report = ImportReport([self.results[item.document.index] for item in self.items])
        judged = consequences.changes_promises(self.items)
        before = standing_now() if judged else None
        ranked = sorted(self.items, key=lambda item: item.order)
        promised = [i for i in ranked if i.specs and not isinstance(i.specs[-1], WorkloadSpec)]
        whole = len(self.items)
        for come, item in enumerate(promised):
            report_progress(come, whole)
            if item.rank == RANKS.index(ClusterQueueSpec):  # the nodes are kept by now
                promises.share_by_weight(self.items)
            self._keep_promise(item)
        works = [item for item in self.items if isinstance(_last(item), WorkloadSpec)]
        if judged or works:
            world = load_world()
            if before is not None:
                by_index = {item.document.index: item for item in self.items}
                consequences.judge(report, by_index, before, world.snapshot)
            for come, item in enumerate(works, start=len(promised)):
                report_progress(come, whole)
                self._submit(item, world)
        for item in self.items:
            if not item.specs:
                self._follow(item)
            result = self.results[item.document.index]
            if not result.is_rejected:
                result.tell(surplus(item.document, len(item.specs), self.actor))
        return report

    # ---- promises, nodes, prices -------------------------------------------------------------
    def _keep_promise(self, item: Item) -> None:
        result = self.results[item.document.index]
        if not promises.may_keep(item, self.actor):
            result.reject([Diagnostic("NOT_ALLOWED", item.document.subject)])
            return
        promises.settle_owner(item)
        promises.tell_checks(item)
        if errors_of(item.diagnostics):
            result.reject(item.diagnostics)
            return
        result.tell(item.diagnostics)
        try:
            with transaction.atomic():
                result.action = self._kept(item, result)
        except Rejected as error:
            subject = item.document.subject
            result.reject(Diagnostic.from_problem(subject, p) for p in error.problems)

    def _kept(self, item: Item, result: ObjectResult) -> str:
        """Keep what an item promises; return the action."""
        spec = item.specs[-1]
        if not isinstance(spec, HyperNodeSpec):
            return promises.keep(item, self.user, self.reason)
        told: list[Diagnostic] = []
        action = keep_hypernode(spec, told, self.hypernodes, self.user, self.reason)
        self.hypernodes.add(spec.name)
        result.tell(told)
        return action

    # ---- workloads -----------------------------------------------------------------------------
    def _submit(self, item: Item, world: World) -> None:
        result = self.results[item.document.index]
        result.action = UNCHANGED
        try:
            with transaction.atomic():
                for spec in item.specs:
                    self._submit_one(item, spec, world)
        except Refused as error:
            result.reject(error.diagnostics)

    def _submit_one(self, item: Item, spec: WorkloadSpec, world: World) -> None:
        result = self.results[item.document.index]
        spec, known = _with_default_queue(spec, item.diagnostics, world)
        if self.actor is not None:
            world = within_rights(spec, world, self.actor)
        is_exported = item.kind == EXPORTED
        if uid := (
            standing(spec, world, self.actor) if is_exported else already_there(spec, self.actor)
        ):
            result.workloads.append(uid)
            result.tell(known)
            return
        taken = submit_workload(spec, actor=self.user, known=known, world=world)
        result.action = CREATED
        result.tell(taken.diagnostics)
        assert taken.workload is not None
        result.workloads.append(str(taken.workload.uid))

    def _follow(self, item: Item) -> None:
        """Give a document without specs of its own the verdict of the gang it belongs to."""
        result = self.results[item.document.index]
        result.tell(item.diagnostics)
        leader = next(
            (r for r in self.results.values() if r.document.subject == item.member_of), None
        )
        if leader is not None and leader.is_rejected:
            result.reject(errors_of(leader.diagnostics))
        elif leader is not None:
            result.action, result.workloads = leader.action, list(leader.workloads)
        elif errors := errors_of(item.diagnostics):
            result.reject(errors)


def _last(item: Item) -> object:
    return item.specs[-1] if item.specs else None


def _with_default_queue(
    spec: WorkloadSpec, diagnostics: Iterable[Diagnostic], world: World
) -> tuple[WorkloadSpec, list[Diagnostic]]:
    """Send work for Volcano that names no queue to Volcano's default one, if that is there."""
    known = list(diagnostics)
    if spec.queue or not any(d.code == "QUEUE_DEFAULTED" for d in known):
        return spec, known
    if resolve_queue(spec.namespace, VOLCANO_DEFAULT, world.doors) is None:
        return spec, known
    left = [diagnostic for diagnostic in known if diagnostic.code != "QUEUE_DEFAULTED"]
    return replace(spec, queue=VOLCANO_DEFAULT), left
