"""What somebody wants of a new team, as plain data."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from finops.budgets.saving import BudgetSpec
from queues.specs import ClusterQueueSpec, PersonSpec, TeamSpec


@dataclass(frozen=True, slots=True)
class Place:
    """Somebody's role in the team; ``person`` and ``password`` are of somebody who is made."""

    username: str
    role: str
    person: PersonSpec | None = None
    password: str | None = None


@dataclass(frozen=True, slots=True)
class Door:
    """A namespace of the team, and the local queue in it; "" is none."""

    namespace: str
    local_queue: str = ""


@dataclass(frozen=True, slots=True)
class Plan:
    """Everything that a new team gets. What is None or empty it does not get.

    People and doors are known by the number of the row that they stand in, so that a problem
    finds its row. ``new_queue`` is made; ``queue`` is there and belongs to nobody yet;
    ``no_queue`` says that none is wanted, where otherwise it was not understood yet which.
    """

    team: TeamSpec | None
    people: Mapping[int, Place]
    doors: Mapping[int, Door]
    new_queue: ClusterQueueSpec | None = None
    queue: str = ""
    no_queue: bool = False
    budget: BudgetSpec | None = None

    @property
    def target(self) -> str:
        """Return the name of the queue that the doors lead to, "" without one."""
        return self.new_queue.name if self.new_queue else self.queue

    def passwords(self) -> list[Place]:
        """Return who is made with a password that is to be handed over."""
        return [place for place in self.people.values() if place.password]


def repeated(names: Iterable[tuple[int, str]]) -> list[int]:
    """Return the rows that name somebody whom an earlier row has named, whatever the capitals."""
    seen: set[str] = set()
    again = []
    for number, name in names:
        if name.lower() in seen:
            again.append(number)
        seen.add(name.lower())
    return again
