"""What queues hold above all that they may use: debt, after a cut anywhere in their tree.

Source: ``decisions.md`` 4 (usage above a limit that was cut later is debt, not a fault).
"""

from collections.abc import Mapping
from dataclasses import dataclass

from scheduling.engine.metering import admitted_ledger
from scheduling.engine.snapshot import FlavorResource, Snapshot
from scheduling.engine.tree import Kind
from scheduling.engine.usage import held_usage


@dataclass(frozen=True, slots=True)
class Debt:
    """What a queue holds of one column, and how much of it lies above what it may use."""

    used: int
    over: int

    @property
    def ceiling(self) -> int:
        """Return what the queue may use as things stand."""
        return self.used - self.over


Debts = Mapping[tuple[str, FlavorResource], Debt]


def debts(snapshot: Snapshot) -> Debts:
    """Return the debts by queue and column; releasing work counts until it has gone.

    Whoever stays within its own owes nothing, whatever its tree lacks: only what is borrowed is
    debt. Of queues that together borrow more than there is each is told the whole of it.
    """
    ledger = admitted_ledger(snapshot)
    held = {fr for work in snapshot.workloads for fr in held_usage(work)}
    found = {}
    for key in ledger.nodes:
        for fr in held if key.kind is Kind.QUEUE else ():
            over = min(ledger.borrowed(key, fr), -ledger.available(key, fr))
            if over > 0:
                found[key.name, fr] = Debt(ledger.used(key, fr), over)
    return found
