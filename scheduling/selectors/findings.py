"""The sentence at the top of each page: what its numbers say, made from the same numbers."""

from collections.abc import Iterable, Mapping, Sequence

from django.utils.translation import gettext, ngettext

from gpuplatform.common.bars import QuotaBar
from gpuplatform.common.locales import by_locale
from gpuplatform.common.quantities import format_quantity
from gpuplatform.common.reasons import describe_amount
from scheduling.engine.fragments import Fragments
from scheduling.engine.machines import GPU, WHOLE
from scheduling.engine.terms import Outcome, Status
from scheduling.engine.view import QuotaRow
from scheduling.selectors.history import Borrower, HourlyUse
from scheduling.selectors.line import Sums
from scheduling.selectors.loans import OpenLoan
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
    words: dict[str, int | str] = {
        "used": numbers.used,
        "total": numbers.total,
        "pending": numbers.pending,
    }
    if page.board.actor.sees_everything:
        if numbers.pending:
            return (
                gettext("%(used)s of %(total)s GPUs are in use and %(pending)s more are wanted")
                % words
            )
        return gettext("%(used)s of %(total)s GPUs are in use and nobody waits for one") % words
    if numbers.borrowed:
        words |= {"own": numbers.used - numbers.borrowed, "borrowed": numbers.borrowed}
        words["wants"] = gettext(" and want %(pending)s more") % words if numbers.pending else ""
        return (
            gettext("Your teams use %(own)s of their %(total)s GPUs, borrow %(borrowed)s%(wants)s")
            % words
        )
    if numbers.pending:
        return (
            gettext("Your teams use %(used)s of their %(total)s GPUs and want %(pending)s more")
            % words
        )
    return gettext("Your teams use %(used)s of their %(total)s GPUs and wait for none") % words


def queues_sentence(
    bars: Iterable[QuotaBar],
    column: str,
    resource: str,
    kept: Iterable[QuotaRow] = (),
    *,
    room: int | None = None,
    only_own: bool = False,
) -> str:
    """Say what is on loan and what stands unused in one column.

    ``kept`` are the cohorts' rows that the reader may see: what they keep for all counts too.
    ``room``: what nodes that take pods have free; told where it is less than the quota that
    stands unused, which then is not to be had. ``only_own``: the reader sees own queues only, so
    nothing is said about the others.
    """
    bars = list(bars)
    borrowed = sum(bar.on_loan for bar in bars)
    idle = sum(bar.idle for bar in bars) + sum(row.idle for row in kept)
    words = {
        "borrowed": describe_amount(resource, borrowed),
        "idle": format_quantity(resource, idle),
        "column": column,
    }
    if not bars:
        return gettext("No queue has quota yet")
    full = room is not None and room < idle
    words["room"] = format_quantity(resource, room or 0)
    but = gettext(", but nodes have room for %(room)s only") % words if full else ""
    if borrowed:
        return _on_loan(borrowed, idle, only_own=only_own) % words + but
    words["idle"] = describe_amount(resource, idle)
    if idle:
        return gettext("Nobody borrows %(column)s; %(idle)s of quota stand unused") % words + but
    return gettext("All quota of %(column)s is in use and nobody borrows") % words


def _on_loan(borrowed: int, idle: int, *, only_own: bool) -> str:
    if only_own:
        if idle:
            return gettext("Your queues borrow %(borrowed)s of %(column)s while %(idle)s are idle")
        return gettext("Your queues borrow %(borrowed)s of %(column)s and use all of their own")
    if idle:
        return ngettext(
            "%(borrowed)s of %(column)s is on loan while %(idle)s stand unused",
            "%(borrowed)s of %(column)s are on loan while %(idle)s stand unused",
            borrowed,
        )
    return ngettext(
        "%(borrowed)s of %(column)s is on loan and none stands unused",
        "%(borrowed)s of %(column)s are on loan and none stands unused",
        borrowed,
    )


def queue_sentence(name: str, bars: Iterable[QuotaBar]) -> str:
    """Say what a queue holds of its GPUs, borrows and lends; loans are judged by flavor."""
    mine = [bar for bar in bars if bar.resource == GPU]
    if not mine:
        return gettext("%(name)s has no GPU quota") % {"name": name}
    used, nominal, lent = (
        sum(getattr(bar, what) for bar in mine) for what in ("used", "nominal", "lent")
    )
    words = {
        "name": name,
        "used": describe_amount(GPU, used),
        "nominal": describe_amount(GPU, nominal),
        "lent": lent,
        "loans": ", ".join(_above_own(bar) for bar in mine if bar.borrowed),
    }
    if words["loans"]:
        parts = [f"{bar.used} {bar.label}" for bar in mine if bar.used]
        if len(parts) > 1:
            words["used"] = f"{words['used']} ({', '.join(parts)})"
        if any(bar.on_loan for bar in mine):
            return gettext("%(name)s holds %(used)s and borrows %(loans)s") % words
        return gettext("%(name)s holds %(used)s: %(loans)s") % words
    if lent:
        return gettext("%(name)s uses %(n)s of its %(nominal)s and lends %(lent)s") % {
            **words,
            "n": used,
        }
    return gettext("%(name)s uses %(n)s of its %(nominal)s") % {**words, "n": used}


