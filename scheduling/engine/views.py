"""Views: how many pods of one kind each node and domain can hold, and which node is best.

A view belongs to the nodes that a pod set may use, to what one of its pods takes, to the rooms
in which it must fit and to a policy. It is built once and then catches up: when asked, it looks
again at the nodes that have changed since it was last asked, and at no other. What a hole is
worth to a shape is worked out once for all nodes that ever look like it.
"""

from collections import Counter, OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from scheduling.engine.domains import Domains
from scheduling.engine.ground import Footprint, Ground, HoleTable, Meeting
from scheduling.engine.machines import PODS
from scheduling.engine.scoring.holes import Shape
from scheduling.engine.scoring.order import Order
from scheduling.engine.scoring.policies import Policy, policy_of, scale_of
from scheduling.engine.scoring.popularity import Popularity
from scheduling.engine.scoring.rating import Rating
from scheduling.engine.slices import Grain
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
        self, ground: Ground, field: Field, pod: Footprint, table: HoleTable, policy: Policy
    ) -> None:
        self.field, self._ground, self._table = field, ground, table
        self._rating = rating = Rating(ground, pod, policy)
        self._seen = [-1] * len(table)  # the hole when last looked at; -1: not of the field
        self._pods = [0] * len(table)  # how many fit there
        # By grain, with the nodes that have changed since the tally was last asked.
        self._tallies: dict[Grain, tuple[Tally, set[int]]] = {}
        self._order: Order | None = None
        self.hosts: Counter[int] = Counter()
        self._mark = table.refresh()
        for number in field.numbers:
            hole = self._seen[number] = table[number]
            pods = self._pods[number] = rating.fits[hole]
            self.hosts[pods] += 1
        self.total = sum(pods * nodes for pods, nodes in self.hosts.items())
        self.looked(len(field.numbers))

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
        """Look again at the nodes that have changed. Cost: O(those), O(log nodes) each."""
        table, mark = self._table, self._mark
        self._mark = end = table.refresh()
        if mark == end:
            return
        seen, pods, fits, hosts = self._seen, self._pods, self._rating.fits, self.hosts
        changed, resized = table.since(mark), list[int]()
        self._ground.looked += len(changed)
        moved = [number for number in changed if 0 <= seen[number] != table[number]]
        for number in moved:
            hole = seen[number] = table[number]
            was, now = pods[number], fits[hole]
            if was != now:
                pods[number] = now
                resized.append(number)
                hosts[was] -= 1
                hosts[now] += 1
                self.total += now - was
        for _, waiting in self._tallies.values():
            waiting.update(resized)
        if self._order is not None:
            self._order.enter(moved)
            if self._order.worn_out:
                self._order = None

    def tally(self, grain: Grain = ()) -> Tally:
        """Return the room of the domains; counted from the first time on that it is asked for.

        ``grain``: of slices, in which rooms are then counted.
        """
        known = self._tallies.get(grain)
        if known is None:
            made = Tally(self.field.domains, grain), set(self.field.numbers)
            known = self._tallies[grain] = made
        tally, waiting = known
        if waiting:
            tally.count(waiting, self._pods)
            waiting.clear()
        return tally

    # -- nodes --------------------------------------------------------------------------------

    def pods(self, number: int) -> int:
        """Return how many pods the node can hold."""
        return self._pods[number]

    def demerit(self, number: int) -> int:
        """Return how bad a place the node is, one that can hold a pod."""
        return self._rating.demerits[self._seen[number]]

    def seats(self, number: int, pods: int) -> tuple[tuple[int, ...], ...]:
        """Return the devices of each of so many pods on the node; none where they are counted."""
        return self._rating.seats(self._seen[number], pods)

    def most(self) -> int:
        """Return how many pods the roomiest node can hold."""
        return max(self._sizes(), default=0)

    def snug(self, count: int) -> int | None:
        """Return the tightest node that can hold so many pods, of equals the best; None: none."""
        pods = min((pods for pods in self._sizes() if pods >= count), default=0)
        return self.order().best((pods,))

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
            self._order = Order(self._rating, self._seen, self._pods, self.field.numbers)
        return self._order

    def _sizes(self) -> list[int]:
        return [pods for pods, nodes in self.hosts.items() if nodes and pods]


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
        self._tables: dict[tuple[int, ...], tuple[object, HoleTable]] = {}
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
        key = (id(field), pod.number, _RANK[policy], *map(id, tables))
        known = self._views.get(key)
        if known is None:
            table, rate = self._table(tables), self._policies[policy]
            known = self._views[key] = View(self._ground, field, pod, table, rate), policy
            if len(self._views) > KEPT:
                self._views.popitem(last=False)
        else:
            self._views.move_to_end(key)
        known[0].refresh()
        return known[0]

    def _table(self, tables: Sequence[HoleTable]) -> HoleTable:
        """Return the table of what is free in all of these."""
        if len(tables) == 1:
            return tables[0]
        key = tuple(map(id, tables))
        if key not in self._tables:
            self._tables[key] = tuple(tables), Meeting(self._ground, tables)
        return self._tables[key][1]


_RANK = {policy: number for number, policy in enumerate(PlacementPolicy)}
