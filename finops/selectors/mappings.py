"""Readers of mappings: the list, and the money of things that nobody has assigned yet."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal

from django.db.models import Q, QuerySet
from django.utils.translation import gettext as _

from finops import words
from finops.allocation.places import NOBODYS
from finops.models import BillingPeriod, BillLine, Finding, Mapping
from finops.models.mappings import MappingKind
from queues.access import Actor

NOTHING = Decimal("0.00")
BUCKETS = frozenset(account.name for account in NOBODYS)
# Buckets by the field of a line that says what would have to be assigned, and as what.
ASSIGNED_BY = {
    "unallocated_namespace": ("namespace", MappingKind.NAMESPACE),
    "unallocated_queue": ("cluster_queue", MappingKind.QUEUE),
}
# Findings by the kind of mapping that is missing; the subject holds the thing's name.
LACKING = {
    "unknown_team": ("team_id", MappingKind.LITELLM_TEAM),
    "unmapped_model": ("model_group", MappingKind.DEPLOYMENT),
}


@dataclass(frozen=True, slots=True)
class MappingRow:
    """A mapping and how it stands at an instant: in_force, past or coming."""

    mapping: Mapping
    state: str

    @property
    def whose(self) -> str:
        """What it says, in one word."""
        row = self.mapping
        if row.team:
            return row.team.name
        return str(row.get_mode_display()) if row.mode else row.namespace

    @property
    def is_always(self) -> bool:
        """Return whether it has been in force since before anything was metered."""
        return self.mapping.valid_from.year <= 1970  # noqa: PLR2004


@dataclass(frozen=True, slots=True)
class Unmatched:
    """Something that costs and that nobody is named for; ``kind`` "" cannot be assigned."""

    bucket: str
    kind: str
    value: str
    amount: Decimal
    cluster: str = ""
    gpu_hours: Decimal | None = None
    tokens: int | None = None

    @property
    def where(self) -> str:
        """Where its cost is now, in words."""
        known = words.BUCKETS.get(self.bucket)
        return str(known or _("model without a deployment"))


def mapping_rows(
    actor: Actor, now: datetime, *, kind: str = "", text: str = ""
) -> list[MappingRow]:
    """Return mappings by kind and thing, newest first; a lead's are those of the own teams."""
    rows = visible(actor).order_by("kind", "key", "value", "cluster", "-valid_from")
    if kind:
        rows = rows.filter(kind=kind)
    if text:
        rows = rows.filter(
            Q(value__icontains=text)
            | Q(key__icontains=text)
            | Q(team__name__icontains=text)
            | Q(namespace__icontains=text)
        )
    return [MappingRow(row, _state(row, now)) for row in rows]


def visible(actor: Actor) -> QuerySet[Mapping]:
    """Return the mappings that the actor may see."""
    rows = Mapping.objects.select_related("team")
    return rows if actor.may_see_bills else rows.filter(team_id__in=actor.bill_team_ids)


def mapping_in_force(pk: int, now: datetime) -> Mapping | None:
    """Return the mapping if it can be ended, else None."""
    row = Mapping.objects.select_related("team").filter(pk=pk).first()
    return row if row is not None and _state(row, now) != "past" else None


def _state(row: Mapping, now: datetime) -> str:
    if row.valid_from > now:
        return "coming"
    return "in_force" if row.valid_to is None or row.valid_to > now else "past"


def unmatched(period: BillingPeriod | None) -> list[Unmatched]:
    """Return what the bills of a period name nobody for, dearest first."""
    if period is None:
        return []
    lines = BillLine.objects.filter(bill__period=period, bill__team=None, bucket__in=BUCKETS)
    findings = Finding.objects.filter(period=period, code__in=LACKING)
    found = [*_of_lines(lines), *map(_of_finding, findings)]
    return sorted(found, key=lambda one: (-abs(one.amount), one.kind, one.value))


def latest_period() -> BillingPeriod | None:
    """Return the newest month that has bills."""
    return BillingPeriod.objects.filter(bills__isnull=False).order_by("-name").first()


def _of_lines(lines: Iterable[BillLine]) -> Iterable[Unmatched]:
    amounts: dict[tuple[str, str, str], Decimal] = {}
    held: dict[tuple[str, str, str], Decimal] = {}
    for line in lines:
        field, _ignored = ASSIGNED_BY.get(line.bucket, ("", None))
        what = (line.bucket, line.cluster, getattr(line, field) if field else "")
        amounts[what] = amounts.get(what, NOTHING) + line.amount
        if line.unit == "gpu_hours" and line.origin == "direct":
            held[what] = held.get(what, Decimal(0)) + (line.quantity or 0)
    for (bucket, cluster, value), amount in amounts.items():
        kind = ASSIGNED_BY[bucket][1].value if value else ""
        hours = held.get((bucket, cluster, value))
        yield Unmatched(bucket, kind, value, amount, cluster, gpu_hours=hours)


def _of_finding(found: Finding) -> Unmatched:
    name, kind = LACKING[found.code]
    value = found.subject.removeprefix(f"{name}=")
    numbers = found.numbers
    return Unmatched(
        found.code,
        kind.value,
        value,
        Decimal(str(numbers.get("amount", 0))),
        tokens=int(numbers.get("tokens", 0)),
    )
