"""The sentence at the top of each page: what its numbers say, made from the same numbers."""

from collections.abc import Iterable, Sequence

from django.utils.translation import gettext, ngettext

from gpuplatform.common.bars import QuotaBar
from gpuplatform.common.quantities import format_quantity
from gpuplatform.common.reasons import describe_amount
from scheduling.engine.snapshot import GPU
from scheduling.engine.terms import Outcome, Status
from scheduling.engine.view import Fragmentation
from scheduling.selectors.history import Borrower, HourlyUse
from scheduling.selectors.loans import Loan
from scheduling.selectors.nodes import NodeRow
from scheduling.selectors.overview import Overview
from scheduling.selectors.workloads import Story


def overview_sentence(page: Overview) -> str:
    """Say how full it is and who wants more."""
    numbers = page.numbers
    if not numbers.total:
        return (
            gettext("No node has reported GPUs yet")
            if page.board.actor.sees_everything
            else gettext("Your teams have no GPU quota yet")
        )
    words = {"used": numbers.used, "total": numbers.total, "pending": numbers.pending}
    if page.board.actor.sees_everything:
        if numbers.pending:
            return (
                gettext("%(used)s of %(total)s GPUs are in use and %(pending)s more are wanted")
                % words
            )
        return gettext("%(used)s of %(total)s GPUs are in use and nobody waits for one") % words
    if numbers.used > numbers.total:
        words["more"] = numbers.used - numbers.total
        return (
            gettext("Your teams hold %(used)s GPUs: %(more)s more than their own %(total)s")
            % words
        )
    if numbers.pending:
        return (
            gettext("Your teams use %(used)s of their %(total)s GPUs and want %(pending)s more")
            % words
        )
    return gettext("Your teams use %(used)s of their %(total)s GPUs and wait for none") % words


def queues_sentence(bars: Iterable[QuotaBar], column: str, resource: str) -> str:
    """Say what is on loan and what stands unused in one column."""
    bars = list(bars)
    borrowed, idle = sum(bar.borrowed for bar in bars), sum(bar.idle for bar in bars)
    words = {
        "borrowed": describe_amount(resource, borrowed),
        "idle": format_quantity(resource, idle),
        "column": column,
    }
    if not bars:
        return gettext("No queue has quota yet")
    if borrowed and idle:
        return (
            gettext("%(borrowed)s of %(column)s are on loan while %(idle)s stand unused") % words
        )
    if borrowed:
        return gettext("%(borrowed)s of %(column)s are on loan and none stands unused") % words
    words["idle"] = describe_amount(resource, idle)
    if idle:
        return gettext("Nobody borrows %(column)s; %(idle)s of quota stand unused") % words
    return gettext("All quota of %(column)s is in use and nobody borrows") % words


def queue_sentence(name: str, bars: Iterable[QuotaBar]) -> str:
    """Say what a queue holds of its GPUs, borrows and lends."""
    mine = [bar for bar in bars if bar.resource == GPU]
    if not mine:
        return gettext("%(name)s has no GPU quota") % {"name": name}
    used, nominal = sum(b.used for b in mine), sum(b.nominal for b in mine)
    borrowed, lent = sum(b.borrowed for b in mine), sum(b.lent for b in mine)
    words = {"name": name, "used": used, "nominal": nominal, "borrowed": borrowed, "lent": lent}
    if borrowed:
        return (
            gettext("%(name)s holds %(used)s GPUs: %(borrowed)s more than its own %(nominal)s")
            % words
        )
    if lent:
        return gettext("%(name)s uses %(used)s of its %(nominal)s GPUs and lends %(lent)s") % words
    return gettext("%(name)s uses %(used)s of its %(nominal)s GPUs") % words


def workloads_sentence(pending: int, active: int) -> str:
    """Say how many wait and how many hold GPUs."""
    waits = ngettext("%(n)d workload waits", "%(n)d workloads wait", pending) % {"n": pending}
    runs = ngettext("%(n)d holds its nodes", "%(n)d hold their nodes", active) % {"n": active}
    return gettext("%(waits)s, %(runs)s") % {"waits": waits, "runs": runs}


