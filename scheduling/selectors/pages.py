"""Where the name of a queue or cohort leads, for one reader: "" where the page is not theirs."""

from collections.abc import Mapping
from functools import cached_property
from typing import Any, NamedTuple

from django.db.models import QuerySet
from django.urls import reverse

from gpuplatform.common.together import read_together
from queues.access import Actor, visible
from queues.models import ClusterQueue, Cohort


class Part(NamedTuple):
    """What one queue or cohort holds or lends. ``name`` "": nobody, a debt after a cut."""

    name: str
    gpus: int  # or whatever the resource counts in
    page: str = ""


class Pages:
    """The pages of queues and cohorts that one reader may open. 1 query at most.

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
        self._known = None if queues is None or parents is None else (queues, parents)

    def of_queue(self, name: str) -> str:
        """Return the address of a cluster queue's page."""
        return reverse("queue", args=[name]) if name in self.queues else ""

    def of_lender(self, name: str) -> str:
        """Return the address of a lender's page: of a cluster queue, else of a cohort."""
        if name in self._cohorts and name not in self.queues:
            return reverse("cohort", args=[name])
        return self.of_queue(name)

    @property
    def queues(self) -> Mapping[str, str | None]:
        """Return the cluster queues that the reader sees, each with its cohort."""
        return self._read[0]

    @cached_property
    def _read(self) -> tuple[Mapping[str, str | None], Mapping[str, str | None]]:
        if self._known is not None:
            return self._known
        queues, parents = read_together(*asked_of_pages(self._actor))
        return dict(queues), dict(parents)

    @cached_property
    def _cohorts(self) -> set[str]:
        """Return the cohorts that the reader sees: all, or the way up from something own."""
        queues, parents = self._read
        if self._actor.sees_everything:
            return set(parents)
        seen: set[str] = set()
        for name in queues.values():
            step = name
            while step and step not in seen:
                seen.add(step)
                step = parents.get(step)
        return seen


def asked_of_pages(actor: Actor) -> tuple[QuerySet[Any, Any], QuerySet[Any, Any]]:
    """Return the questions for what :class:`Pages` takes: queues with cohorts, and cohorts."""
    queues = visible(ClusterQueue.objects.order_by(), actor)
    parents = Cohort.objects.order_by()
    return queues.values_list("name", "cohort__name"), parents.values_list("name", "parent__name")
