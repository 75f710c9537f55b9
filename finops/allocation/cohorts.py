"""Queues that lend to each other, and the integrals of what they share (FORMAT.md 4)."""

from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from finops.allocation.facts import Instant, Number, Quota
from finops.allocation.money import exact_sum

NOBODY = ""  # the lender of what no quota covers

CohortKey = tuple[bool, str]  # (is a queue alone, name)


@dataclass(slots=True, eq=False)
class Run:
    """A run that holds GPUs; runs of one ``group`` are billed as one."""

    index: int
    group: int
    gpus: Number
    queue: "Queue | None"
    since: Instant
    own: Number = field(init=False)

    def __post_init__(self) -> None:
        self.own = self.gpus  # until the queue shares its nominal out


@dataclass(slots=True, eq=False)
class Stock:
    """All queues on one flavor of a cluster, against what stands there."""

    capacity: Number = 0
    used: Number = 0
    nominal: Number = 0
    net_idle: Number = 0  # of all cohorts, before it is scaled
    scale: Number = 1
    scaled_time: Number = 0  # integral of scale
    borrowing: "set[Cohort]" = field(default_factory=set)

    def rescale(self) -> None:
        """Cut net idle to the room that there is."""
        room = self.capacity - self.used
        is_short = self.net_idle > room and self.net_idle > 0
        self.scale = Fraction(max(0, room)) / self.net_idle if is_short else 1

    def advance(self, length: int) -> None:
        """Let time pass."""
        self.scaled_time += self.scale * length
        for cohort in self.borrowing:
            cohort.advance(length, self.scale)


@dataclass(slots=True, eq=False)
class Queue:
    """A queue; what it lends, of what it could, follows from its cohort."""

    name: str
    since: Instant
    nominal: Number = 0
    borrowing_limit: Number | None = None
    lending_limit: Number | None = None
    held: Number = 0
    borrowed: Number = 0
    idle: Number = 0
    lendable: Number = 0
    cohort: "Cohort | None" = None
    runs: dict[int, Run] = field(default_factory=dict)
    order: list[tuple[Any, int]] = field(default_factory=list)
    # The integrals of the cohort and the stock when this queue was last settled.
    lent_mark: Number = 0
    scaled_mark: Number = 0
    lent_scaled_mark: Number = 0

    @property
    def beyond_limit(self) -> Number:
        """What is borrowed past the borrowing limit."""
        if self.borrowing_limit is None:
            return 0
        return max(0, self.borrowed - self.borrowing_limit)

    def promise(self, quota: Quota | None) -> None:
        """Set the quota in force; None promises nothing."""
        self.nominal = quota.nominal if quota else 0
        self.borrowing_limit = quota.borrowing_limit if quota else None
        self.lending_limit = quota.lending_limit if quota else None

    def add(self, order: Any, run: Run) -> None:
        """Take a run in, at its place in the order that fills nominal."""
        self.order.insert(bisect_left(self.order, (order, run.index)), (order, run.index))
        self.runs[run.index] = run
        self.held += run.gpus

    def remove(self, order: Any, run: Run) -> None:
        """Let a run go."""
        del self.order[bisect_left(self.order, (order, run.index))]
        del self.runs[run.index]
        self.held -= run.gpus

    def splits(self) -> Iterator[tuple[Run, Number]]:
        """Yield the runs whose part on the queue's own quota changes, with that part."""
        if self.held <= self.nominal and not self.borrowed:
            return  # nothing was borrowed, nothing is: every run is its own already
        left = self.nominal
        for _, index in self.order:
            run = self.runs[index]
            own = min(run.gpus, left)
            left -= own
            if own != run.own:
                yield run, own

    def mark(self) -> None:
        """Remember the integrals of cohort and stock as they are now."""
        cohort = self.cohort
        assert cohort
        self.lent_mark = cohort.lent_part
        self.scaled_mark = cohort.stock.scaled_time
        self.lent_scaled_mark = cohort.lent_scaled

    def take_shares(self) -> tuple[Number, Number]:
        """Return lent and scaled net idle since the last mark, and set a new one."""
        cohort = self.cohort
        assert cohort
        lent: Number = 0
        net_idle: Number = 0
        if self.idle:
            net_idle = self.idle * (cohort.stock.scaled_time - self.scaled_mark)
        if self.lendable:
            lent = self.lendable * (cohort.lent_part - self.lent_mark)
            net_idle -= self.lendable * (cohort.lent_scaled - self.lent_scaled_mark)
        self.mark()
        return lent, net_idle


