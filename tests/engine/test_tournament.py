"""The tournament against the rule as it is written: everything compared again for each turn."""

from itertools import pairwise
from math import inf

from hypothesis import given, settings
from hypothesis import strategies as st

from scheduling.engine.decay import Decayed
from scheduling.engine.fairness import Regime
from scheduling.engine.quota import QuotaLedger
from scheduling.engine.shares import weight
from scheduling.engine.snapshot import (
    FlavorQuotas,
    FlavorResource,
    Memory,
    Quota,
    ResourceGroup,
    Snapshot,
)
from scheduling.engine.terms import Fairness
from scheduling.engine.tournament import Contender, Tournament
from scheduling.engine.tree import Kind, QuotaKey, queue_key, quota_tree
from tests.engine.builders import world

GPU, CPU = "nvidia.com/gpu", "cpu"
COLUMNS = [FlavorResource(f, r) for f in ("h100", "a10") for r in (GPU, CPU)]
weights = st.sampled_from([0.0, 0.5, 1.0, 1.0, 2.0])
limits = st.sampled_from([None, None, 0, 1, 3])
amounts = st.fixed_dictionaries({}, optional=dict.fromkeys(COLUMNS, st.integers(0, 4)))


@st.composite
def trees(draw) -> Snapshot:
    made = world()
    fairness = draw(st.sampled_from([Fairness.SHARE, Fairness.HISTORY]))
    made.cohort("root", fairness=fairness, nominal=draw(st.integers(0, 3)))
    made.cohort("left", "root", weight=draw(weights), lending_limit=draw(limits), nominal=1)
    made.cohort("deep", "left", weight=draw(weights))
    for number in range(draw(st.integers(1, 6))):
        line = st.builds(Quota, st.integers(0, 3), limits, limits)
        flavors = [FlavorQuotas(f, {GPU: draw(line), CPU: draw(line)}) for f in ("h100", "a10")]
        home = draw(st.sampled_from(["root", "left", "deep"]))
        groups = (ResourceGroup((GPU, CPU), tuple(flavors)),)
        made.queue(f"q{number}", cohort=home, groups=groups, fair_weight=draw(weights))
    hours = {name: draw(st.sampled_from([0.0, 0.0, 1.0, 2.0, 4.0])) for name in made.queues}
    made.memory = Memory(history={n: Decayed(h, 0.0, made.now) for n, h in hours.items()})
    return made.build()


class Oracle:
    """FORMAT 6.2 and 8.1, word by word: charge the request, look at every node, take it back."""

    def __init__(self, snapshot: Snapshot, ledger: QuotaLedger) -> None:
        self.snapshot, self.ledger = snapshot, ledger
        self.mode = snapshot.cohorts["root"].fairness

    def winner(self, node: QuotaKey, waiting: dict[QuotaKey, Contender]) -> Contender | None:
        if node.kind is Kind.QUEUE:
            return waiting.get(node)
        found = []
        for child in self.ledger.children.get(node, ()):
            one = self.winner(child, waiting)
            if one is not None:
                found.append((self.footing(one, child), one.urgency, one))
        return min(found, key=lambda rival: rival[:2])[2] if found else None

    def footing(self, one: Contender, node: QuotaKey) -> tuple:
        with self.ledger.trial():
            for fr, amount in one.usage.items():
                self.ledger.reserve(one.queue, fr, amount)
            borrows = any(self.ledger.borrowed(node, fr) > 0 for fr in one.usage)
            if self.mode is Fairness.SHARE:
                return borrows, self.share(node)
        return borrows, self.past(node)

    def share(self, node: QuotaKey) -> tuple[float, float]:
        parent, ratio = self.ledger.nodes[node].parent, 0.0
        for resource in (GPU, CPU):
            columns = [
                fr for fr in (*COLUMNS, FlavorResource("h100-sxm", GPU)) if fr[1] == resource
            ]
            offer = sum(self.ledger.potential(parent, fr) for fr in columns)
            taken = sum(self.ledger.borrowed(node, fr) for fr in columns)
            ratio = max(ratio, taken * 1000.0 / offer if taken and offer > 0 else 0.0)
        by = weight(self.snapshot, node)
        if ratio and not by:
            return inf, ratio
        return (ratio / by if ratio else 0.0), 0.0

    def past(self, node: QuotaKey) -> tuple[float, float, float]:
        members = self.ledger.members(node)
        history = self.snapshot.memory.history
        hours = sum(history[m.name].amount for m in members if m.kind is Kind.QUEUE)
        gpus = sum(
            q.nominal
            for m in members
            for fr, q in self.ledger.nodes[m].quotas.items()
            if fr[1] == GPU
        )
        by = weight(self.snapshot, node)
        if not hours:
            return 0.0, 0.0, 0.0
        if not by:
            return inf, inf, hours
        return (hours / (gpus * by), 0.0, 0.0) if gpus else (inf, hours / by, 0.0)


@settings(max_examples=150, deadline=None)
@given(trees(), st.data())
def test_every_turn_goes_to_whom_the_rule_names(snapshot, data) -> None:
    ledger = QuotaLedger(quota_tree(snapshot))
    regime, oracle = Regime(snapshot, ledger), Oracle(snapshot, ledger)
    queues = [queue_key(name) for name in sorted(snapshot.cluster_queues)]
    root = ledger.root(queues[0])
    for queue in queues:
        for fr, amount in data.draw(amounts).items():
            ledger.reserve(queue, fr, amount)
    tournament = Tournament(ledger, lambda c, at: regime.footing(c.queue, c.usage, at))
    waiting: dict[QuotaKey, Contender] = {}
    changed: set[QuotaKey] = set()
    for number in range(16):
        champion = tournament.champion(root)
        if champion is not None and not changed and data.draw(st.booleans()):
            tournament.withdraw(champion.queue)
            del waiting[champion.queue]
            changed.add(champion.queue)
            for fr, amount in champion.usage.items():
                ledger.reserve(champion.queue, fr, amount)
        else:
            queue = data.draw(st.sampled_from(queues))
            urgency = (-data.draw(st.integers(0, 1)), 0.0, f"w{number}")
            waiting[queue] = Contender(queue, data.draw(amounts), urgency, number)
            tournament.enter(waiting[queue])
            changed.add(queue)
        if data.draw(st.booleans()):
            for queue in changed:
                tournament.replay(queue)
            changed.clear()
            assert tournament.champion(root) is oracle.winner(root, waiting)


def test_a_change_plays_its_own_path_and_no_other() -> None:
    made = world().cohort("root", fairness=Fairness.SHARE).cohort("left", "root")
    for number in range(200):
        made.queue(f"q{number}", 1, "left" if number % 2 else "root")
    snapshot = made.build()
    ledger = QuotaLedger(quota_tree(snapshot))
    regime = Regime(snapshot, ledger)
    tournament = Tournament(ledger, lambda c, at: regime.footing(c.queue, c.usage, at))
    for number in range(200):
        queue = queue_key(f"q{number}")
        tournament.enter(Contender(queue, {}, (0, 0.0, queue.name), None))
        tournament.replay(queue)
    before = tournament.played
    tournament.replay(queue_key("q1"))
    assert tournament.played - before == 2
    path = list(pairwise(ledger.path(queue_key("q1"))))
    assert len(path) == 2
