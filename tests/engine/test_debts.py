"""What queues hold above all that they may use."""

from scheduling.engine.debts import Debt, debts
from tests.engine.builders import H100, World, world


def pool(nominal: int = 8, **changes: int) -> World:
    """Two borrowers of 4 each, with 8 of their own, and one who lends."""
    made = world().queue("a", 8).queue("b", 8).queue("lender", nominal, **changes)
    made.running("own", "a", gpus=8).running("more", "a", gpus=4)
    return made.running("others", "b", gpus=12)


def test_a_loan_that_the_tree_has_is_no_debt() -> None:
    assert debts(pool().build()) == {}


def test_of_a_pool_that_two_overdraw_each_is_told_what_is_missing() -> None:
    both = {("a", H100): Debt(12, 3), ("b", H100): Debt(12, 3)}
    assert debts(pool(5).build()) == both
    assert debts(pool(lend=5).build()) == both
    assert both["a", H100].ceiling == 9


def test_nobody_owes_more_than_it_borrows_and_whoever_borrows_nothing_owes_nothing() -> None:
    made = pool(0).queue("content", 2).running("small", "content", gpus=2)
    assert debts(made.build()) == {("a", H100): Debt(12, 4), ("b", H100): Debt(12, 4)}


def test_what_is_held_of_a_flavor_that_the_queue_has_no_more_is_all_debt() -> None:
    made = world().queue("a", 8, None, groups=()).running("old", "a", gpus=3)
    assert debts(made.build()) == {("a", H100): Debt(3, 3)}
