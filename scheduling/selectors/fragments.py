"""How usable free GPUs are: one count, read by page, figure, file and REST answer alike."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from django.utils.functional import Promise
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from gpuplatform.common import clock
from gpuplatform.common.locales import by_locale
from scheduling.engine.fragments import CLUSTER, HOST, SIZES, Fragments, Stranded, fragments
from scheduling.engine.machines import WHOLE
from scheduling.loader import load_standing

CAUSES: Mapping[Stranded, str | Promise] = {
    Stranded.NOT_READY: _("node not ready"),
    Stranded.CORDONED: _("node cordoned"),
    Stranded.TAINT: _("taint that nobody tolerates"),
    Stranded.KEPT: _("kept for a gang that waits"),
    Stranded.CPU: _("CPU of the node used up"),
    Stranded.MEMORY: _("memory of the node used up"),
    Stranded.PODS: _("no pod slot left on the node"),
    Stranded.OTHER: _("another resource of the node used up"),
    Stranded.SHARE: _("too small a share of a device"),
    Stranded.PIECES: _("too few on one node"),
}
FRAGMENT_COLUMNS = (
    *("flavor", "resource", "nodes", "empty_nodes", "gpus", "free", "usable", "fragment_ratio"),
    *(f"stranded_{cause.value}" for cause in Stranded),
    *(f"gang_of_{size}" for size in SIZES),
)


def read_fragments() -> tuple[Fragments, ...]:
    """Return the figures of every flavor as things stand now."""
    return fragments(load_standing(clock.now()))


def in_gpus(thousandths: int) -> int | Decimal:
    """Return an amount in GPUs: whole ones as they are, parts exactly."""
    whole, part = divmod(thousandths, WHOLE)
    return Decimal(thousandths).scaleb(-3).normalize() if part else whole


def fragment_cells(found: Iterable[Fragments]) -> Iterable[dict[str, Any]]:
    """Yield the figures as rows of an export; a gang as pods by level, ``host=4 cluster=21``."""
    for piece in found:
        yield {
            **_sums(piece),
            **{f"stranded_{c.value}": in_gpus(piece.stranded.get(c, 0)) for c in Stranded},
            **{
                f"gang_of_{size}": " ".join(f"{level}={n}" for level, n in by_level.items())
                for size, by_level in piece.gangs.items()
            },
        }


def fragment_json(piece: Fragments) -> dict[str, Any]:
    """Return the figures as REST answers them; a part of a GPU is a number with decimals."""
    stranded = {c.value: _number(piece.stranded.get(c, 0)) for c in Stranded}
    amounts = {"gpus": piece.total, "free": piece.free, "usable": piece.usable}
    sums = _sums(piece) | {name: _number(amount) for name, amount in amounts.items()}
    gangs = {str(size): dict(by_level) for size, by_level in piece.gangs.items()}
    return {**sums, "stranded": stranded, "largest_gangs": gangs}


def _sums(piece: Fragments) -> dict[str, Any]:
    return {
        "flavor": piece.flavor,
        "resource": piece.resource,
        "nodes": piece.nodes,
        "empty_nodes": piece.empty_nodes,
        "gpus": in_gpus(piece.total),
        "free": in_gpus(piece.free),
        "usable": in_gpus(piece.usable),
        "fragment_ratio": piece.ratio,
    }


def _number(thousandths: int) -> float:
    found = in_gpus(thousandths)
    return found if isinstance(found, int) else float(found)


@dataclass(frozen=True, slots=True)
class FragmentView:
    """The figures of one flavor as a page shows them."""

    piece: Fragments

    @property
    def free(self) -> int | Decimal:
        """Return the free GPUs."""
        return in_gpus(self.piece.free)

    @property
    def usable(self) -> int | Decimal:
        """Return those that a pod which usually comes can use."""
        return in_gpus(self.piece.usable)

    @property
    def percent(self) -> str:
        """Return the fragmentation ratio in per cent; a dash where nothing can be judged."""
        return "-" if self.piece.ratio is None else by_locale(f"{100 * self.piece.ratio:.1f} %")

    @property
    def stranded(self) -> list[tuple[str, int | Decimal]]:
        """Return the causes that strand something, with how much."""
        return [(str(CAUSES[c]), in_gpus(n)) for c, n in self.piece.stranded.items()]

    @property
    def levels(self) -> list[str]:
        """Return the levels of the table of gangs, the nearest first, in words."""
        return [level_words(level) for level in self.piece.gangs[SIZES[0]]]

    @property
    def gangs(self) -> list[tuple[int, list[int]]]:
        """Return for each size of a pod the largest gang by level."""
        return [(size, list(by_level.values())) for size, by_level in self.piece.gangs.items()]


def level_words(level: str) -> str:
    """Return a level as people say it."""
    if level == HOST:
        return gettext("node")
    if level == CLUSTER:
        return gettext("anywhere")
    return level.rsplit("/", 1)[-1]


def fragments_sentence(found: Iterable[Fragments]) -> str:
    """Say how much of what is free can be used by what usually comes."""
    found = list(found)
    free, usable = sum(p.free for p in found), sum(p.usable for p in found)
    words = {"free": in_gpus(free), "usable": in_gpus(usable), "rest": in_gpus(free - usable)}
    if not free:
        return gettext("No GPU is unused.")
    if free == WHOLE:
        can = gettext("One GPU is unused, and a pod that usually comes can use it.")
        return can if usable else gettext("One GPU is unused, and no pod that comes can use it.")
    if free == usable:
        return gettext("All %(free)s unused GPUs can be used by pods that usually come.") % words
    return (
        gettext("Of %(free)s unused GPUs %(usable)s can be used by pods that usually come.")
        % words
    )
