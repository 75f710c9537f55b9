"""Views: how many pods of one kind each node and domain can hold, and which node is best.

A view belongs to the nodes that a pod set may use, to what one of its pods takes, to the rooms
in which it must fit and to a policy. It is built once and then catches up: when asked, it looks
again at the holes of which there are more or fewer nodes than when it was last asked, and at no
other (``census.py``). What a hole is worth to a shape is worked out once for all nodes that ever
look like it.
"""

from collections import Counter, OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from weakref import WeakValueDictionary

from scheduling.engine.census import Census
from scheduling.engine.domains import Domains
from scheduling.engine.ground import Footprint, Ground
from scheduling.engine.machines import PODS
from scheduling.engine.scoring.holes import Shape
from scheduling.engine.scoring.order import Order
from scheduling.engine.scoring.policies import Policy, policy_of, scale_of
from scheduling.engine.scoring.popularity import Popularity
from scheduling.engine.scoring.rating import Rating
from scheduling.engine.slices import Grain
from scheduling.engine.tables import HoleTable
from scheduling.engine.tally import Tally
from scheduling.engine.terms import PlacementPolicy

KEPT = 256  # views; of more, the one that was not asked for the longest is forgotten


@dataclass(frozen=True, eq=False, slots=True)
class Field:
    """The nodes that may be used, by number in order, and the domains in which they stand."""

    numbers: tuple[int, ...]
    domains: Domains


class View:
    """What the nodes of a field can hold of one kind of pod.

    ``total`` counts the pods that fit, ``hosts`` the nodes by how many pods they hold. Ask
    :meth:`refresh` before anything else.
    """

    def __init__(
        self, ground: Ground, field: Field, pod: Footprint, census: Census, policy: Policy
    ) -> None:
        self.field, self._ground, self._census = field, ground, census
        self._rating = Rating(ground, pod, policy)
        # By grain, with the place in the log of nodes up to which they have been counted.
        self._tallies: dict[Grain, tuple[Tally, int]] = {}
        self._order: Order | None = None
        census.refresh()
        self._mark = census.changed.end
        self._count_anew()

    def looked(self, nodes: int = 0, *, weighed: int = 0) -> None:
        """Count nodes that were looked at, and domains that were weighed."""
        self._ground.looked += nodes
        self._ground.weighed += weighed

    def rate_by(self, policy: Policy) -> None:
        """Let another policy say which node is best."""
        self._rating.rate_by(policy)
        self._order = None

    # -- catching up --------------------------------------------------------------------------

    def refresh(self) -> None:
        """Look again at the holes whose nodes are others. Cost: O(those), O(log holes) each."""
        census, mark = self._census, self._mark
        census.refresh()
        self._mark = census.changed.end
        if mark == self._mark:
            return
        changed = census.changed.since(mark)
        if changed is None:
            self._count_anew()
            return
        there = changed & census.alike.keys()
        gone = (changed & self._counted.keys()) - there
        self.looked(len(there) + len(gone))
        self._forget(gone)
        fitting = [hole for hole in there if self._rating.fits[hole]]
        self._count(fitting)
        if self._order is not None:
            self._order.enter(fitting)
            if self._order.worn_out:
                self._order = None

    def _count_anew(self) -> None:
        self.total, self.hosts, self._counted = 0, Counter[int](), dict[int, int]()
        self._order = None
        self._count([hole for hole in self._census.alike if self._rating.fits[hole]])

    def _count(self, holes: Iterable[int]) -> None:
        """Count how many nodes look like these, in which pods fit."""
        alike, fits, counted = self._census.alike, self._rating.fits, self._counted
        for hole in holes:
            now, pods = len(alike[hole]), fits[hole]
            more = now - counted.get(hole, 0)
            if more:
                counted[hole] = now
                self.hosts[pods] += more
                self.total += pods * more

    def _forget(self, holes: Iterable[int]) -> None:
        """Let no node look like these any more."""
        for hole in holes:
            nodes, pods = self._counted.pop(hole), self._rating.fits[hole]
            self.hosts[pods] -= nodes
            self.total -= pods * nodes

    def tally(self, grain: Grain = ()) -> Tally:
        """Return the room of the domains; counted from the first time on that it is asked for.

        ``grain``: of slices, in which rooms are then counted.
        """
        moved = self._census.moved
        tally, mark = self._tallies.get(grain) or (Tally(self.field.domains, grain), -1)
        if mark != moved.end:
            changed = moved.since(mark)
            numbers = self.field.numbers if changed is None else changed
            tally.count(numbers, self._census.holes, self._rating.fits)
            self._tallies[grain] = tally, moved.end
        return tally

    # -- nodes --------------------------------------------------------------------------------

    def pods(self, number: int) -> int:
        """Return how many pods a node of the field can hold."""
        return self._rating.fits[self._census.holes[number]]

    def demerit(self, number: int) -> int:
        """Return how bad a place the node is, one that can hold a pod."""
        return self._rating.demerits[self._census.holes[number]]

    def ranked(self, numbers: Iterable[int]) -> list[int]:
        """Return nodes that can hold a pod in the order of merit; ``numbers`` in theirs."""
        demerits, holes = self._rating.demerits, self._census.holes
        return sorted(numbers, key=lambda number: demerits[holes[number]])

    def seats(self, number: int, pods: int) -> tuple[tuple[int, ...], ...]:
        """Return the devices of each of so many pods on the node; none where they are counted."""
        return self._rating.seats(self._census.holes[number], pods)

    def most(self) -> int:
        """Return how many pods the roomiest node can hold."""
        return max(self._sizes(), default=0)

    def snug(self, count: int) -> int | None:
        """Return the tightest node that can hold so many pods, of equals the best; None: none."""
        pods = min((pods for pods in self._sizes() if pods >= count), default=0)
        best = self.order().top(pods)
        return best[1] if best else None

    def by_merit(self, count: int) -> dict[int, int] | None:
        """Place pod after pod on the node that is best then, by the policy, then by number.

        Nothing is taken. None: not all of them fit. Cost: O(count x log nodes).
        """
        if count > self.total:
            return None
        if count > 1:
            return self.order().pick(count, self._sizes())
        best = self.order().best(self._sizes())
        return None if best is None else {best: 1}

    def order(self) -> Order:
        """Return the nodes in the order of merit; kept from the first time it is asked for."""
        if self._order is None:
            self._order = Order(self._rating, self._census.alike)
        return self._order

    def _sizes(self) -> list[int]:
        return [pods for pods, nodes in self.hosts.items() if nodes]


