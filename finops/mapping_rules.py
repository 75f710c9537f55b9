"""What a mapping may be. Called by the service, so that no door can skip it.

Paths are fields of the mapping; database constraints repeat what a single row can show.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal

from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from finops.models import Mapping as Row
from finops.models.mappings import KEYED, OWNING, BillingMode, MappingKind
from finops.specs import MappingSpec
from gpuplatform.common.locales import by_locale
from gpuplatform.common.problems import Problem

LENGTHS = {"value": 255, "cluster": 253, "key": 317, "namespace": 253, "note": 500}
MOST = {"tokens_per_second": Decimal(10) ** 9, "gpus": Decimal(10) ** 5}
PLACES = 4
# Fields that say something, and the kinds that may have them.
SAID_BY: Mapping[str, tuple[MappingKind, ...]] = {
    "team": OWNING,
    "key": KEYED,
    "mode": (MappingKind.MODE,),
    "namespace": (MappingKind.DEPLOYMENT,),
    "tokens_per_second": (MappingKind.DEPLOYMENT,),
    "gpus": (MappingKind.DEPLOYMENT,),
    "cluster": tuple(
        kind
        for kind in MappingKind
        if kind not in {MappingKind.LITELLM_TEAM, MappingKind.COST_CENTER}
    ),
}
NEEDED = ("team", "key", "mode", "namespace")
WORDS: Mapping[str, str | Promise] = {
    "team": gettext_lazy("Name the team."),
    "key": gettext_lazy("Name the key of the label or annotation."),
    "mode": gettext_lazy("Choose a billing mode."),
    "namespace": gettext_lazy("Name the namespace that serves the model."),
}


@dataclass(frozen=True, slots=True)
class MappingWorld:
    """What a new mapping must agree with: its sisters, the teams, what is closed."""

    standing: tuple[Row, ...]  # of the same identity
    teams: frozenset[str]
    closed_until: datetime | None


def check_mapping(spec: MappingSpec, starts_at: datetime, world: MappingWorld) -> list[Problem]:
    """Return every reason not to take ``spec`` from ``starts_at`` on."""
    if spec.kind not in MappingKind.values:
        return [_bad_choice("kind", spec.kind, MappingKind.values)]
    problems = [
        *_check_texts(spec),
        *_check_said(spec),
        *_check_numbers(spec),
        *_check_team(spec, world),
    ]
    if spec.mode and spec.kind == MappingKind.MODE and spec.mode not in BillingMode.values:
        problems.append(_bad_choice("mode", spec.mode, BillingMode.values))
    if spec.valid_to is not None and spec.valid_to <= starts_at:
        problems.append(Problem("valid_to", "WINDOW_BACKWARDS", _("It must end after it began.")))
    if not problems:
        problems += [*_check_overlap(spec, starts_at, world), *_check_closed(starts_at, world)]
    return problems


def check_mapping_end(row: Row, ends_at: datetime, closed_until: datetime | None) -> list[Problem]:
    """Return every reason not to let ``row`` end at ``ends_at``; it may only end sooner."""
    if ends_at <= row.valid_from:
        words = _("It must end after it began, {start}.")
        return [Problem("valid_to", "WINDOW_BACKWARDS", words.format(start=_day(row.valid_from)))]
    if row.valid_to is not None and ends_at >= row.valid_to:
        words = _("It ends already, at {end}.").format(end=_day(row.valid_to))
        return [Problem("valid_to", "MAPPING_ENDED", words)]
    if closed_until is not None and ends_at < closed_until:
        return [_closed("valid_to", closed_until)]
    return []


def followed_by(starts_at: datetime, standing: Iterable[Row]) -> Row | None:
    """Return the open mapping that a new one from ``starts_at`` on ends, if there is one."""
    for row in standing:
        if row.valid_to is None and row.valid_from < starts_at:
            return row
    return None


def _bad_choice(path: str, found: str, allowed: Iterable[str]) -> Problem:
    words = _("{found} is none of {allowed}.")
    return Problem(path, "BAD_VALUE", words.format(found=found[:64], allowed=", ".join(allowed)))


def _check_texts(spec: MappingSpec) -> Iterator[Problem]:
    if not spec.value:
        yield Problem("value", "REQUIRED", _("Name what is assigned."))
    if spec.kind == MappingKind.NAMESPACE and spec.value.startswith("__"):
        words = _("{name} is no namespace: OpenCost calls rows so that belong to none.")
        yield Problem("value", "BAD_VALUE", words.format(name=spec.value[:64]))
    for path, limit in LENGTHS.items():
        text = getattr(spec, path)
        if len(text) > limit:
            words = _("At most {limit} characters.").format(limit=limit)
            yield Problem(path, "TOO_LONG", words, {"limit": limit})
        if "\x00" in text:
            yield Problem(path, "BAD_TEXT", _("A text cannot hold a NUL."))


def _check_said(spec: MappingSpec) -> Iterator[Problem]:
    """Ask for what the kind needs, and refuse what it has no use for."""
    for path, kinds in SAID_BY.items():
        found = getattr(spec, path)
        if spec.kind not in kinds and found not in {"", None}:
            words = _("This kind of mapping has no {field}.").format(field=path)
            yield Problem(path, "MUST_BE_EMPTY", words)
        elif spec.kind in kinds and path in NEEDED and not found:
            yield Problem(path, "REQUIRED", str(WORDS[path]))


def _check_numbers(spec: MappingSpec) -> Iterator[Problem]:
    for path, most in MOST.items():
        number = getattr(spec, path)
        if number is None:
            continue
        if not number.is_finite():
            yield Problem(path, "BAD_TYPE", _("It is a finite number."))
        elif not 0 < number <= most:
            words = _("It must be above 0 and at most {most}.").format(
                most=by_locale(f"{most:,.0f}")
            )
            yield Problem(path, "OUT_OF_RANGE", words)
        elif number != number.quantize(Decimal(1).scaleb(-PLACES)):
            yield Problem(path, "TOO_PRECISE", _("It has at most 4 decimals."))


def _check_team(spec: MappingSpec, world: MappingWorld) -> Iterator[Problem]:
    if spec.team and spec.kind in OWNING and spec.team not in world.teams:
        words = _("There is no team {team}.").format(team=spec.team[:64])
        yield Problem("team", "TEAM_NOT_FOUND", words, {"team": spec.team[:64]})


def _check_overlap(
    spec: MappingSpec, starts_at: datetime, world: MappingWorld
) -> Iterator[Problem]:
    """One in force is not edited: a new one may follow it or fill a gap, nothing else."""
    followed = followed_by(starts_at, world.standing)
    for row in world.standing:
        begins_before_our_end = spec.valid_to is None or row.valid_from < spec.valid_to
        ends_after_our_start = row.valid_to is None or row.valid_to > starts_at
        if row is followed or not (begins_before_our_end and ends_after_our_start):
            continue
        words = _(
            "It is assigned already, to {whom} from {start} until {end}; a mapping is never"
            " edited: let the new one start later, or take back that one if it has not begun."
        ).format(
            whom=row.team or row.mode or row.namespace,
            start=_day(row.valid_from),
            end=_day(row.valid_to) if row.valid_to else _("further notice"),
        )
        path = "valid_from" if row.valid_from <= starts_at else "valid_to"
        yield Problem(path, "MAPPING_OVERLAPS", words)


def _check_closed(starts_at: datetime, world: MappingWorld) -> Iterator[Problem]:
    if world.closed_until is not None and starts_at < world.closed_until:
        yield _closed("valid_from", world.closed_until)


def _closed(path: str, until: datetime) -> Problem:
    words = _("The last closed month ended {end}; nothing can change before that.")
    return Problem(path, "PERIOD_CLOSED", words.format(end=f"{until:%Y-%m-%d}"))


def _day(at: datetime) -> str:
    return f"{at:%Y-%m-%d %H:%M}"
