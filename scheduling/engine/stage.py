"""Where a preemptor tries out evictions: the books as they will be once victims have left."""

from scheduling.engine.books import Books
from scheduling.engine.journal import Trial
from scheduling.engine.quota import QuotaLedger
from scheduling.engine.snapshot import Workload
from scheduling.engine.standing import standing
from scheduling.engine.tournament import Usage
from scheduling.engine.tree import QuotaKey


class SoonStage:
    """The books as a stage: who is evicted frees the ``soon`` account."""

    def __init__(self, books: Books) -> None:
        self._books = books
        self.ledger: QuotaLedger = books.soon.ledger

    def trial(self) -> Trial:
        """Open a block whose changes are undone unless kept."""
        return self._books.trial()

    def charge(self, queue: QuotaKey, usage: Usage) -> None:
        """Charge quota alone."""
        for fr, amount in usage.items():
            self.ledger.reserve(queue, fr, amount)

    def give(self, queue: QuotaKey, usage: Usage) -> None:
        """Undo a charge."""
        for fr, amount in usage.items():
            self.ledger.release(queue, fr, amount)

    def remove(self, work: Workload) -> None:
        """Take running work away; a gang takes its surplus along."""
        for one in self._books.parts.go(work):
            self._books.leave(one, standing(one))

    def put_back(self, work: Workload) -> None:
        """Undo a removal."""
        for one in self._books.parts.come(work):
            self._books.hold(one, standing(one), self._books.coming)
            self._books.stay(one, standing(one))
