"""The quota bar: numbers to the one bar grammar of the pages. Pure but for the words.

Order of the parts: used, borrowed, lent, idle, pending; a thick tick at nominal, a thin one at
the ceiling, an open end where there is no limit. Positions are percent of ``scale``.
"""

from dataclasses import dataclass
from typing import NamedTuple

from django.utils.translation import gettext

from gpuplatform.common.quantities import format_quantity

LATE = 83.0  # from here on the ceiling's label ends at its tick, so that it stays inside


class Segment(NamedTuple):
    """A stretch of the bar: class, start and width in percent."""

    kind: str
    x: float
    width: float


@dataclass(frozen=True, slots=True)
class QuotaBar:
    """One bar. Amounts are in canonical units of ``resource``.

    ``used`` includes what is borrowed; ``alone``: from nobody, in no cohort, as what was cut
    below what runs. ``ceiling`` None: no borrowing limit. ``scale`` is the
    amount at the right end; sisters share it, so that equal lengths are equal amounts.
    """

    label: str
    nominal: int
    used: int
    borrowed: int = 0
    lent: int = 0
    pending: int = 0
    ceiling: int | None = None
    resource: str = "nvidia.com/gpu"
    scale: int = 0
    alone: bool = False

    @property
    def own(self) -> int:
        """Return what is used of the nominal quota."""
        return max(0, self.used - self.borrowed)

    @property
    def on_loan(self) -> int:
        """Return what is borrowed from somebody."""
        return 0 if self.alone else self.borrowed

    @property
    def idle(self) -> int:
        """Return the part of nominal that nobody uses."""
        return max(0, self.nominal - self.own - self.lent)

    @property
    def reach(self) -> int:
        """Return the amount that the bar must be able to show."""
        end = max(self.nominal, self.used)
        return max(end + self.pending, self.ceiling or 0, 1)

    def percent(self, amount: int) -> float:
        """Return an amount as percent of the scale, at most 100."""
        return round(min(100.0, 100.0 * amount / max(self.scale or self.reach, 1)), 2)

    @property
    def segments(self) -> list[Segment]:
        """Return the coloured parts in the order of the grammar; parts of nothing are left out."""
        end = max(self.nominal, self.own + self.borrowed)
        parts = [
            ("idle", 0, self.nominal),
            ("used", 0, self.own),
            ("borrowed", self.nominal if self.borrowed else 0, self.borrowed),
            ("lent", self.own, self.lent),
            ("pending", end, self.pending),
        ]
        return [
            Segment(kind, self.percent(start), round(width, 2))
            for kind, start, amount in parts
            if amount > 0 and (width := self.percent(start + amount) - self.percent(start)) > 0
        ]

    @property
    def nominal_x(self) -> float:
        """Return the place of the thick tick."""
        return self.percent(self.nominal)

    @property
    def ceiling_x(self) -> float | None:
        """Return the place of the thin tick; None where it would fall on nominal or is open."""
        if self.ceiling is None or self.ceiling <= self.nominal:
            return None
        return self.percent(self.ceiling)

    @property
    def ceiling_label_ends(self) -> bool:
        """Return whether the ceiling's label stands left of its tick."""
        return (self.ceiling_x or 0) > LATE

    @property
    def end_x(self) -> float:
        """Return where the last part ends; the room to the ceiling begins here."""
        return max([self.nominal_x, *(part.x + part.width for part in self.segments)])

    @property
    def nominal_text(self) -> str:
        """Return nominal the way people write it."""
        return format_quantity(self.resource, self.nominal)

    @property
    def used_text(self) -> str:
        """Return what is used the way people write it."""
        return format_quantity(self.resource, self.used)

    @property
    def ceiling_text(self) -> str:
        """Return the ceiling the way people write it; "" where there is none."""
        return "" if self.ceiling is None else format_quantity(self.resource, self.ceiling)

    @property
    def nominal_label(self) -> str:
        """Return the words under the thick tick."""
        return gettext("nominal %(amount)s") % {"amount": self.nominal_text}

    @property
    def ceiling_label(self) -> str:
        """Return the words under the thin tick."""
        return gettext("ceiling %(amount)s") % {"amount": self.ceiling_text}

    @property
    def words(self) -> list[tuple[str, str]]:
        """Return the parts that stand beside the bar, as (class, words); zero is left out."""
        parts = [
            ("borrowed", self.on_loan, gettext("%(amount)s borrowed")),
            ("borrowed", self.borrowed - self.on_loan, gettext("%(amount)s above its own")),
            ("lent", self.lent, gettext("%(amount)s lent")),
            ("", self.idle, gettext("%(amount)s idle")),
        ]
        return [
            (kind, text % {"amount": format_quantity(self.resource, amount)})
            for kind, amount, text in parts
            if amount
        ]

    @property
    def sentence(self) -> str:
        """Return all facts of the bar for readers that do not see it."""
        facts = [
            gettext("%(label)s: %(used)s of %(nominal)s used")
            % {"label": self.label, "used": self.used_text, "nominal": self.nominal_text},
            *(words for _kind, words in self.words),
        ]
        if self.pending:
            amount = format_quantity(self.resource, self.pending)
            facts.append(gettext("%(amount)s pending") % {"amount": amount})
        facts.append(
            gettext("no borrowing limit")
            if self.ceiling is None
            else gettext("ceiling %(amount)s") % {"amount": self.ceiling_text}
        )
        return ", ".join(facts)
