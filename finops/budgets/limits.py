"""LiteLLM's own limits beside our budgets: read, compared, and pushed on somebody's explicit wish.

Our budgets are judged on our own ledger; LiteLLM's limits stop requests by its own counters
(finops.md 3.3). Where both should say the same, a difference is drift of its configuration.
"""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any

from django.db import transaction
from django.db.models import Q
from django.utils.translation import gettext as _

from finops.budgets.windows import BadDurationError, parse
from finops.ingest.limits import ask_limits, gateways, order_limit
from finops.models import Budget, GatewayLimit, Source
from finops.models import Mapping as DatedMapping
from finops.models.budgets import BudgetMeasure, BudgetScope
from finops.models.mappings import MappingKind
from finops.sources.failures import SourceError
from finops.sources.litellm_limits import TeamLimit, order_of
from gpuplatform.common import audit, clock, reasons
from gpuplatform.common.money import digits
from gpuplatform.common.problems import Problem, Rejected, Stale
from queues.access import Actor
from queues.models import User

SAME, DIFFERS, NO_LIMIT, NO_BUDGET, LATE = "same", "differs", "no_limit", "no_budget", "late"
LIMIT_COLUMNS = (
    *("source", "litellm_team", "alias", "team", "budget", "verdict", "hard", "soft", "duration"),
    *("reset_at", "budget_limit", "budget_kind", "budget_duration", "read_at"),
)


@dataclass(frozen=True, slots=True)
class Compared:
    """A limit of LiteLLM beside the budget that should say the same, if there is one.

    ``verdict``: same, differs, no_limit (LiteLLM has none), no_budget (we have none), or late:
    its window should have begun anew by now and has not.
    """

    limit: GatewayLimit
    team: str
    budget: Budget | None
    verdict: str

    @property
    def order(self) -> dict[str, str | Decimal] | None:
        """Return what would be sent to let LiteLLM say what the budget does."""
        if self.budget is None or self.verdict == SAME:
            return None
        budget = self.budget
        return order_of(self.limit.team_id, budget.limit, budget.duration, is_hard=budget.is_hard)


# ---- reading -----------------------------------------------------------------------------------
def read_gateway(source: Source) -> int:
    """Ask a gateway for its limits and keep what it says; return of how many teams.

    Raises:
        SourceError: it gave no answer that can be used; what was known stands.
    """
    found = ask_limits(source)
    _keep(source, found)
    return len(found)


def read_gateways() -> dict[str, Any]:
    """Ask every gateway; return by name of how many teams it told, or why it did not."""
    found: dict[str, Any] = {}
    for source in gateways():
        try:
            found[source.name] = {"teams": read_gateway(source)}
        except SourceError as error:
            sentence = reasons.sentence(error.code, error.numbers)
            found[source.name] = {"code": error.code, "detail": sentence}
    return found


@transaction.atomic
def _keep(source: Source, found: list[TeamLimit]) -> None:
    now = clock.now()
    GatewayLimit.objects.filter(source=source).exclude(
        team_id__in=[one.team_id for one in found]
    ).delete()
    for one in found:
        columns = {name: getattr(one, name) for name in ("alias", "hard", "soft", "reset_at")}
        columns |= {"duration": one.duration[:32], "read_at": now}
        GatewayLimit.objects.update_or_create(source=source, team_id=one.team_id, defaults=columns)


# ---- comparing ---------------------------------------------------------------------------------
def compared_limits(actor: Actor, now: datetime | None = None) -> list[Compared]:
    """Return the limits of LiteLLM that the actor may see, beside our budgets. 3 queries."""
    now = now or clock.now()
    owners = _owners(now)
    budgets: dict[int, list[Budget]] = defaultdict(list)
    rows = Budget.objects.filter(scope=BudgetScope.TEAM, measure=BudgetMeasure.MONEY)
    for budget in rows.order_by("-is_hard", "name"):
        budgets[budget.team_id or 0].append(budget)
    found = []
    for limit in GatewayLimit.objects.select_related("source").order_by("source__name", "team_id"):
        team_id, name = owners.get(limit.team_id, (0, ""))
        if actor.may_see_bills or (team_id and actor.may_see_bill(team_id)):
            beside = _nearest(limit, budgets.get(team_id, []))
            found.append(Compared(limit, name, beside, _verdict(limit, beside, now)))
    return found


def _owners(now: datetime) -> dict[str, tuple[int, str]]:
    """Return whose each team of LiteLLM is now, by its id."""
    rows = DatedMapping.objects.filter(
        Q(valid_to=None) | Q(valid_to__gt=now),
        kind=MappingKind.LITELLM_TEAM,
        valid_from__lte=now,
        team__isnull=False,
    )
    return {
        value: (team_id, name)
        for value, team_id, name in rows.values_list("value", "team_id", "team__name")
    }


