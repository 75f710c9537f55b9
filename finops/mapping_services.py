"""The only writer of mappings."""

from collections.abc import Iterable
from datetime import UTC, datetime

from django.db import transaction
from django.utils.translation import gettext as _

from finops import mapping_rules
from finops.dated import SetOne, all_or_none, is_taken_back, take_back
from finops.models import Mapping
from finops.outdating import closed_until, hold_guard, outdate_drafts
from finops.sources.rows import natural_key
from finops.specs import MappingSpec
from gpuplatform.common import audit, clock
from gpuplatform.common.money import digits
from gpuplatform.common.problems import Problem, Rejected
from queues.models import Team, User

GUARD = "mappings"
ALWAYS = datetime(1970, 1, 1, tzinfo=UTC)
SAID = ("team", "mode", "namespace", "tokens_per_second", "gpus")


def set_mapping(spec: MappingSpec, actor: User | None, reason: str = "") -> Mapping:
    """Bring a mapping into force; the open one before it ends where the new one starts.

    One equal to what is in force changes nothing. Nothing else is ever edited.

    Raises:
        Rejected: a rule of ``finops.mapping_rules`` is broken; nothing was changed.
    """
    return set_mappings([spec], actor, reason)[0]


def set_mappings(
    specs: Iterable[MappingSpec], actor: User | None, reason: str = ""
) -> list[Mapping]:
    """Bring several mappings into force in one transaction: all or none.

    Raises:
        Rejected: with the problems of every one; paths start with ``mappings[1]`` where there
            are several.
    """
    words = _("Another mapping was made at the same time; look again.")
    clash = Problem("valid_from", "MAPPING_OVERLAPS", words)

    def ready() -> SetOne[MappingSpec, Mapping]:
        teams = {team.name: team for team in Team.objects.all()}
        until = closed_until()
        return lambda spec: _set_one(spec, teams, until, actor, reason)

    return all_or_none(specs, ready, guard=GUARD, name="mappings", clash=clash)


def end_mapping(
    pk: int, actor: User | None, reason: str, ends_at: datetime | None = None
) -> Mapping:
    """Let a mapping end at ``ends_at``, by default now, without another that follows it.

    One that has not begun is taken back by default: the one before it goes on.

    Raises:
        Rejected: it ends sooner already, or would end before it began or in a closed month.
    """
    with transaction.atomic():
        hold_guard(GUARD)
        row = Mapping.objects.select_related("team").get(pk=pk)
        now = clock.now()
        before, outdated_until = describe_mapping(row), row.valid_to
        if is_taken_back(row, ends_at, now):
            take_back(row, Mapping.objects.filter(identity=row.identity))
            action = "cost_mapping.taken_back"
        else:
            problems = mapping_rules.check_mapping_end(row, ends_at or now, closed_until())
            if problems:
                raise Rejected(problems)
            row.valid_to, action = ends_at or now, "cost_mapping.ended"
            row.save(update_fields=["valid_to"])
        _record(action, row, before, actor, reason)
        outdate_drafts(row.valid_to or now, outdated_until)
    return row


def describe_mapping(row: Mapping) -> dict[str, str | None]:
    """Return a mapping as JSON, as it is audited and answered."""
    speed, gpus = row.tokens_per_second, row.gpus
    return {
        "kind": row.kind,
        "cluster": row.cluster,
        "key": row.key,
        "value": row.value,
        "team": row.team.name if row.team else "",
        "mode": row.mode,
        "namespace": row.namespace,
        "tokens_per_second": None if speed is None else digits(speed.normalize()),
        "gpus": None if gpus is None else digits(gpus.normalize()),
        "valid_from": row.valid_from.isoformat(),
        "valid_to": row.valid_to.isoformat() if row.valid_to else None,
        "note": row.note,
    }


def _set_one(
    spec: MappingSpec,
    teams: dict[str, Team],
    until: datetime | None,
    actor: User | None,
    reason: str,
) -> tuple[Mapping | None, list[Problem]]:
    identity = natural_key(*spec.identity)
    starts_at = spec.valid_from or until or ALWAYS
    standing = tuple(Mapping.objects.filter(identity=identity).select_related("team"))
    world = mapping_rules.MappingWorld(standing, frozenset(teams), until)
    problems = mapping_rules.check_mapping(spec, starts_at, world)
    same = _same_in_force(spec, starts_at, standing)
    if same is not None and {p.code for p in problems} <= {"MAPPING_OVERLAPS", "PERIOD_CLOSED"}:
        return same, []
    if problems:
        return None, problems
    followed = mapping_rules.followed_by(starts_at, standing)
    if followed is not None:
        Mapping.objects.filter(pk=followed.pk, valid_to=None).update(valid_to=starts_at)
    row = Mapping.objects.create(
        identity=identity,
        team=teams.get(spec.team),
        valid_from=starts_at,
        created_by=actor,
        **{
            name: getattr(spec, name)
            for name in (
                *("kind", "cluster", "key", "value", "mode", "namespace"),
                *("tokens_per_second", "gpus", "valid_to", "note"),
            )
        },
    )
    before = describe_mapping(followed) if followed else None
    _record("cost_mapping.set", row, before, actor, reason or spec.note)
    outdate_drafts(starts_at, spec.valid_to)
    return row, []


def _same_in_force(
    spec: MappingSpec, starts_at: datetime, standing: Iterable[Mapping]
) -> Mapping | None:
    """Return the mapping that says so already, so that an import may be repeated."""
    for row in standing:
        in_force = row.valid_from <= starts_at and (
            row.valid_to is None or row.valid_to > starts_at
        )
        says = (row.team.name if row.team else "", row.cluster, row.valid_to)
        rest = (row.mode, row.namespace, row.tokens_per_second, row.gpus, row.value)
        asked = (spec.mode, spec.namespace, spec.tokens_per_second, spec.gpus, spec.value)
        if in_force and says == (spec.team, spec.cluster, spec.valid_to) and rest == asked:
            return row
    return None


def _record(
    action: str,
    row: Mapping,
    before: dict[str, str | None] | None,
    actor: User | None,
    reason: str,
) -> None:
    subject = ("CostMapping", f"{row.kind} {row.value}"[:200])
    after = describe_mapping(row)
    team = row.team.name if row.team else ""
    audit.record(actor, action, subject, before=before, after=after, reason=reason, team=team)
