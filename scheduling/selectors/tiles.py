"""The overview's key numbers as tiles, with the last day as a small line."""

from django.urls import reverse
from django.utils.translation import gettext, ngettext

from gpuplatform.common.pages import Tile
from gpuplatform.common.reasons import describe_amount
from gpuplatform.common.templatetags.shapes import percent_of
from scheduling.engine.machines import GPU
from scheduling.selectors.overview import Numbers, Overview

HOURS_SHOWN = 24


def overview_tiles(page: Overview) -> list[Tile]:
    """Return GPUs (or quota), in use, borrowed, idle, pending; for the platform or own teams."""
    numbers = page.numbers
    own, borrowed = page.use.own[-HOURS_SHOWN:], page.use.borrowed[-HOURS_SHOWN:]
    used = [a + b for a, b in zip(own, borrowed, strict=True)]
    return [
        _first(page, numbers),
        Tile(
            gettext("In use"),
            str(numbers.used),
            _used_words(page, numbers),
            reverse("workloads") + "?state=running",
            role="nominal",
            spark=used,
            spark_label=_spark_label(gettext("GPUs in use"), used),
        ),
        Tile(
            gettext("Borrowed"),
            str(numbers.borrowed),
            ngettext("in %(n)d open loan", "in %(n)d open loans", numbers.loans)
            % {"n": numbers.loans},
            reverse("borrowing") + "?open=1",
            role="borrowed",
            spark=borrowed,
            spark_label=_spark_label(gettext("Borrowed GPUs"), borrowed),
        ),
        Tile(gettext("Idle"), str(numbers.idle), _idle_words(page, numbers), reverse("nodes")),
        Tile(
            gettext("Pending"),
            str(numbers.pending),
            _pending_words(numbers),
            reverse("workloads") + "?state=pending",
            unit=gettext("GPUs"),
        ),
    ]


def _first(page: Overview, numbers: Numbers) -> Tile:
    if not page.board.actor.sees_everything:
        lent = gettext("%(n)s of them lent") % {"n": numbers.lent}
        return Tile(gettext("Quota"), str(numbers.total), lent, reverse("queues"))
    out = numbers.total - numbers.usable
    sub = (
        gettext("%(usable)s healthy, %(out)s out of service")
        % {"usable": numbers.usable, "out": out}
        if out
        else gettext("all healthy") * bool(numbers.total)
    )
    return Tile(gettext("GPUs"), str(numbers.total), sub, reverse("nodes"))


def _used_words(page: Overview, numbers: Numbers) -> str:
    """Return how much of the total is in use; of a team what is borrowed is no part of it."""
    own = numbers.used if page.board.actor.sees_everything else numbers.used - numbers.borrowed
    part = percent_of(own, numbers.total)
    if own == numbers.used:
        return part or gettext("of nothing")
    words = {"own": own, "part": part, "borrowed": numbers.borrowed}
    if not part:
        return gettext("%(borrowed)s of them borrowed") % words
    return gettext("%(own)s of the quota (%(part)s), %(borrowed)s borrowed") % words


def _pending_words(numbers: Numbers) -> str:
    words = ngettext("in %(n)d workload", "in %(n)d workloads", numbers.waiting)
    words %= {"n": numbers.waiting}
    if not numbers.never:
        return words
    never = gettext("%(gpus)s more can never start")
    never %= {"gpus": describe_amount(GPU, numbers.never)}
    return f"{words}; {never}"


def _idle_words(page: Overview, numbers: Numbers) -> str:
    if page.board.actor.sees_everything:
        return percent_of(numbers.idle, numbers.total)  # of the same as what is in use
    return gettext("of your quota, in nobody's hands")


def _spark_label(what: str, values: list[float] | tuple[float, ...] | object) -> str:
    known = [round(value) for value in values] if isinstance(values, list | tuple) else []
    if not known:
        return what
    words = {"what": what, "low": min(known), "high": max(known), "now": known[-1]}
    return gettext("%(what)s, 24 h: %(low)s to %(high)s, now %(now)s") % words
