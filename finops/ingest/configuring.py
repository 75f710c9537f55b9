"""The only writer of sources themselves."""

from typing import Any

from django.conf import settings
from django.db import IntegrityError, transaction
from django.utils.translation import gettext as _

from finops.models import Source
from finops.models.sources import PLANES, SourceKind
from finops.source_rules import SourceWorld, check_source
from finops.specs import SourceSpec
from gpuplatform.common import audit, clock
from gpuplatform.common.periods import month_at
from gpuplatform.common.problems import Problem, Rejected, Stale
from queues.models import User


def save_source(
    spec: SourceSpec, actor: User | None, *, reason: str = "", if_version: int | None = None
) -> Source:
    """Let the source called ``spec.name`` be as ``spec`` says. Equal to what stands: no change.

    Raises:
        Rejected: a rule is broken; nothing was changed.
        Stale: it has another version than ``if_version``.
    """
    try:
        with transaction.atomic():
            return _save(spec, actor, reason, if_version)
    except IntegrityError as error:  # a constraint saw what the rules did not
        message = _("Another source was saved at the same time; look again.")
        raise Rejected([Problem("cluster", "COUNTED_TWICE", message)]) from error


def _save(spec: SourceSpec, actor: User | None, reason: str, if_version: int | None) -> Source:
    standing = Source.objects.select_for_update().filter(name=spec.name).first()
    if if_version is not None and if_version != (standing.version if standing else 0):
        message = _("Somebody changed it since you saw it.")
        raise Stale([Problem("version", "stale", message)])
    others = tuple(Source.objects.filter(enabled=True).exclude(name=spec.name))
    world = SourceWorld(frozenset(settings.SOURCE_HOSTS), others, standing)
    problems = check_source(spec, world)
    if problems:
        raise Rejected(problems)
    source = standing or _made(spec)
    before = describe_source(source) if standing else None
    for name, value in _columns(spec, source).items():
        setattr(source, name, value)
    after = describe_source(source)
    if after != before:
        source.version += 1 if standing else 0
        source.updated_at = clock.now()
        source.save()
        action = "source.updated" if standing else "source.created"
        audit.record(
            actor, action, ("Source", source.name), before=before, after=after, reason=reason
        )
    return source


def _made(spec: SourceSpec) -> Source:
    now = clock.now()
    zone = settings.BILLING_TIME_ZONE
    return Source(
        name=spec.name,
        kind=spec.kind,
        plane=PLANES[SourceKind(spec.kind)],
        time_zone=zone,
        first_day=spec.first_day or month_at(now, zone).first_day,
    )


def _columns(spec: SourceSpec, source: Source) -> dict[str, Any]:
    options = {
        name: list(value) if isinstance(value, tuple) else value
        for name, value in spec.options.items()
    }
    return {
        "url": spec.url,
        "cluster": spec.cluster,
        "currency": spec.currency,
        "options": options,
        "first_day": spec.first_day or source.first_day,
        "enabled": spec.enabled,
    }


def describe_source(source: Source) -> dict[str, Any]:
    """Return a source as JSON, as it is audited and answered; it has no secret to hide."""
    return {
        "name": source.name,
        "kind": source.kind,
        "url": source.url,
        "cluster": source.cluster,
        "currency": source.currency,
        "time_zone": source.time_zone,
        "options": source.options,
        "first_day": source.first_day.isoformat(),
        "enabled": source.enabled,
    }
