"""What a window costs each team if other runs had used it: the arithmetic of bills on other facts.

Capacity, prices, mappings and what other systems said stay as they are: iron costs the same
whoever uses it. Of our own metering the runs that were played are replaced by those of the tape,
and promises by those that were played under.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from decimal import Decimal
from typing import cast

from finops.allocation.bill import chargeback
from finops.allocation.facts import Facts, IdlePolicy, Instant, Quota, Usage
from finops.loader import MonthFacts, with_other_use
from finops.metered_facts import GPU, TEAM_MARK
from scheduling.engine.snapshot import Snapshot
from scheduling.replay.tape import Hold
from scheduling.selectors.past_traces import Marks

CENTRAL = ""
MICROSECONDS = 1_000_000
Costs = dict[str, Decimal]


def costs_of(month: MonthFacts, idle: str) -> Costs:
    """Return what each team pays; ``CENTRAL`` is what no team does. They add up to the whole."""
    found: Costs = defaultdict(lambda: Decimal("0.00"))
    for line in chargeback(month.under(cast("IdlePolicy", idle))).lines:
        found[CENTRAL if line.account.is_bucket else line.account.name] += line.amount
    return dict(found)


def as_played(
    month: MonthFacts, holds: Iterable[Hold], marks: Mapping[str, Marks], site: Snapshot
) -> MonthFacts:
    """Return the facts of a window as if these runs had been, under the promises of ``site``."""
    facts = month.facts
    keys = {one.key for one in facts.mappings if one.key}
    # What was left out of the trace ran as it ran: work outside queues, and of queues now gone.
    others = tuple(use for use in facts.usage if use.workload not in marks)
    played = tuple(_runs(facts, holds, marks, keys, month.cluster))
    return with_other_use(month, others + played, tuple(_quotas(facts, site, month.cluster)))


def _runs(
    facts: Facts,
    holds: Iterable[Hold],
    marks: Mapping[str, Marks],
    keys: set[str],
    cluster: str,
) -> Iterator[Usage]:
    """Yield the runs that have a part in the window."""
    for hold in holds:
        start, end = _instant(hold.since_s), _instant(hold.until_s)
        if end <= facts.period.start or start >= facts.period.end:
            continue
        mark = marks[hold.key]
        for column, amount in hold.charge:
            if column.resource == GPU and amount and end > start:
                yield Usage(
                    workload=hold.key,
                    cluster=cluster,
                    flavor=column.flavor,
                    gpus=amount,
                    start=start,
                    end=end,
                    admitted=_instant(hold.run_s),
                    queue=hold.queue or None,
                    namespace=mark.namespace or None,
                    labels={
                        **_told(mark.labels, keys),
                        **({TEAM_MARK: mark.team} if mark.team else {}),
                    },
                    annotations=_told(mark.annotations, keys),
                    preempted=hold.evicted,
                )


def _told(texts: Mapping[str, str], keys: set[str]) -> dict[str, str]:
    return {key: text for key, text in texts.items() if key in keys}


def _instant(seconds: float) -> Instant:
    return round(seconds * MICROSECONDS)


def _quotas(facts: Facts, site: Snapshot, cluster: str) -> Iterator[Quota]:
    """Yield what queues are promised over the whole window."""
    for name, queue in site.cluster_queues.items():
        cohort = _root(site, queue.cohort)
        for column, quota in queue.quotas.items():
            if column.resource == GPU:
                yield Quota(
                    cluster=cluster,
                    queue=name,
                    flavor=column.flavor,
                    nominal=quota.nominal,
                    cohort=cohort,
                    borrowing_limit=quota.borrowing_limit,
                    lending_limit=quota.lending_limit,
                    start=facts.period.start,
                    end=facts.period.end,
                )


def _root(site: Snapshot, cohort: str | None) -> str | None:
    """Return the topmost cohort above a queue; a tree that runs in a circle has none beyond it."""
    passed = {cohort}
    while cohort is not None and cohort in site.cohorts:
        parent = site.cohorts[cohort].parent
        if parent is None or parent in passed:
            return cohort
        passed.add(parent)
        cohort = parent
    return cohort