class Views:
    """The views of one ground. What is forgotten is built again: no answer depends on it."""

    def __init__(self, ground: Ground) -> None:
        self._ground = ground
        holes = [ground.holes[hole] for hole in ground.empty]
        plain = [int(resource != PODS) for resource in [*ground.columns][: ground.plain]]
        self._scale = scale_of(holes, (*plain, max(1, sum(plain))), ground.plain)
        self._policies: dict[PlacementPolicy, Policy] = {}
        self._expected: Mapping[Shape, int] | None = None
        self._views: OrderedDict[tuple[int, ...], tuple[View, PlacementPolicy]] = OrderedDict()
        self._censuses = WeakValueDictionary[tuple[int, ...], Census]()  # views keep them
        self.expect({})

    def expect(self, weights: Mapping[Shape, int]) -> None:
        """Let these shapes be what usually comes, by how often."""
        if weights == self._expected:
            return
        self._expected = dict(weights)
        self.popularity = Popularity(weights, self._ground.plain)
        for policy in PlacementPolicy:
            self._policies[policy] = policy_of(policy, self.popularity, self._scale)
        for view, policy in self._views.values():
            view.rate_by(self._policies[policy])

    def policy(self, policy: PlacementPolicy) -> Policy:
        """Return how a policy rates holes with what is expected now."""
        return self._policies[policy]

    def view(
        self, field: Field, pod: Footprint, policy: PlacementPolicy, tables: Sequence[HoleTable]
    ) -> View:
        """Return a view that is up to date."""
        key = (id(field), pod.number, id(policy), *map(id, tables))
        known = self._views.get(key)
        if known is None:
            census, rate = self._census(field, tables), self._policies[policy]
            known = self._views[key] = View(self._ground, field, pod, census, rate), policy
            if len(self._views) > KEPT:
                self._views.popitem(last=False)
        else:
            self._views.move_to_end(key)
        known[0].refresh()
        return known[0]

    def _census(self, field: Field, tables: Sequence[HoleTable]) -> Census:
        """Return the count of a field's nodes, one for all views of it."""
        key = id(field), *map(id, tables)
        found = self._censuses.get(key)
        if found is None:
            found = self._censuses[key] = Census(self._ground, field.numbers, tables)
        return found
