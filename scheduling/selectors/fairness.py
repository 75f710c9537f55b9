"""Whose turn it is in a cohort, and why: past use or shares of its queues, as the engine judges.

Everybody sees their own queues and their places; the names and figures of others are for those
who see everything.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from math import isinf

from django.urls import reverse
from django.utils.translation import gettext

from queues.access import Actor
from scheduling.engine.atlas import Atlas
from scheduling.engine.fairness import Regime
from scheduling.engine.feasibility import Checker
from scheduling.engine.flavors import options_of
from scheduling.engine.metering import admitted_ledger
from scheduling.engine.ordering import urgency
from scheduling.engine.quota import QuotaLedger
from scheduling.engine.shares import weight
from scheduling.engine.snapshot import FlavorResource, Snapshot, Workload
from scheduling.engine.terms import DiagnosticCode, Fairness
from scheduling.engine.tournament import Contender, Tournament
from scheduling.engine.tree import Kind, QuotaKey, cohort_key, queue_key
from scheduling.engine.usage import is_gpu, quota_usage

WHOLE = 1000.0  # of the engine's shares: everything that can be lent
DAY_S = 86_400


@dataclass(frozen=True, slots=True)
class Child:
    """One queue or cohort next to its sisters.

    ``hours``: decayed GPU-hours. ``each``: those, over promised GPUs and weight. ``share``:
    percent of what can be lent that it holds above its own, over weight. Both are None where they
    are infinite. ``turn`` counts from 1 among those who wait; None: nobody waits there.
    ``would_borrow``: whether it would, with what its next workload asks for.
    """

    name: str
    is_queue: bool
    weight: float
    part: float  # percent of the weights of all sisters
    promised: int
    held: int
    borrows: bool
    hours: float
    each: float | None
    share: float | None
    waiting: int
    turn: int | None = None
    would_borrow: bool = False

    @property
    def page(self) -> str:
        """Return the address of its page."""
        return reverse("queue" if self.is_queue else "cohort", args=[self.name])


@dataclass(frozen=True, slots=True)
class Turns:
    """The sisters in one cohort. ``children`` are those that the reader may see."""

    mode: Fairness
    children: tuple[Child, ...]
    sisters: int
    anybody_waits: bool
    half_life_days: float

    @property
    def by_history(self) -> bool:
        """Return whether past use decides."""
        return self.mode is Fairness.HISTORY

    @property
    def sentence(self) -> str:
        """Return who stands first, and by what: each with what its next workload asks for."""
        if not self.anybody_waits:
            return gettext("Nobody waits: what is free goes to whoever asks.")
        first = next((child for child in self.children if child.turn == 1), None)
        if first is None:
            return gettext("Another team stands first.")
        by = (
            gettext("it has used least for what it is promised")
            if self.by_history
            else gettext("with its request it would borrow least")
        )
        if first.would_borrow:
            how = gettext("all who wait would borrow, and %(by)s") % {"by": by}
        elif any(child.turn and child.would_borrow for child in self.children):
            how = gettext("what it asks for is its own quota")
        else:
            how = by
        words = gettext("%(name)s stands first: %(how)s.") % {"name": first.name, "how": how}
        idle = [child.name for child in self.children if child.waiting and not child.turn]
        if idle:  # else their figures, smaller perhaps, seem to contradict it
            why = gettext("Nothing that waits there can start, so it has no turn: %(names)s.")
            words = f"{words} {why % {'names': ', '.join(idle)}}"
        return words


def turns(actor: Actor, view: "View", cohort: str, own: Mapping[str, object]) -> Turns | None:
    """Return how the sisters of ``cohort`` stand; None where nothing but priority counts.

    ``own`` are the queues that the reader may see. No query.
    """
    key = cohort_key(cohort)
    if key not in view.ledger.nodes or not view.regime.is_fair(key):
        return None
    placed = view.placed(view.ledger.children.get(key, ()))
    seen = [c for c in placed if actor.sees_everything or (c.is_queue and c.name in own)]
    return Turns(
        view.regime.mode(key),
        tuple(seen),
        len(placed),
        any(child.turn for child in placed),
        view.snapshot.half_life_s / DAY_S,
    )


class View:
    """One snapshot as the engine judges it, with everything that is admitted.

    ``heads`` returns who may be next in the queues, and is asked only where something is shared;
    ``waiting``: how many wait in each.
    """

    def __init__(
        self,
        snapshot: Snapshot,
        heads: Callable[[], Iterable[Workload]],
        waiting: Mapping[str, int],
    ) -> None:
        self.snapshot, self.ledger = snapshot, admitted_ledger(snapshot)
        self.regime = Regime(snapshot, self.ledger)
        self._atlas, self._checker = Atlas(snapshot), Checker(snapshot)
        self._heads = heads
        self._waiting: Counter[QuotaKey] = Counter()
        self._contenders: dict[QuotaKey, Contender[Workload] | None] = {}
        for name in waiting.keys() & snapshot.cluster_queues.keys():
            for key in self.ledger.path(queue_key(name)):
                self._waiting[key] += waiting[name]

    @cached_property
    def _lines(self) -> dict[str, list[Workload]]:
        return _lines(self.snapshot, self._heads())

    def placed(self, sisters: Iterable[QuotaKey]) -> list[Child]:
        """Return the sisters in the order of their turns; who has nobody waiting comes last."""
        keys = sorted(sisters)
        total = sum(weight(self.snapshot, key) for key in keys)
        tournament = self._tournament(keys)
        made = [(tournament.place(key), self._child(key, total)) for key in keys]
        made.sort(key=lambda pair: (pair[0] is None, pair[0] or (), pair[1].name))
        return [
            replace(child, turn=turn, would_borrow=place.borrows) if place else child
            for turn, (place, child) in enumerate(made, start=1)
        ]

    def _tournament(self, sisters: Iterable[QuotaKey]) -> Tournament[Workload]:
        """Let the next workload of each queue compete, as the engine does."""
        tournament = Tournament[Workload](
            self.ledger, lambda one, at: self.regime.footing(one.queue, one.usage, at)
        )
        for sister in sisters:
            for queue in self.ledger.members(sister):
                contender = self._contender(queue) if queue.kind is Kind.QUEUE else None
                if contender is not None:
                    tournament.enter(contender)
                    tournament.replay(queue)
        return tournament

    def _contender(self, queue: QuotaKey) -> Contender[Workload] | None:
        """Return who competes for a queue, the same in each cohort above it."""
        if queue not in self._contenders:
            head = self._head(queue)
            self._contenders[queue] = (
                Contender(queue, self._asks(head), urgency(head), head) if head else None
            )
        return self._contenders[queue]

    def _head(self, queue: QuotaKey) -> Workload | None:
        """Return who is next in a queue: the most urgent that can run at all."""
        line = sorted(self._lines.get(queue.name, ()), key=urgency)
        return next((work for work in line if not self._is_hopeless(work)), None)

    def _is_hopeless(self, work: Workload) -> bool:
        found = self._checker.check(work)
        return any(finding.code is not DiagnosticCode.NEEDS_WHOLE_CLUSTER for finding in found)

    def _asks(self, work: Workload) -> Counter[FlavorResource]:
        """Return what it would be charged on the first flavors that it may use."""
        usage: Counter[FlavorResource] = Counter()
        queue = self.snapshot.cluster_queues[work.queue or ""]
        for pod_set in work.pod_sets:
            for option in options_of(self._atlas, queue, pod_set).choices[:1]:
                usage.update(quota_usage(pod_set, pod_set.count, option))
        return usage

    def _child(self, key: QuotaKey, total: float) -> Child:
        share, history = self.regime.shares.of(key), self.regime.history
        each, own = history.figure(key)[0], weight(self.snapshot, key)
        columns = _gpu_columns(self.ledger, key)
        return Child(
            name=key.name,
            is_queue=key.kind is Kind.QUEUE,
            weight=own,
            part=100 * own / total if total else 0.0,
            promised=history.promised(key),
            held=sum(self.ledger.used(key, fr) for fr in columns),
            borrows=share.borrows,
            hours=history.hours(key),
            each=None if isinf(each) else each,
            share=None if isinf(share.value) else 100 * share.value / WHOLE,
            waiting=self._waiting.get(key, 0),
        )


def _lines(snapshot: Snapshot, heads: Iterable[Workload]) -> dict[str, list[Workload]]:
    """Return the work that waits and could be admitted, by queue."""
    lines: dict[str, list[Workload]] = {}
    for work in heads:
        queue = work.queue or ""
        if queue in snapshot.cluster_queues and not (work.replaces or work.blocked):
            lines.setdefault(queue, []).append(work)
    return lines


def _gpu_columns(ledger: QuotaLedger, key: QuotaKey) -> set[FlavorResource]:
    members = ledger.members(key) if key.kind is Kind.COHORT else (key,)
    return {fr for node in members for fr in ledger.nodes[node].quotas if is_gpu(fr.resource)}