def _nearest(limit: GatewayLimit, budgets: list[Budget]) -> Budget | None:
    """Return the budget with the limit's window, else the first: hard ones go first."""
    same = [one for one in budgets if _is_same_window(one.duration, limit.duration)]
    return next(iter([*same, *budgets]), None)


def _verdict(limit: GatewayLimit, budget: Budget | None, now: datetime) -> str:
    has_any = limit.hard is not None or limit.soft is not None
    if has_any and limit.reset_at is not None and limit.reset_at < now:
        return LATE
    if budget is None:
        return NO_BUDGET if has_any else SAME
    said = limit.hard if budget.is_hard else limit.soft
    if said is None:
        return NO_LIMIT
    agrees = said == budget.limit and _is_same_window(budget.duration, limit.duration)
    return SAME if agrees else DIFFERS


def _is_same_window(ours: str, theirs: str) -> bool:
    """Return whether two durations mean the same: 30d, monthly and 1mo are calendar months."""
    try:
        return parse(ours) == parse(theirs)
    except BadDurationError:
        return False


def limit_cells(row: Compared) -> dict[str, Any]:
    """Return a limit as files and answers have it."""
    limit, budget = row.limit, row.budget
    return {
        "source": limit.source.name,
        "litellm_team": limit.team_id,
        "alias": limit.alias,
        "team": row.team,
        "budget": budget.name if budget else "",
        "verdict": row.verdict,
        "hard": limit.hard,
        "soft": limit.soft,
        "duration": limit.duration,
        "reset_at": limit.reset_at,
        "budget_limit": budget.limit if budget else None,
        "budget_kind": ("hard" if budget.is_hard else "soft") if budget else "",
        "budget_duration": budget.duration if budget else "",
        "read_at": limit.read_at,
    }


# ---- pushing -----------------------------------------------------------------------------------
def push_limit(
    pk: int, actor: User, reason: str = "", seen: Mapping[str, Any] | None = None
) -> Compared:
    """Let LiteLLM limit a team as our budget does, and look whether it does.

    Args:
        pk: the limit's row.
        actor: who wishes it; the audit trail keeps this, with what stood before and after.
        reason: why, in the words of ``actor``.
        seen: the order that was shown before; another one by now is refused.

    Raises:
        Rejected: there is nothing to push, or LiteLLM did not take it.
        Stale: the order is another one than was shown.
    """
    row = _row(pk)
    order = row.order if row else None
    if row is None or row.budget is None or order is None:
        words = _("No budget says anything else than this limit.")
        raise Rejected([Problem("limit", "NOTHING_TO_PUSH", words)])
    if seen is not None and dict(seen) != written(order):
        words = _("Budget or limit have changed since the preview; look again.")
        raise Stale([Problem("limit", "stale", words)])
    before = _as_json(row.limit)
    try:
        _keep(row.limit.source, order_limit(row.limit.source, order))
    except SourceError as error:
        sentence = reasons.sentence(error.code, error.numbers)
        raise Rejected([Problem("source", error.code, sentence, error.numbers)]) from error
    after = _row(pk)
    audit.record(
        actor,
        "litellm_limit.pushed",
        ("GatewayLimit", f"{row.limit.source.name} {row.limit.team_id}"[:200]),
        before=before,
        after={**(_as_json(after.limit) if after else {}), "sent": written(order)},
        reason=reason,
        team=row.team,
    )
    return after or row


def written(order: Mapping[str, str | Decimal]) -> dict[str, str]:
    """Return an order as texts, as it is shown before it is sent."""
    return {
        name: digits(value.normalize()) if isinstance(value, Decimal) else value
        for name, value in order.items()
    }


def said_and_sent(row: Compared) -> list[tuple[str, str, str]]:
    """Return by LiteLLM's names what it says and what would be sent; "" is nothing."""
    order = written(row.order or {})
    said = _as_json(row.limit)
    names = {"max_budget": "hard", "soft_budget": "soft", "budget_duration": "duration"}
    return [(name, said[ours] or "", order.get(name, "")) for name, ours in names.items()]


def _row(pk: int) -> Compared | None:
    everything = Actor(None, frozenset({"finance"}))
    return next((row for row in compared_limits(everything) if row.limit.pk == pk), None)


def _as_json(limit: GatewayLimit) -> dict[str, str | None]:
    amounts = {"hard": limit.hard, "soft": limit.soft}
    texts = {name: None if v is None else digits(v.normalize()) for name, v in amounts.items()}
    return {**texts, "duration": limit.duration}
