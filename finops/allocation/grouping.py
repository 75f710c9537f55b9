"""The same money by anything: every grouping adds up to the same total (finops.md 8).

A line of a bill goes to a group whole where it names it, else in parts: by the work it came from,
or by the tokens that the iron served. What no group can be named for is the remainder. Tags
overlap: each is shown with all its money, and what was counted more than once is taken off.
"""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction

from finops.allocation.apportion import apportion
from finops.allocation.bill import Outcome
from finops.allocation.facts import Number
from finops.allocation.idle_hours import idle_hours
from finops.allocation.lines import Line
from finops.allocation.money import ZERO, exact_sum, from_units
from finops.allocation.places import Account
from finops.allocation.tokens import TokenRow

BY_WORK = frozenset({"pod", "controller", "label", "annotation"})
BY_TOKENS = frozenset({"model", "key", "tag"})
DIMENSIONS = (
    *("team", "namespace", "queue", "flavor", "type"),
    *("pod", "controller", "label", "annotation"),
    *("model", "key", "tag"),
)
Names = tuple[str, ...]  # of the groups that a part belongs to: several only of tags


@dataclass(slots=True)
class Group:
    """What came together under a name; ``tokens`` and ``token_cost`` are a memo."""

    name: str
    amount: Decimal = field(default_factory=lambda: from_units(0))
    gpu_hours: Fraction = ZERO  # used
    idle_gpu_hours: Fraction = ZERO  # paid and unused
    tokens: int = 0
    token_cost: Fraction = ZERO

    def add(self, amount: Decimal, hours: Number, idle: Number) -> None:
        """Add the money and the hours of a part of a line."""
        self.amount += amount
        self.gpu_hours += hours
        self.idle_gpu_hours += idle

    def add_tokens(self, tokens: int, cost: Number) -> None:
        """Add to the memo."""
        self.tokens += tokens
        self.token_cost += cost


@dataclass(frozen=True, slots=True)
class Grouped:
    """Groups, dearest first; with remainder and overlap they add up to the total.

    ``total`` and its hours count every line once.
    """

    groups: tuple[Group, ...]
    remainder: Group
    overlap: Group  # nothing of it above 0: what tags counted more than once
    total: Decimal
    gpu_hours: Fraction = ZERO
    idle_gpu_hours: Fraction = ZERO


def grouped(
    outcome: Outcome,
    by: str,
    *,
    work: Mapping[str, str] | None = None,
    keep: Callable[[Line], bool] = lambda _line: True,
    accounts: Collection[Account] | None = None,
) -> Grouped:
    """Return the lines that ``keep`` takes by a dimension, as far as they are of ``accounts``.

    ``work`` names the group of each child of a line. Amounts of a team do not depend on what is
    kept besides. Costs O(lines x groups).
    """
    unused = idle_hours(outcome)
    lines = [
        (line, unused.get(index, ZERO))
        for index, line in enumerate(outcome.lines)
        if keep(line) and (accounts is None or line.account in accounts)
    ]
    found: dict[str, Group] = {}
    overlap = Group("")
    splitter = _Splitter(outcome, by, work or {})
    for line, idle in lines:
        for names, amount, hours in splitter.parts(line):
            unused_part = _part_of(idle, amount, line)
            for name in names or ("",):
                found.setdefault(name, Group(name)).add(amount, hours, unused_part)
            again = max(0, len(names) - 1)
            overlap.add(-again * amount, -again * hours, -again * unused_part)
    for row in outcome.tokens:
        if accounts is None or row.account in accounts:
            _add_tokens(found, overlap, row, by)
    remainder = found.pop("", Group(""))
    groups = sorted(found.values(), key=lambda one: (-one.amount, -one.token_cost, one.name))
    return Grouped(
        tuple(groups),
        remainder,
        overlap,
        total=sum((line.amount for line, _idle in lines), from_units(0)),
        gpu_hours=exact_sum(_hours(line) for line, _idle in lines),
        idle_gpu_hours=exact_sum(idle for _line, idle in lines),
    )