def workload_sentence(story: Story) -> str:
    """Say where a workload stands, and, where it waits, for what."""
    workload = story.workload
    nodes = len({slot.node for slot in story.slots if slot.node})
    words = {
        "name": workload.name,
        "nodes": ngettext("%(n)d node", "%(n)d nodes", nodes) % {"n": nodes},
    }
    match workload.status:
        case Status.PENDING:
            why = story.blockers[0].sentence if story.blockers else story.pending_sentence
            return gettext("%(name)s waits. %(why)s") % {**words, "why": why}
        case Status.ADMITTED:
            return gettext("%(name)s is admitted to %(nodes)s and is starting") % words
        case Status.RUNNING:
            return gettext("%(name)s runs on %(nodes)s") % words
        case Status.INACTIVE:
            return gettext("%(name)s is inactive: it will not start by itself") % words
    ends = {
        Outcome.SUCCEEDED.value: gettext("%(name)s has succeeded"),
        Outcome.FAILED.value: gettext("%(name)s has failed"),
        Outcome.CANCELLED.value: gettext("%(name)s was cancelled"),
    }
    return ends.get(workload.outcome, gettext("%(name)s has ended")) % words


def nodes_sentence(rows: Sequence[NodeRow], pieces: Sequence[Fragmentation]) -> str:
    """Say how much is free and how large a gang still fits in one domain."""
    total, free = sum(row.gpus for row in rows), sum(row.free for row in rows)
    if not total:
        return gettext("No node has reported GPUs yet")
    largest = next((p.largest for p in pieces if p.resource == GPU), {})
    blocks = {row.block for row in rows}
    words: dict[str, str | int] = {"free": free, "total": total}
    if not free:
        return gettext("None of %(total)s GPUs is free") % words
    level = domain_level(largest)
    if level and len(blocks) > 1:
        words |= {"gang": largest[level], "level": level.rsplit("/", 1)[-1]}
        return (
            gettext(
                "%(free)s of %(total)s GPUs are free; the largest gang that fits in one"
                " %(level)s has %(gang)s"
            )
            % words
        )
    return gettext("%(free)s of %(total)s GPUs are free") % words


def domain_level(largest: dict[str, int] | object) -> str:
    """Return the outermost level for which a largest gang is known, "" without topologies."""
    if not isinstance(largest, dict):
        return ""
    levels = [name for name in largest if name not in {"host", "cluster"} and "/" in name]
    return max(levels, key=lambda name: (largest[name], name), default="")


def loans_sentence(loans: Sequence[Loan]) -> str:
    """Say how much is on loan."""
    gpus = sum(loan.gpus for loan in loans)
    if not gpus:
        return gettext("Nothing is on loan now")
    borrowers = len({loan.borrower for loan in loans})
    who = ngettext("%(n)d queue borrows", "%(n)d queues borrow", borrowers) % {"n": borrowers}
    return gettext("%(who)s %(gpus)s now") % {"who": who, "gpus": describe_amount(GPU, gpus)}


def use_sentence(use: HourlyUse) -> str:
    """Say the mean use of a window against the promise."""
    if use.is_empty:
        return gettext("Nothing was used and nothing promised in the last 7 days.")
    words = {"used": f"{use.mean_used:.1f}", "nominal": f"{use.mean_nominal:.1f}"}
    return gettext("On average %(used)s GPUs in use against a nominal of %(nominal)s.") % words


def borrowed_sentence(borrowers: Sequence[Borrower]) -> str:
    """Say who borrowed most in a window."""
    if not borrowers:
        return gettext("Nobody borrowed in the last 7 days.")
    first = borrowers[0]
    words = {"queue": first.queue, "hours": f"{first.gpu_hours:,.1f}"}
    return gettext("%(queue)s borrowed most: %(hours)s GPU-hours in 7 days.") % words