def _above_own(bar: QuotaBar) -> str:
    words = {"n": bar.borrowed, "flavor": bar.label, "nominal": bar.nominal}
    if not bar.nominal:
        return gettext("%(n)s %(flavor)s without any of its own") % words
    return gettext("%(n)s %(flavor)s above its own %(nominal)s") % words


def workloads_sentence(sums: Sums, active: int) -> str:
    """Say how many wait, apart from those that wait in vain, and how many hold GPUs."""
    words = {"n": sums.workloads}
    waits = ngettext("%(n)d workload waits", "%(n)d workloads wait", sums.workloads) % words
    if sums.hopeless:
        never = gettext("%(n)s more can never start") % {"n": sums.hopeless}
        waits = f"{waits}, {never}"
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
            why = story.deciding.sentence if story.deciding else story.pending_sentence
            if story.is_impossible:
                return gettext("%(name)s can never start. %(why)s") % {**words, "why": why}
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


def nodes_sentence(rows: Sequence[NodeRow], pieces: Sequence[Fragments]) -> str:
    """Say how much is free, how large a gang still fits in one domain, and what is kept of it."""
    kept = sum(row.kept for row in rows)
    said = _free_sentence(rows, pieces)
    if not kept:
        return said
    words = ngettext(
        "%(said)s; %(n)d of them is kept for a gang that waits",
        "%(said)s; %(n)d of them are kept for gangs that wait",
        kept,
    )
    return words % {"said": said, "n": kept}


def _free_sentence(rows: Sequence[NodeRow], pieces: Sequence[Fragments]) -> str:
    total, free = sum(row.gpus for row in rows), sum(row.free + row.kept for row in rows)
    if not total:
        return gettext("No node has reported GPUs yet")
    words: dict[str, str | int] = {"free": free, "total": total}
    if not free:
        return gettext("None of %(total)s GPUs is free") % words
    several = sorted(
        (piece for piece in pieces if piece.resource == GPU and piece.placeable),
        key=lambda piece: (-piece.placeable, piece.flavor),
    )
    if len(several) > 1:
        parts = (f"{piece.placeable // WHOLE} {piece.flavor}" for piece in several)
        words["parts"] = ", ".join(parts)
        return gettext("%(free)s of %(total)s GPUs are free: %(parts)s") % words
    largest = several[0].gangs[1] if several else {}
    level = domain_level(largest)
    if level and len({row.block for row in rows}) > 1:
        words |= {"gang": largest[level], "level": level.rsplit("/", 1)[-1]}
        return (
            gettext(
                "%(free)s of %(total)s GPUs are free; the largest gang that fits in one"
                " %(level)s has %(gang)s"
            )
            % words
        )
    return gettext("%(free)s of %(total)s GPUs are free") % words


def domain_level(largest: Mapping[str, int]) -> str:
    """Return the outermost level for which a largest gang is known, "" without topologies."""
    levels = [name for name in largest if name not in {"host", "cluster"} and "/" in name]
    return max(levels, key=lambda name: (largest[name], name), default="")


def loans_sentence(loans: Sequence[OpenLoan]) -> str:
    """Say how much is on loan."""
    gpus = sum(loan.gpus for loan in loans)
    if not gpus:
        return gettext("Nothing is on loan now")
    borrowers = len({loan.borrower for loan in loans})
    who = ngettext("%(n)d queue borrows", "%(n)d queues borrow", borrowers) % {"n": borrowers}
    count = len(loans)
    how = ngettext("in %(n)d open loan", "in %(n)d open loans", count) % {"n": count}
    words = {"who": who, "gpus": describe_amount(GPU, gpus), "how": how}
    return gettext("%(who)s %(gpus)s now, %(how)s") % words


def use_sentence(use: HourlyUse) -> str:
    """Say the mean use of a window against the promise."""
    if use.is_empty:
        return gettext("Nothing was used and nothing promised in the last 7 days.")
    words = {
        "used": by_locale(f"{use.mean_used:.1f}"),
        "nominal": by_locale(f"{use.mean_nominal:.1f}"),
    }
    return gettext("On average %(used)s GPUs in use against a nominal of %(nominal)s.") % words


def borrowed_sentence(borrowers: Sequence[Borrower]) -> str:
    """Say who borrowed most in a window."""
    if not borrowers:
        return gettext("Nobody borrowed in the last 7 days.")
    first = borrowers[0]
    words = {"queue": first.queue, "hours": by_locale(f"{first.gpu_hours:,.1f}")}
    return gettext("%(queue)s borrowed most: %(hours)s GPU-hours in 7 days.") % words
