"""Split an amount of money without losing or inventing a cent.

Largest remainder (Hamilton): everyone gets the floor, the missing cents go one each by
fraction descending, weight descending, key ascending (finops.md 2.7). The result depends
on nothing but the arguments, not on their order.
"""

from collections import defaultdict
from collections.abc import Mapping
from decimal import Decimal
from fractions import Fraction
from typing import Any, Protocol, TypeVar

from finops.allocation.money import ZERO, Exact, from_units, to_cents


class Ordered(Protocol):
    """A key that can break a tie."""

    def __lt__(self, other: Any, /) -> bool: ...
    def __hash__(self) -> int: ...


K = TypeVar("K", bound=Ordered)
Path = tuple[Ordered, ...]


def apportion(total: Decimal, weights: Mapping[K, Exact]) -> dict[K, Decimal]:
    """Split ``total`` in proportion to ``weights``; the parts add up to it exactly.

    ``total`` is in whole cents; a negative one is split as its absolute value. ``weights``
    are not negative, in any common unit. Each part is less than a cent from its exact share.
    ValueError: not whole cents, a negative weight, or nothing to split an amount by.
    """
    cents = to_cents(total)
    exact_weights = {key: Fraction(weight) for key, weight in weights.items()}
    if any(weight < 0 for weight in exact_weights.values()):
        raise ValueError("a weight must not be negative")
    weight_sum = sum(exact_weights.values(), ZERO)
    if not weight_sum:
        if cents:
            raise ValueError(f"nothing to split {total} by")
        return {key: from_units(0) for key in weights}

    quotas = {key: abs(cents) * weight / weight_sum for key, weight in exact_weights.items()}
    return _signed(_hamilton(abs(cents), quotas), negative=cents < 0)


def split_cents(total: Decimal, amounts: Mapping[K, Fraction]) -> dict[K, Decimal]:
    """Round exact ``amounts`` (any sign) down or up to the cent so that they add up to ``total``.

    Unlike ``apportion`` nothing is scaled: ``total`` must be the exact sum rounded down or up
    (conformance FORMAT.md 5, one node of the tree); anything else is a ValueError.
    """
    cents = to_cents(total)
    sign = -1 if cents < 0 else 1
    exact = {key: sign * 100 * amount for key, amount in amounts.items()}
    if abs(abs(cents) - sum(exact.values(), ZERO)) >= 1:
        raise ValueError(f"{total} is not the sum of what it is split into")
    return _signed(_hamilton(abs(cents), exact), negative=cents < 0)


def split_in_order(total: Decimal, amounts: Mapping[K, Fraction]) -> dict[K, Decimal]:
    """Round exact ``amounts`` in the order of their keys so that they add up to ``total``.

    Each part ends at the whole cents of the sum so far; the last one takes the rest. So what
    comes later moves no part but the last: yesterday stays as it was while a month goes on.
    ``total`` as in :func:`split_cents`; amounts of one sign.
    """
    cents = to_cents(total)
    sign = -1 if cents < 0 else 1
    exact = {key: sign * 100 * amounts[key] for key in sorted(amounts)}
    if abs(abs(cents) - sum(exact.values(), ZERO)) >= 1:
        raise ValueError(f"{total} is not the sum of what it is split into")
    found: dict[K, int] = {}
    so_far, given = ZERO, 0
    for key, amount in exact.items():
        so_far += amount
        found[key] = min(so_far.numerator // so_far.denominator, abs(cents)) - given
        given += found[key]
    if found:
        found[max(found)] += abs(cents) - given
    return _signed(found, negative=sign < 0)


def split_tree(total: Decimal, leaves: Mapping[Path, Fraction]) -> dict[Path, Decimal]:
    """Split ``total`` level by level down paths of equal length (FORMAT.md 5).

    Every node of the tree is its exact amount rounded down or up, so a subtotal that is
    the same under two policies has the same cents under both.
    """
    branches: dict[Ordered, dict[Path, Fraction]] = defaultdict(dict)
    for (head, *tail), amount in leaves.items():
        branches[head][tuple(tail)] = amount
    parts = split_cents(
        total, {head: sum(branch.values(), ZERO) for head, branch in branches.items()}
    )
    cents_by_path: dict[Path, Decimal] = {}
    for head, branch in branches.items():
        # Only the empty tail is left at the bottom: equal length is the caller's promise.
        below = {(): parts[head]} if () in branch else split_tree(parts[head], branch)
        cents_by_path.update({(head, *tail): amount for tail, amount in below.items()})
    return cents_by_path


def _hamilton(cents: int, quotas: Mapping[K, Fraction]) -> dict[K, int]:
    """Round quotas (in cents) so that they sum to ``cents``, which is not negative."""
    floors = {key: quota.numerator // quota.denominator for key, quota in quotas.items()}
    missing = cents - sum(floors.values())
    assert 0 <= missing <= len(floors), f"{missing} cents to give to {len(floors)} keys"
    by_remainder = sorted(
        quotas, key=lambda key: (floors[key] - quotas[key], -abs(quotas[key]), key)
    )
    for key in by_remainder[:missing]:
        floors[key] += 1
    assert sum(floors.values()) == cents
    return floors


def _signed(cents_by_key: Mapping[K, int], *, negative: bool) -> dict[K, Decimal]:
    """Return the parts as amounts, with the sign of what was split."""
    return {key: from_units(-cents if negative else cents) for key, cents in cents_by_key.items()}
