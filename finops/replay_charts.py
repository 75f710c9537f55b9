"""Figures and tables of a replay: the same numbers as bars and in words."""

from collections.abc import Sequence
from decimal import Decimal
from typing import Any

from django.utils.translation import gettext as _

from finops.models import QuotaReplay
from finops.replaying.costing import CENTRAL
from finops.replaying.showing import TeamRow
from gpuplatform.common.figures import Figure, figure, team_color
from gpuplatform.common.locales import by_locale
from gpuplatform.common.templatetags.money import money, percent, signed_money
from gpuplatform.common.templatetags.shapes import DASH, duration

HOUR_S = 3600
SPREAD = ("mean_s", "p50_s", "p90_s", "p99_s")
COLORS = {"was": 0, "before": 1, "after": 2}  # grey, then two of the team colours
Row = Sequence[str]


def side_words() -> dict[str, str]:
    """Return what the three sides are called."""
    return {
        "was": _("as it was"),
        "before": _("replayed under the standing quotas"),
        "after": _("replayed under the edited quotas"),
    }


def short_words() -> dict[str, str]:
    """Return what the three sides are called in the head of a table."""
    return {"was": _("As it was"), "before": _("Before"), "after": _("After")}


def sentence(row: QuotaReplay) -> str:
    """Return what came out, or how far it is, in one sentence."""
    if row.result:
        before, after = (row.result[side]["waits"]["mean_s"] for side in ("before", "after"))
        words = _("Work would have waited {after} on average, not {before}")
        if abs(after - before) < 1:
            words = _("Work would have waited {after} on average either way")
        never, never_before = (
            by_locale(f"{row.result[side]['unfinished']:,}") for side in ("after", "before")
        )
        if never != never_before:  # means of other work compare nothing
            words = _(
                "Of the work {never} could never start, not {never_before}; the rest would have "
                "waited {mean} on average"
            )
            return words.format(never=never, never_before=never_before, mean=duration(after))
        return words.format(after=duration(after), before=duration(before))
    return {
        "waiting": _("This replay waits for its turn"),
        "running": _("This replay is {percent} % done").format(percent=row.percent),
        "cancelled": _("This replay was cancelled"),
    }.get(row.state, _("This replay broke off"))


def side_table(row: QuotaReplay) -> list[Row]:
    """Return the waits of all work on each side."""
    if not row.result:
        return []
    return [
        (words, by_locale(f"{waits['workloads']:,}"), *(duration(waits[name]) for name in SPREAD))
        for side, words in side_words().items()
        for waits in (row.result[side]["waits"],)
    ]


def use_rows(row: QuotaReplay) -> list[Row]:
    """Return what was used, borrowed and lost, before and after."""
    if not row.result:
        return []
    sides = [row.result[side] for side in ("before", "after")]
    shares = [_share(side["utilisation"]) for side in sides]
    told = [
        (_("Used of all GPUs"), *shares),
        *(
            (words, *(by_locale(f"{side['use'][name]:,.1f}") for side in sides))
            for name, words in (
                ("gpu_hours", _("Used, GPU-hours")),
                ("borrowed_gpu_hours", _("Borrowed, GPU-hours")),
                ("lost_gpu_hours", _("Lost by evictions, GPU-hours")),
            )
        ),
        (_("Evictions"), *(by_locale(f"{side['use']['evictions']:,}") for side in sides)),
        (_("Most waiting at once"), *(by_locale(f"{side['most_waiting']:,}") for side in sides)),
        (_("Could never start"), *(by_locale(f"{side['unfinished']:,}") for side in sides)),
    ]
    return [tuple(one) for one in told]


def _share(share: Any) -> str:
    return DASH if share is None else percent(Decimal(str(share)))


def wait_head() -> Row:
    """Return the columns of the waits of teams."""
    names = short_words()
    return [
        _("Team"),
        *(f"{names[side]}: {name}" for side in names for name in (_("mean"), "p90")),
    ]


def wait_rows(row: QuotaReplay) -> list[Row]:
    """Return mean and p90 of each team on each side."""
    return [
        [
            team or _("no team"),
            *(_waits(row, side, team, name) for side in COLORS for name in ("mean_s", "p90_s")),
        ]
        for team in _teams(row)
    ]


def _waits(row: QuotaReplay, side: str, team: str, name: str) -> str:
    waits = row.result[side]["teams"].get(team) if row.result else None
    return duration(waits[name]) if waits and waits["workloads"] else DASH


def _teams(row: QuotaReplay) -> list[str]:
    sides = [row.result[side]["teams"] for side in COLORS] if row.result else []
    return sorted({team for side in sides for team in side}, key=lambda one: (one == "", one))


def waits_figure(theme: str, row: QuotaReplay) -> Figure:
    """Return the mean wait of each team in hours: as it was, before, after."""
    teams = _teams(row)
    means = {
        side: [row.result[side]["teams"].get(team, {}).get("mean_s", 0) for team in teams]
        for side in COLORS
        if row.result
    }
    traces = [
        _bars(theme, side, teams, [seconds / HOUR_S for seconds in values])
        for side, values in means.items()
    ]
    return _grouped(theme, traces, _("mean wait, hours"), f"replay-waits-{row.pk}")


def cost_head(row: QuotaReplay) -> Row:
    """Return the columns of the cost of teams."""
    currency = row.result["cost"]["currency"] if row.result else ""
    return [_("Team"), *short_words().values(), _("Difference, {c}").format(c=currency)]


def cost_rows(teams: Sequence[TeamRow]) -> list[Row]:
    """Return the cost of each team on each side."""
    return [
        [
            _team_words(one.team),
            *(money(one.cost[side]) for side in COLORS),
            signed_money(one.difference),
        ]
        for one in teams
        if one.cost
    ]


def cost_figure(theme: str, row: QuotaReplay, teams: Sequence[TeamRow]) -> Figure:
    """Return the cost of each team: as it was, before, after."""
    paying = [one for one in teams if one.cost]
    names = [_team_words(one.team) for one in paying]
    traces = [_bars(theme, side, names, [one.cost[side] for one in paying]) for side in COLORS]
    currency = row.result["cost"]["currency"] if row.result else ""
    return _grouped(theme, traces, currency, f"replay-cost-{row.pk}")


def _team_words(team: str) -> str:
    return _("paid by no team") if team == CENTRAL else team


def _bars(theme: str, side: str, x: Sequence[str], y: Sequence[Any]) -> dict[str, Any]:
    color = team_color(theme, COLORS[side])
    name = short_words()[side]
    return {"type": "bar", "name": name, "x": list(x), "y": list(y), "marker": {"color": color}}


def _grouped(theme: str, traces: Sequence[dict[str, Any]], title: str, view: str) -> Figure:
    axis = {"type": "category", "title": {"text": _("team")}}
    return figure(theme, traces, y_title=title, view=view, barmode="group", xaxis=axis)
