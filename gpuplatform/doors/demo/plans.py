"""What people of the demo plan: budgets, what all teams carry, and a wish for more quota."""

from dataclasses import replace
from datetime import datetime, timedelta
from decimal import Decimal

from finops.budgets.saving import BudgetSpec, save_budget
from finops.models.budgets import BudgetMeasure
from finops.shared_costs import SharedSpec, set_shared_cost
from gpuplatform.common import clock
from gpuplatform.doors.demo.platform import GPU
from queues.models import ClusterQueue, Team, User
from queues.services import describe_cluster_queue, requests
from queues.services.cells import cells_of

BUDGETS = (
    BudgetSpec("vision-month", "team", "vision", BudgetMeasure.MONEY, Decimal(75_000)),
    BudgetSpec("search-month", "team", "search", BudgetMeasure.MONEY, Decimal(90_000)),
    BudgetSpec("bio-week", "team", "bio", BudgetMeasure.GPU_HOURS, Decimal(6_000), "7d"),
)


def share_rent(at: datetime, users: dict[str, User]) -> None:
    """Let all teams carry the hall from ``at`` on."""
    spec = SharedSpec("rent", amount=Decimal(4_500), valid_from=at, note="The hall and its power")
    set_shared_cost(spec, users["fin"])


def plan(now: datetime, users: dict[str, User]) -> None:
    """Set budgets, and let Vera ask for more GPUs for two weeks."""
    with clock.at(now):
        for spec in BUDGETS:
            save_budget(spec, users["fin"], "Agreed for the quarter")
        _ask(now, users["vera"])


def _ask(now: datetime, vera: User) -> None:
    team = Team.objects.get(name="vision")
    spec = describe_cluster_queue(ClusterQueue.objects.get(team=team))
    cell = next(cell for cell in cells_of(spec) if cell.resource == GPU)
    more = replace(cell, nominal=cell.nominal + 16)
    reason = "The video model's last training before the deadline of the conference"
    requests.ask_quota([more], team, actor=vera, reason=reason, until=now + timedelta(days=14))
