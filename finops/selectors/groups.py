"""The cost of any window by anything: page, file and answer show what stands here.

Computed from the facts of the window by the arithmetic of bills; for a calendar month it is
the bill, adjustments included. An actor who may not see all bills sees the money of the teams
led, and nothing of what nobody pays.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import cast

from django.conf import settings
from django.utils.translation import gettext as _

from finops.allocation import places
from finops.allocation.bill import Outcome, chargeback
from finops.allocation.facts import IdlePolicy as AllocationPolicy
from finops.allocation.facts import Period, instant, moment
from finops.allocation.grouping import BY_WORK, DIMENSIONS, Grouped, grouped
from finops.allocation.lines import Line
from finops.allocation.places import Account
from finops.loader import MonthFacts, load_window, policy_of
from finops.metered_facts import rows_inside
from finops.models import BillingPeriod
from finops.models.bills import IdlePolicy
from finops.selectors.adjustments import with_adjustments
from finops.sources.opencost import sanitised
from finops.sources.windows import Window
from finops.spans import BadSpanError, span_of
from gpuplatform.common.problems import Problem, Rejected
from queues.access import Actor
from queues.models import Team
from scheduling.models import UsageInterval, Workload

KEYED = ("label", "annotation")
FILTERS = ("team", "namespace", "queue", "flavor", "type")
LONGEST_KEY = 317
IRON_MARK = "\x1f"  # before the group of a row of OpenCost, so that no workload is called so


@dataclass(frozen=True, slots=True)
class CostQuery:
    """What is asked: a window in words, a dimension, who bears idle, and what to keep."""

    window: str = "month"
    group: str = "team"
    key: str = ""  # of a label or annotation
    idle: str = ""  # "" is the policy of the month in which the window begins
    kept: Mapping[str, str] = field(default_factory=dict)  # filters by name


@dataclass(frozen=True, slots=True)
class CostByGroup:
    """The answer; ``rests_on`` says how much of each source is there."""

    query: CostQuery
    window: Window
    idle: str
    currency: str
    found: Grouped
    rests_on: tuple[Mapping[str, object], ...]
    is_whole: bool  # whether these are all teams
    labels: Mapping[str, str] = field(default_factory=dict)  # what people call a group


def cost_by_group(actor: Actor, query: CostQuery, now: datetime) -> CostByGroup:
    """Return the cost of a window by a dimension, as far as the actor may see it.

    Raises:
        Rejected: no such window, dimension, policy, or a dimension without the key it needs.
    """
    window = _checked(query, now)
    period = _period_of(window)
    idle = query.idle or period.idle_policy
    facts = _load(window, period, query)
    outcome = chargeback(facts.under(cast("AllocationPolicy", idle), **_detail(query)))
    outcome = with_adjustments(outcome)
    found = grouped(
        outcome,
        query.group,
        work=_work(outcome, query),
        keep=_keeper(query),
        accounts=_accounts(actor, query.kept.get("team", "")),
    )
    return CostByGroup(
        query,
        Window(window.start, moment(outcome.facts.period.end)),
        idle,
        outcome.facts.period.currency,
        found,
        facts.rests_on,
        actor.may_see_bills,
        _labels(found) if query.group == "team" else {},
    )


def _labels(found: Grouped) -> dict[str, str]:
    names = [group.name for group in found.groups]
    return {team.name: str(team) for team in Team.objects.filter(name__in=names)}


def _checked(query: CostQuery, now: datetime) -> Window:
    """Return the window, or refuse what cannot be answered, each with its parameter."""
    problems = []
    if query.group not in DIMENSIONS:
        words = _("{group} is none of {allowed}.")
        allowed = ", ".join(DIMENSIONS)
        said = words.format(group=query.group[:40], allowed=allowed)
        problems.append(Problem("group", "BAD_VALUE", said))
    if query.idle and query.idle not in IdlePolicy.values:
        words = _("{policy} is not an idle policy.").format(policy=query.idle[:40])
        problems.append(Problem("idle", "BAD_VALUE", words))
    if (query.group in KEYED) != bool(query.key):
        words = _("Name the key of a label or annotation, and only with one of them.")
        problems.append(Problem("key", "REQUIRED" if not query.key else "MUST_BE_EMPTY", words))
    if len(query.key) > LONGEST_KEY:
        problems.append(Problem("key", "TOO_LONG", _("The key is too long.")))
    window = None
    try:
        window = span_of(query.window, now, settings.BILLING_TIME_ZONE)
    except BadSpanError as error:
        problems.append(Problem("window", "BAD_VALUE", str(error)))
    if problems or window is None:
        raise Rejected(problems)
    return window


def _period_of(window: Window) -> BillingPeriod:
    """Return the month in which a window begins, or one with the defaults."""
    found = BillingPeriod.objects.filter(starts_at__lte=window.start, ends_at__gt=window.start)
    return found.first() or BillingPeriod(
        time_zone=settings.BILLING_TIME_ZONE, currency=settings.CURRENCY
    )


def _load(window: Window, period: BillingPeriod, query: CostQuery) -> MonthFacts:
    wanted = Period(instant(window.start), instant(window.end), period.time_zone, period.currency)
    if query.group not in BY_WORK:
        return load_window(wanted, policy_of(period))

    def name(controller: str, labels: Mapping[str, str], annotations: Mapping[str, str]) -> str:
        spelled = sanitised(query.key)
        texts = labels if query.group == "label" else annotations
        said = controller if query.group == "controller" else ""
        said = texts.get(query.key) or texts.get(spelled) or "" if query.key else said
        return IRON_MARK + said

    return load_window(wanted, policy_of(period), [query.key], name)


def _detail(query: CostQuery) -> dict[str, str]:
    return {"detail": "workload"} if query.group in BY_WORK else {}


def _work(outcome: Outcome, query: CostQuery) -> dict[str, str]:
    """Return the group of each child of a line."""
    if query.group not in BY_WORK:
        return {}
    found = {
        row.workload: row.workload.removeprefix(IRON_MARK)
        for row in outcome.facts.iron
        if row.workload
    }
    if query.group in KEYED:
        for use in outcome.facts.usage:
            texts = use.labels if query.group == "label" else use.annotations
            found[use.workload] = texts.get(query.key, "")
        return found
    held = rows_inside(UsageInterval.objects.order_by(), outcome.facts.period)
    rows = Workload.objects.filter(pk__in=held.values("workload")).order_by()
    for uid, kind, namespace, name in rows.values_list("uid", "kind", "namespace", "name"):
        is_pod = query.group == "pod"
        found[str(uid)] = f"{namespace}/{name}" if is_pod else f"{kind}/{name}"
    return found


def _keeper(query: CostQuery) -> Callable[[Line], bool]:
    def keep(line: Line) -> bool:
        key = line.key
        said = {
            "team": line.account.name,
            "namespace": key.namespace,
            "queue": key.queue,
            "flavor": key.flavor,
            "type": key.line_type,
        }
        return all(said[name] == wanted for name, wanted in query.kept.items())

    return keep


def _accounts(actor: Actor, kept: str) -> frozenset[Account] | None:
    """Return the accounts to show, a team's or a bucket's; None is all."""
    wanted = frozenset({Account(is_bucket=False, name=kept), Account(is_bucket=True, name=kept)})
    if actor.may_see_bills:
        return wanted if kept else None
    names = Team.objects.filter(pk__in=actor.bill_team_ids).values_list("name", flat=True)
    own = frozenset(places.team(name) for name in names)
    return own & wanted if kept else own