def _part_of(idle: Fraction, amount: Decimal, line: Line) -> Fraction:
    """Return the unused hours of a part of a line, which go with its money."""
    return idle * Fraction(amount) / Fraction(line.amount) if line.amount else idle


def _add_tokens(found: dict[str, Group], overlap: Group, row: TokenRow, by: str) -> None:
    """Add a row of tokens to the memo of its groups, where the dimension is one of tokens."""
    if by == "team":
        names: Names = (row.account.name,)
    elif by in BY_TOKENS:
        names = _token_names(row, by)
    else:
        return
    for name in names or ("",):
        found.setdefault(name, Group(name)).add_tokens(row.tokens, row.cost)
    again = max(0, len(names) - 1)
    overlap.add_tokens(-again * row.tokens, -again * row.cost)


def _token_names(row: TokenRow, by: str) -> Names:
    if by == "model":
        return (row.use.model_group,)
    if by == "key":
        return (row.use.key_alias,) if row.use.key_alias else ()
    return tuple(sorted(set(row.use.tags)))


class _Splitter:
    """Takes lines apart by one dimension."""

    def __init__(self, outcome: Outcome, by: str, work: Mapping[str, str]) -> None:
        self._by = by
        self._work = work
        self._rows = _by_place(outcome.tokens) if by in BY_TOKENS else {}

    def parts(self, line: Line) -> Iterator[tuple[Names, Decimal, Fraction]]:
        """Yield groups, cents and GPU-hours of each part of a line."""
        if self._by in BY_WORK:
            yield from self._by_work(line)
        elif self._by in BY_TOKENS:
            yield from self._by_tokens(line)
        else:
            name = self._name(line)
            yield (name,) if name else (), line.amount, _hours(line)

    def _name(self, line: Line) -> str:
        key = line.key
        match self._by:
            case "team":
                return line.account.name
            case "namespace":
                return key.namespace
            case "queue":
                return key.queue
            case "flavor":
                return key.flavor
        return key.line_type

    def _by_work(self, line: Line) -> Iterator[tuple[Names, Decimal, Fraction]]:
        if not line.children:
            yield (), line.amount, _hours(line)
        for child in line.children:
            name = self._work.get(child.workload, "")
            hours = child.quantity if line.unit == "gpu_hours" else ZERO
            yield (name,) if name else (), child.amount, hours

    def _by_tokens(self, line: Line) -> Iterator[tuple[Names, Decimal, Fraction]]:
        weights: dict[Names, Number] = defaultdict(int)
        rows = self._served(line)
        has_cost = any(row.cost for row in rows)
        for row in rows:
            weights[_token_names(row, self._by)] += row.cost if has_cost else row.tokens
        weights = {names: weight for names, weight in weights.items() if weight > 0}
        if not weights:
            yield (), line.amount, _hours(line)
            return
        total = sum(map(Fraction, weights.values()), ZERO)
        for names, cents in apportion(line.amount, weights).items():
            yield names, cents, _hours(line) * weights[names] / total

    def _served(self, line: Line) -> list[TokenRow]:
        """Return the tokens that a line is about: bought, or served by its namespace."""
        key = line.key
        if key.model_group:
            is_paid = bool(key.counterparty) and line.amount < 0  # the other side asked
            whose = key.counterparty if is_paid else line.account.name
            rows = self._rows.get(("model", key.model_group), ())
            return [row for row in rows if row.account.name == whose]
        rows = self._rows.get((key.cluster, key.namespace), ()) if key.namespace else ()
        if key.line_type == "serving_share":
            return [row for row in rows if row.account == line.account]
        return list(rows)


def _by_place(rows: Iterable[TokenRow]) -> dict[tuple[str, str], list[TokenRow]]:
    """Return rows by model, and by the cluster and namespace that served them."""
    found: dict[tuple[str, str], list[TokenRow]] = defaultdict(list)
    for row in rows:
        found["model", row.use.model_group].append(row)
        if row.is_on_prem:
            found[row.served_by].append(row)
    return found


def _hours(line: Line) -> Fraction:
    """Return the GPU-hours of use of a line; those of idle are nobody's use."""
    is_use = line.origin == "direct" and line.unit == "gpu_hours"
    return line.quantity if is_use else ZERO