class Cohort:
    """Queues with one root cohort, or a queue alone.

    Of what they can lend, the part ``min(B, L) / L`` is lent; a borrowed GPU is held from a
    lender in the proportion of its lendable GPUs, and past ``L`` from nobody.
    """

    def __init__(self, key: CohortKey, stock: Stock) -> None:
        self.key = key
        self.stock = stock
        self.members: dict[str, Queue] = {}
        self.borrowed: Number = 0
        self.lendable: Number = 0
        self.idle: Number = 0
        self.lent_part: Number = 0  # integral of min(B, L) / L
        self.lent_scaled: Number = 0  # the same times the stock's scale
        self._borrowers: dict[int, Number] = {}  # group -> GPUs
        self._lenders: dict[str, Number] = {}  # queue -> lendable GPUs
        self._drawn: dict[tuple[int, str], dict[Number, Number]] = {}

    @property
    def _net_idle(self) -> Number:
        return self.idle - min(self.borrowed, self.lendable)

    def join(self, queue: Queue) -> None:
        """Take in a queue that has no part in another cohort any more."""
        self.members[queue.name] = queue
        queue.cohort = self
        queue.mark()
        self._count(queue.borrowed, queue.lendable, queue.idle)
        self._lend(queue.name, queue.lendable)
        for run in queue.runs.values():
            self.borrow(run.group, run.gpus - run.own)

    def leave(self, queue: Queue) -> None:
        """Let a settled queue go."""
        del self.members[queue.name]
        self._count(-queue.borrowed, -queue.lendable, -queue.idle)
        self._lend(queue.name, 0)
        for run in queue.runs.values():
            self.borrow(run.group, run.own - run.gpus)

    def update(self, queue: Queue) -> None:
        """Derive what a settled member borrows and could lend from what it holds."""
        before = (queue.borrowed, queue.lendable, queue.idle)
        queue.borrowed = max(0, queue.held - queue.nominal)
        queue.idle = max(0, queue.nominal - queue.held)
        limit = queue.lending_limit
        queue.lendable = queue.idle if limit is None else min(queue.idle, limit)
        self._count(queue.borrowed - before[0], queue.lendable - before[1], queue.idle - before[2])
        self._lend(queue.name, queue.lendable)

    def borrow(self, group: int, gpus: Number) -> None:
        """Let a group of runs borrow so much more, or less."""
        if not gpus:
            return
        borrowed = self._borrowers.get(group, 0) + gpus
        if borrowed:
            self._borrowers[group] = borrowed
        else:
            del self._borrowers[group]

    def _lend(self, queue: str, gpus: Number) -> None:
        if gpus:
            self._lenders[queue] = gpus
        else:
            self._lenders.pop(queue, None)

    def _count(self, borrowed: Number, lendable: Number, idle: Number) -> None:
        self.stock.net_idle -= self._net_idle
        self.borrowed += borrowed
        self.lendable += lendable
        self.idle += idle
        self.stock.net_idle += self._net_idle
        if self.borrowed:
            self.stock.borrowing.add(self)
        else:
            self.stock.borrowing.discard(self)

    def advance(self, length: int, scale: Number) -> None:
        """Let time pass while something is borrowed."""
        if self.lendable:
            part = Fraction(min(self.borrowed, self.lendable)) / self.lendable
            self.lent_part += part * length
            self.lent_scaled += part * scale * length
        # Of b borrowed GPUs, b x lendable / max(B, L) are a lender's: summed by denominator, since
        # a sum of fractions with ever new ones is slow long before it is large.
        shares = dict(self._lenders)
        if self.borrowed > self.lendable:
            shares[NOBODY] = self.borrowed - self.lendable
        whole = max(self.borrowed, self.lendable)
        for group, borrowed in self._borrowers.items():
            held = borrowed * length
            for lender, share in shares.items():
                sums = self._drawn.setdefault((group, lender), {})
                sums[whole] = sums.get(whole, 0) + held * share

    def take_drawn(self) -> Iterator[tuple[int, str, Fraction]]:
        """Yield what each group drew from each lender since the last time it was taken."""
        for (group, lender), sums in self._drawn.items():
            drawn = exact_sum(Fraction(part) / whole for whole, part in sums.items())
            yield group, lender, drawn
        self._drawn = {}

    def open_loans(self) -> Iterator[tuple[str, str, Number]]:
        """Yield lender, borrower and GPUs of the loans as they stand."""
        for borrower in self.members.values():
            if not borrower.borrowed:
                continue
            part = Fraction(borrower.borrowed) / self.borrowed
            if self.borrowed > self.lendable:
                yield NOBODY, borrower.name, (self.borrowed - self.lendable) * part
            for lender in self.members.values():
                if lender.lendable:
                    lent = Fraction(min(self.borrowed, self.lendable)) / self.lendable
                    yield lender.name, borrower.name, lender.lendable * lent * part
