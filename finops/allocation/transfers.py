"""Moves between accounts, written twice so that they add up to nothing (FORMAT.md 3.5)."""

from collections import defaultdict
from decimal import Decimal
from typing import NamedTuple

from finops.allocation import places
from finops.allocation.direct import Used
from finops.allocation.facts import Number
from finops.allocation.ground import Ground
from finops.allocation.ledger import LineKey
from finops.allocation.money import Sum, round_half_up
from finops.allocation.places import Account
from finops.allocation.timeline import hours
from finops.allocation.tokens import TokenRow


class Move(NamedTuple):
    """Between whom, for what."""

    payer: Account
    payee: Account
    line_type: str
    model_group: str = ""


class Transfer(NamedTuple):
    """One of the two lines of a move, in cents."""

    account: Account
    key: LineKey
    quantity: Number
    amount: Decimal


class _Moves:
    def __init__(self) -> None:
        self.amounts: dict[Move, Sum] = defaultdict(Sum)
        self.quantities: dict[Move, Sum] = defaultdict(Sum)

    def add(self, move: Move, amount: Number, quantity: Number) -> None:
        """Add a piece; one to oneself, or of exactly 0, is none."""
        if move.payer != move.payee and amount:
            self.amounts[move].add(amount)
            self.quantities[move].add(quantity)

    def lines(self) -> list[Transfer]:
        """Round each sum once and write it for both."""
        found = []
        for move, amount in self.amounts.items():
            cents = round_half_up(amount.total)
            key = LineKey(move.line_type, model_group=move.model_group)
            quantity = self.quantities[move].total
            for account, other, signed in (
                (move.payer, move.payee, cents),
                (move.payee, move.payer, round_half_up(-cents)),
            ):
                line = key._replace(counterparty=other.name)
                found.append(Transfer(account, line, quantity, signed))
        return found


def transfers(ground: Ground, used: Used, rows: list[TokenRow]) -> list[Transfer]:
    """Return the lines of all moves, in no order."""
    moves = _Moves()
    _for_loans(ground, used, moves)
    for row in rows:
        if row.mode == "serving_priced":
            _for_tokens(ground, row, moves)
    return moves.lines()


def _for_loans(ground: Ground, used: Used, moves: _Moves) -> None:
    policy = ground.facts.policy
    for loan, gpus in used.loans.items():
        if loan.lender == loan.owner:
            continue
        quantity = hours(gpus)
        cost = quantity * loan.price
        surcharge = Move(loan.owner, places.PLATFORM, "loan_surcharge")
        moves.add(surcharge, cost * (policy.borrow_surcharge - 1), quantity)
        if loan.lender is not None:
            credit = Move(places.PLATFORM, loan.lender, "lender_credit")
            moves.add(credit, cost * policy.lender_credit, quantity)


def _for_tokens(ground: Ground, row: TokenRow, moves: _Moves) -> None:
    owner = ground.owners.of_namespace(*row.served_by, row.use.instant)
    is_owners = row.is_nobodys and ground.facts.policy.tokens_without_team == "owner"
    payer = owner if is_owners else row.account
    move = Move(payer, owner, "tokens_transfer", row.use.model_group)
    moves.add(move, row.cost, row.tokens)
