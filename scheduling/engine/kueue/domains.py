"""Placing pods in a tree of domains as Kueue does (``FORMAT.md`` 10.2 to 10.6)."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from scheduling.engine.snapshot import TopologyRequest
from scheduling.engine.terms import TopologyMode
from scheduling.engine.topology import Path


@dataclass(frozen=True, slots=True)
class Leaf:
    """A lowest domain: its path, its name in an assignment, and what is free in it."""

    path: Path
    name: str
    free: Mapping[str, int]

    def fitting(self, footprint: Mapping[str, int], but: Mapping[str, int] | None = None) -> int:
        """Return how many pods fit, next to one of another kind if ``but`` is given."""
        but = but or {}
        rooms = (
            (self.free.get(resource, 0) - but.get(resource, 0)) // amount
            for resource, amount in footprint.items()
        )
        return max(0, min(rooms))


@dataclass(frozen=True, slots=True)
class Ask:
    """How many pods of which footprint, where; with ``leader``: and one of that one."""

    request: TopologyRequest
    count: int
    footprint: Mapping[str, int]
    leader: Mapping[str, int] | None = None


@dataclass(slots=True)
class Domain:
    """A domain with what it can hold; then with what it gets."""

    path: Path
    children: list["Domain"] = field(default_factory=list)
    leaf: Leaf | None = None
    pods: int = 0
    slices: int = 0
    leads: int = 0  # 1: can hold the leader
    pods_led: int = 0  # next to the leader
    slices_led: int = 0
    gets: int = 0
    gets_leader: int = 0

    def room(self, *, led: bool, sliced: bool) -> int:
        """Return the capacity that counts: in slices or pods, next to a leader or not."""
        if sliced:
            return self.slices_led if led else self.slices
        return self.pods_led if led else self.pods


def place(
    levels: Sequence[str], leaves: Iterable[Leaf], ask: Ask
) -> tuple[dict[str, int], ...] | None:
    """Return pods by domain for the workers, and then for the leader; None: no room."""
    search = _Search(ask, levels)
    depth = search.first_depth()
    if depth > search.slice_depth or ask.count % search.size:
        return None
    tree = search.grow(leaves)
    if not tree[0]:
        return None
    chosen = search.choose(tree, depth)
    if chosen is None:
        return None
    bottom = search.descend(*chosen)
    workers = {d.leaf.name: d.gets for d in bottom if d.leaf and d.gets}
    leader = {d.leaf.name: d.gets_leader for d in bottom if d.leaf and d.gets_leader}
    return (workers, leader) if ask.leader is not None else (workers,)


class _Search:
    """One placement. ``loose``: the tightest domains first, no best fit (unconstrained).

    Slices of ``size`` pods each stand in a domain at ``slice_depth``; below it the slices that
    they are made of, if they are, round what a domain can hold (K62).
    """

    def __init__(self, ask: Ask, levels: Sequence[str]) -> None:
        self._ask, self._levels = ask, levels
        self._loose = ask.request.mode is TopologyMode.UNCONSTRAINED
        slices = [(levels.index(level), size) for level, size in ask.request.layers]
        self.slice_depth, self.size = slices[0] if slices else (len(levels) - 1, 1)
        self._inner = dict(slices[1:])

    def first_depth(self) -> int:
        """Return the depth at which the search begins; 0: outermost."""
        request = self._ask.request
        if request.level is not None:
            return self._levels.index(request.level)
        return 0 if request.layers else len(self._levels) - 1

    # -- capacities ---------------------------------------------------------------------------

    def grow(self, leaves: Iterable[Leaf]) -> list[list[Domain]]:
        """Return the domains of every depth with their capacities, outermost first."""
        bottom = [self._bottom(leaf) for leaf in leaves]
        tree = [bottom]
        while tree[0] and len(tree[0][0].path) > 1:
            parents: dict[Path, Domain] = {}
            for domain in tree[0]:
                parent = parents.setdefault(domain.path[:-1], Domain(domain.path[:-1]))
                parent.children.append(domain)
            for parent in parents.values():
                self._sum(parent)
            tree.insert(0, list(parents.values()))
        return tree

    def _bottom(self, leaf: Leaf) -> Domain:
        ask = self._ask
        domain = Domain(leaf.path, leaf=leaf, pods=leaf.fitting(ask.footprint))
        if ask.leader is not None and leaf.fitting(ask.leader):
            domain.leads, domain.pods_led = 1, leaf.fitting(ask.footprint, ask.leader)
        self._cut(domain)
        return domain

    def _sum(self, parent: Domain) -> None:
        children = parent.children
        parent.pods = sum(child.pods for child in children)
        parent.slices = sum(child.slices for child in children)
        leading = [child for child in children if child.leads]
        if leading:
            parent.leads = 1
            parent.pods_led = parent.pods - min(c.pods - c.pods_led for c in leading)
            parent.slices_led = parent.slices - min(c.slices - c.slices_led for c in leading)
        self._cut(parent)

    def _cut(self, domain: Domain) -> None:
        """Count whole slices in a domain of the slices' level, whole inner ones below it."""
        depth = len(domain.path) - 1
        if depth in self._inner:
            domain.pods -= domain.pods % self._inner[depth]
            domain.pods_led -= domain.pods_led % self._inner[depth]
        if depth == self.slice_depth:
            domain.slices = domain.pods // self.size
            domain.slices_led = domain.pods_led // self.size

    # -- the choice of domains ----------------------------------------------------------------

    def choose(self, tree: list[list[Domain]], depth: int) -> tuple[list[Domain], int] | None:
        """Return the domains that hold everything, and their depth; going up where allowed."""
        slices, leaders = self._ask.count // self.size, int(self._ask.leader is not None)
        while True:
            domains = self._sorted(tree[depth], led=bool(leaders))
            whole = [d for d in domains if _holds(d, slices, leaders, sliced=True)]
            if whole:
                best = whole[0] if self._loose else self._best(whole, leaders, sliced=True)
                return self._share([best], slices, leaders, sliced=True), depth
            if self._ask.request.mode is TopologyMode.REQUIRED:
                return None
            if depth == 0 or self._loose:
                shares = self._share(domains, slices, leaders, sliced=True)
                return (shares, depth) if shares else None
            depth -= 1

    def descend(self, chosen: list[Domain], depth: int) -> list[Domain]:
        """Hand the pods down to the lowest domains."""
        slices = self._ask.count // self.size
        while chosen and chosen[0].children:
            if depth < self.slice_depth:
                leaders = sum(d.gets_leader for d in chosen)
                below = [child for domain in chosen for child in domain.children]
                chosen = self._share(below, slices, leaders, sliced=True)
            else:
                chosen = [
                    child
                    for d in chosen
                    for child in self._share(d.children, d.gets, d.gets_leader, sliced=False)
                ]
            depth += 1
        return chosen

    def _share(
        self, domains: Sequence[Domain], count: int, leaders: int, *, sliced: bool
    ) -> list[Domain]:
        """Fill domains in turn and write what each gets; the leader goes to the first that can.

        Where nothing is left for some workers then, the leader goes to the next one instead.
        """
        size = self.size if sliced else 1
        order = self._sorted(domains, led=bool(leaders))
        for leading in [d for d in order if d.leads] if leaders else [None]:
            used = self._fill(order, count, leading, sliced=sliced)
            if sum(domain.gets for domain in used) == count * size:
                return used
        return []

    def _fill(
        self, order: Sequence[Domain], count: int, leading: Domain | None, *, sliced: bool
    ) -> list[Domain]:
        """Fill domains in turn, the last one as tightly as possible.

        ``order``: as sorted for the first of them. Cost: O(n log n) for n domains.
        """
        used: list[Domain] = []
        if leading is not None:
            first = leading
            if not self._loose and _holds(leading, count, 1, sliced=sliced):
                first = self._tightest(order, count, 1, sliced=sliced)
            count -= self._give(first, count, 1, sliced=sliced)
            used.append(first)
            order = self._sorted((d for d in order if d is not first), led=False) if count else ()
        for place, domain in enumerate(order):
            if not count:
                break
            last = domain
            if not self._loose and _holds(domain, count, 0, sliced=sliced):
                last = self._tightest(order[place:], count, 0, sliced=sliced)
            taken = self._give(last, count, 0, sliced=sliced)
            count -= taken
            used.extend([last] if taken else [])
        return used

    def _tightest(
        self, order: Iterable[Domain], count: int, leaders: int, *, sliced: bool
    ) -> Domain:
        """Return the first of the tightest domains that hold all that is left."""
        whole = [d for d in order if _holds(d, count, leaders, sliced=sliced)]
        return self._best(whole, leaders, sliced=sliced)

    def _give(self, domain: Domain, count: int, leaders: int, *, sliced: bool) -> int:
        """Write what the domain gets; return how many slices or pods that is."""
        gets = min(count, domain.room(led=bool(leaders), sliced=sliced))
        domain.gets, domain.gets_leader = gets * (self.size if sliced else 1), leaders
        return gets

    def _best(self, whole: Sequence[Domain], leaders: int, *, sliced: bool) -> Domain:
        return min(whole, key=lambda d: d.room(led=bool(leaders), sliced=sliced))

    def _sorted(self, domains: Iterable[Domain], *, led: bool) -> list[Domain]:
        """Return the domains in turn; below the slices' level none holds a slice."""
        sign = 1 if self._loose else -1
        order: Callable[[Domain], tuple[int, int, int, Path]] = lambda d: (  # noqa: E731
            -d.leads if led else 0,
            sign * d.room(led=led, sliced=True),
            d.room(led=led, sliced=False),
            d.path,
        )
        return sorted(domains, key=order)


def _holds(domain: Domain, count: int, leaders: int, *, sliced: bool) -> bool:
    return domain.leads >= leaders and domain.room(led=bool(leaders), sliced=sliced) >= count
