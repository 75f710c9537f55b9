"""Where the name of a queue or cohort leads, for one reader: "" where the page is not theirs."""

from collections.abc import Mapping
from functools import cached_property
from typing import NamedTuple

from django.urls import reverse

from queues.access import Actor, visible
from queues.models import ClusterQueue, Cohort


class Part(NamedTuple):
    """What one queue or cohort holds or lends. ``name`` "": nobody, a debt after a cut."""

    name: str
    gpus: int  # or whatever the resource counts in
    page: str = ""


class Pages:
    """The pages of queues and cohorts that one reader may open. 2 queries at most.

    None where somebody has read them already: ``queues`` are those that the reader sees, each
    with its cohort, ``parents`` all cohorts, each with the one above.
    """

    def __init__(
        self,
        actor: Actor,
        queues: Mapping[str, str | None] | None = None,
        parents: Mapping[str, str | None] | None = None,
    ) -> None:
        self._actor = actor
        self._known_queues, self._known_parents = queues, parents

    def of_queue(self, name: str) -> str:
        """Return the address of a cluster queue's page."""
        return reverse("queue", args=[name]) if name in self._queues else ""

    def of_lender(self, name: str) -> str:
        """Return the address of a lender's page: of a cluster queue, else of a cohort."""
        if name in self._cohorts and name not in self._queues:
            return reverse("cohort", args=[name])
        return self.of_queue(name)

    @cached_property
    def _queues(self) -> Mapping[str, str | None]:
        if self._known_queues is not None:
            return self._known_queues
        rows = visible(ClusterQueue.objects.all(), self._actor)
        return dict(rows.values_list("name", "cohort__name"))

    @cached_property
    def _cohorts(self) -> set[str]:
        """Return the cohorts that the reader sees: all, or the way up from something own."""
        parents = self._known_parents
        if parents is None:
            parents = dict(Cohort.objects.values_list("name", "parent__name"))
        if self._actor.sees_everything:
            return set(parents)
        seen: set[str] = set()
        for name in self._queues.values():
            step = name
            while step and step not in seen:
                seen.add(step)
                step = parents.get(step)
        return seen
