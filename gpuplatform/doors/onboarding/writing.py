"""The one writer of a whole team: each part by its own service, in one transaction."""

from collections.abc import Callable, Collection
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, TypeVar

from django.db import transaction
from django.utils.translation import gettext as _

from finops.budgets.saving import save_budget
from gpuplatform.common.problems import Problem, Rejected, Stale
from gpuplatform.doors.onboarding.plans import Place, Plan, repeated
from queues.descriptions import describe_cluster_queue
from queues.models import ClusterQueue, Team, User
from queues.services import (
    add_person,
    give_namespace,
    person_called,
    save_cluster_queue,
    save_local_queue,
    save_team,
    set_membership,
)
from queues.specs import ClusterQueueSpec, LocalQueueSpec

Saved = TypeVar("Saved")
ONLY_NEW = 0  # as a version: what is saved must not be there yet


@transaction.atomic
def onboard(plan: Plan, *, actor: User, reason: str = "") -> Team | None:
    """Make the team with everything that the plan gives it, or nothing; None without a team.

    Problems say which part they are about: ``team.name``, ``people[1].username``,
    ``doors[0].namespace.name``, ``queue.groups[0]...``, ``budget.limit``.

    Raises:
        Rejected: a part breaks a rule of its own; the mistakes of all parts are told at once.
    """
    parts = _Parts(actor, reason)
    team = parts.team(plan)
    parts.people(plan, team)
    parts.namespaces(plan, team)
    parts.queue(plan, team)
    parts.local_queues(plan)
    parts.budget(plan, team)
    if parts.problems:
        raise Rejected(parts.problems)
    return team


@dataclass
class _Parts:
    """The parts of one edit, each tried in a savepoint, and what is wrong with any of them.

    What hangs on a team that is refused is asked as if it were nobody's.
    """

    actor: User
    reason: str
    problems: list[Problem] = field(default_factory=list)

    @property
    def who(self) -> dict[str, Any]:
        """Return who acts and why, as every service takes it."""
        return {"actor": self.actor, "reason": self.reason}

    def team(self, plan: Plan) -> Team | None:
        spec = plan.team
        if spec is None:
            return None
        return self._save("team", lambda: save_team(spec, if_version=ONLY_NEW, **self.who))

    def people(self, plan: Plan, team: Team | None) -> None:
        for number in repeated((n, place.username) for n, place in plan.people.items()):
            words = _("this person is named twice")
            self.problems.append(Problem(f"people[{number}].username", "duplicate", words))
        for number, place in plan.people.items():
            self._save(f"people[{number}]", partial(self._staff, team, place))

    def _staff(self, team: Team | None, place: Place) -> None:
        if place.person:
            user = add_person(place.person, password=place.password, **self.who)
        else:
            user = person_called(place.username)
        if team:
            set_membership(team, user, place.role, self.actor, self.reason)

    def namespaces(self, plan: Plan, team: Team | None) -> None:
        owner = team.name if team else ""
        for number, door in plan.doors.items():
            give = partial(give_namespace, door.namespace, owner, **self.who)
            self._save(f"doors[{number}].namespace", give)

    def queue(self, plan: Plan, team: Team | None) -> None:
        owner = team.name if team else ""
        if plan.new_queue:
            wanted = replace(plan.new_queue, team=owner)
            save = partial(save_cluster_queue, wanted, if_version=ONLY_NEW, **self.who)
            self._save("queue", save)
        elif plan.queue:
            self._save("queue", partial(self._take_queue, plan.queue, owner))
        elif plan.no_queue and any(door.local_queue for door in plan.doors.values()):
            words = _("local queues lead to a queue: choose one, or make one")
            self.problems.append(Problem("queue.which", "required", words))

    def _take_queue(self, name: str, owner: str) -> ClusterQueue:
        return save_cluster_queue(_free_queue(name, owner), **self.who)

    def local_queues(self, plan: Plan) -> None:
        for number, door in plan.doors.items():
            if not door.local_queue:
                continue
            spec = LocalQueueSpec(door.namespace, door.local_queue, plan.target)
            save = partial(save_local_queue, spec, if_version=ONLY_NEW, **self.who)
            # The namespace and the queue have said already what is wrong with their names.
            said = {"namespace", "cluster_queue"}
            self._save(f"doors[{number}].local_queue", save, said)

    def budget(self, plan: Plan, team: Team | None) -> None:
        spec = plan.budget
        if spec is None:
            return
        # Without its team a budget has no subject and a name that nobody chose: the team says why.
        said = set() if team else {"subject", "name"}
        self._save("budget", lambda: save_budget(spec, self.actor, self.reason, ONLY_NEW), said)

    def _save(
        self, path: str, save: Callable[[], Saved], said: Collection[str] = ()
    ) -> Saved | None:
        """Save a part; None where it is refused. ``said``: paths that others tell about."""
        try:
            with transaction.atomic():
                return save()
        except Stale:
            words = _("there is one with this name already")
            self.problems.append(Problem(f"{path}.name", "duplicate", words))
        except Rejected as error:
            told = [one for one in error.problems if one.path not in said]
            self.problems += [replace(one, path=f"{path}.{one.path}") for one in told]
        return None


def _free_queue(name: str, owner: str) -> ClusterQueueSpec:
    """Return a queue that belongs to nobody as one of ``owner``.

    Raises:
        Rejected: it is not there, or another team has it: that one is not robbed by the way.
    """
    known = ClusterQueue.objects.select_related("team", "cohort").prefetch_related("quotas")
    row = known.select_for_update(of=("self",)).filter(name=name).first()
    if row is None:
        raise Rejected([Problem("name", "not_found", _("there is no such queue"))])
    if row.team is not None:
        words = _("this queue belongs to {team} already").format(team=row.team)
        raise Rejected([Problem("name", "in_use", words)])
    return replace(describe_cluster_queue(row), team=owner)
