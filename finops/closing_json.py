"""A month on its way to being closed, and its summary, as JSON: money and hours are texts."""

from collections.abc import Mapping
from typing import Any

from finops.models import Adjustment, IssuedBill
from finops.selectors.board import Board
from finops.selectors.obstacles import Obstacle
from finops.selectors.summary import Summary, summary_cells
from gpuplatform.common.money import digits


def board_json(board: Board) -> dict[str, Any]:
    """Return the close board; ``lines_sha256`` is what a step may send back as ``seen``."""
    period, freeze = board.period, board.freeze
    return {
        "period": period.name,
        "status": period.status,
        "currency": period.currency,
        "total": digits(board.month.figures.total),
        "adjustments": digits(period.adjustment_cost),
        "lines_sha256": board.digest,
        "next": list(board.next_steps),
        "steps": [
            {
                "step": step.step,
                "at": _instant(step.at),
                "by": step.by_name,
                "reason": step.reason,
                "lines_sha256": step.digest,
            }
            for step in board.steps
        ],
        "obstacles": [_obstacle(one) for one in board.obstacles],
        "adjustment_lines": [_adjustment(one) for one in board.adjustments],
        "issued": [_issued(one.issued) for one in board.month.bills if one.issued],
        "freeze": freeze
        and {
            "frozen_at": _instant(freeze.frozen_at),
            "code_version": freeze.code_version,
            "lines_sha256": freeze.lines_sha256,
            "facts_sha256": freeze.facts_sha256,
            "facts": freeze.facts,
        },
    }


def summary_json(summary: Summary) -> dict[str, Any]:
    """Return a month's rows and their sums."""
    return {
        "period": summary.month.period.name,
        "status": summary.month.status,
        "currency": summary.month.period.currency,
        "rows": [plain_cells(summary_cells(row)) for row in summary.rows],
        "sums": {name: digits(amount) for name, amount in summary.sums.items()},
    }


def plain_cells(cells: Mapping[str, Any]) -> dict[str, Any]:
    """Return cells with decimals as plain texts."""
    return {name: _text(value) for name, value in cells.items()}


def _text(value: Any) -> Any:
    return value if value is None or isinstance(value, str | int) else digits(value)


def _adjustment(row: Adjustment) -> dict[str, Any]:
    return {
        "id": row.pk,
        "kind": row.kind,
        "team": row.team.name if row.team else "",
        "original": row.original.name if row.original else "",
        "original_line": row.original_line,
        "amount": digits(row.amount),
        "reason": row.reason,
        "by": row.by_name,
    }


def _obstacle(one: Obstacle) -> dict[str, Any]:
    given = one.acknowledgement
    return {
        "code": one.code,
        "subject": one.subject,
        "numbers": dict(one.numbers),
        "sentence": one.sentence,
        "blocks": one.blocks,
        "may_be_acknowledged": one.may_be_acknowledged,
        "acknowledged": given
        and {"by": given.by_name, "at": _instant(given.at), "reason": given.reason},
    }


def _issued(one: IssuedBill) -> dict[str, Any]:
    return {
        "team": one.bill.team.name if one.bill.team else None,
        "team_name": one.team_name,
        "accounting_mode": one.mode,
        "invoice_number": one.number,
        "cost_center": one.cost_center,
        "debit": one.debit,
        "credit": one.credit,
        "amount": digits(one.amount),
        "currency": one.currency,
        "lines_sha256": one.sha256,
    }


def _instant(value: Any) -> str:
    return f"{value:%Y-%m-%dT%H:%M:%SZ}"
