"""Whose turn it is in a cohort, and why: past use or shares of its queues, as the engine judges.

Everybody sees their own queues and their places; the names and figures of others are for those
who see everything.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from math import isinf

from django.urls import reverse
from django.utils.translation import gettext

from queues.access import Actor
from scheduling.engine.fairness import Regime
from scheduling.engine.metering import admitted_ledger
from scheduling.engine.quota import QuotaLedger
from scheduling.engine.shares import weight
from scheduling.engine.snapshot import FlavorResource, Snapshot
from scheduling.engine.terms import Fairness
from scheduling.engine.tournament import Figure
from scheduling.engine.tree import Kind, QuotaKey, cohort_key, queue_key
from scheduling.engine.usage import is_gpu

WHOLE = 1000.0  # of the engine's shares: everything that can be lent
DAY_S = 86_400


@dataclass(frozen=True, slots=True)
class Child:
    """One queue or cohort next to its sisters.

    ``hours``: decayed GPU-hours. ``each``: those, over promised GPUs and weight. ``share``:
    percent of what can be lent that it holds above its own, over weight. Both are None where they
    are infinite. ``turn`` counts from 1 among those who wait; None: nobody waits there.
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
        """Return who stands first, and by what; what a request adds counts at its turn."""
        if not self.anybody_waits:
            return gettext("Nobody waits: what is free goes to whoever asks.")
        first = next((child for child in self.children if child.turn == 1), None)
        if first is None:
            return gettext("Another team stands first.")
        if first.borrows:
            how = gettext("all who wait hold more than their own")
        elif any(child.turn and child.borrows for child in self.children):
            how = gettext("it holds no more than its own")
        elif self.by_history:
            how = gettext("it has used least for what it is promised")
        else:
            how = gettext("it holds least above its own")
        said = gettext(
            "%(name)s stands first: %(how)s. What its work asks for counts at its turn."
        )
        return said % {"name": first.name, "how": how}


def turns(
    actor: Actor, snapshot: Snapshot, cohort: str, own: Mapping[str, object]
) -> Turns | None:
    """Return how the sisters of ``cohort`` stand; None where nothing but priority counts.

    ``own`` are the queues that the reader may see. No query.
    """
    view = _View(snapshot)
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
        snapshot.half_life_s / DAY_S,
    )


class _View:
    """One snapshot as the engine judges it, with everything that is admitted."""

    def __init__(self, snapshot: Snapshot) -> None:
        self.snapshot, self.ledger = snapshot, admitted_ledger(snapshot)
        self.regime = Regime(snapshot, self.ledger)
        self._waiting = _waiting(snapshot, self.ledger)

    def placed(self, sisters: Iterable[QuotaKey]) -> list[Child]:
        """Return the sisters in the order of their turns; who has nobody waiting comes last."""
        keys = sorted(sisters)
        total = sum(weight(self.snapshot, key) for key in keys)
        made = [(self._figure(key), self._child(key, total)) for key in keys]
        made.sort(key=lambda pair: (not pair[1].waiting, pair[1].borrows, pair[0], pair[1].name))
        return [
            replace(child, turn=place if child.waiting else None)
            for place, (_, child) in enumerate(made, start=1)
        ]

    def _figure(self, key: QuotaKey) -> Figure:
        """Return what the engine compares of a sister as she stands, without a request."""
        if self.regime.mode(key) is Fairness.HISTORY:
            return self.regime.history.figure(key)
        return tuple(self.regime.shares.of(key))

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


def _waiting(snapshot: Snapshot, ledger: QuotaLedger) -> Counter[QuotaKey]:
    """Return how much work waits in each part of the tree that could be admitted."""
    counts: Counter[QuotaKey] = Counter()
    for work in snapshot.workloads:
        stands = work.admission is not None or work.replaces or work.blocked
        if not stands and work.queue in snapshot.cluster_queues:
            counts.update(ledger.path(queue_key(work.queue or "")))
    return counts


def _gpu_columns(ledger: QuotaLedger, key: QuotaKey) -> set[FlavorResource]:
    members = ledger.members(key) if key.kind is Kind.COHORT else (key,)
    return {fr for node in members for fr in ledger.nodes[node].quotas if is_gpu(fr.resource)}
