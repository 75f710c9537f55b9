"""In which order the heads of one cycle are processed (``FORMAT.md`` 6.1 and 6.2)."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from scheduling.engine.kueue.picture import Picture
from scheduling.engine.ordering import urgency
from scheduling.engine.shares import Shares, borrowing, compared, reaching
from scheduling.engine.tournament import Contender, Footing, Tournament
from scheduling.engine.tree import Kind, QuotaKey

if TYPE_CHECKING:
    from scheduling.engine.kueue.cycle import Entry


def classic(entries: Sequence["Entry"]) -> Iterator["Entry"]:
    """Yield who borrows from nearer first, then by priority, age and key."""
    yield from sorted(
        entries, key=lambda entry: (entry.nomination.level, *urgency(entry.workload))
    )


def by_share(picture: Picture, shares: Shares, entries: Sequence["Entry"]) -> Iterator["Entry"]:
    """Yield the winners of each cohort tree as the picture changes, queues without cohort last."""
    ledger = picture.ledger

    def footing(contender: Contender["Entry"], at: QuotaKey) -> Footing:
        for node, usage in reaching(ledger, contender.queue, contender.usage):
            if node == at:
                share = compared(shares.of(node, usage))
                return Footing(borrowing(ledger, node, usage), share)
        raise AssertionError(f"{contender.queue} is not below {at}")

    tournament = Tournament["Entry"](ledger, footing)
    for entry in entries:
        usage, work = entry.nomination.usage, entry.workload
        tournament.enter(Contender(entry.queue, usage, urgency(work), entry))
        tournament.replay(entry.queue)
    roots = {ledger.root(entry.queue) for entry in entries}
    for root in sorted(roots, key=lambda key: (key.kind is Kind.QUEUE, key.name)):
        while (winner := tournament.champion(root)) is not None:
            tournament.withdraw(winner.queue)
            yield winner.who
            tournament.replay(winner.queue)
