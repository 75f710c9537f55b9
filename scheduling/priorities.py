"""Who may give work which priority: one rule for submission and change, whatever the door.

Queues evict by priority, so a number is a claim on what others hold. Named classes are made by
admins, and whoever may submit may name any of them; a bare number reaches up to a limit.
Source: ``docs/adr/0031-priorities.md``.
"""

from collections.abc import Iterator

from django.conf import settings

from gpuplatform.common.diagnostics import Diagnostic
from queues.access import Actor


def check_number(priority: int | None, actor: Actor, subject: str = "") -> Iterator[Diagnostic]:
    """Yield ``PRIORITY_ABOVE_LIMIT`` for a number that only a platform admin may give.

    ``priority`` None: no number is asked for, a class or the default says it.
    """
    limit = settings.OWN_PRIORITY_LIMIT
    if priority is not None and priority > limit and not actor.may_set_any_priority:
        numbers = {"priority": priority, "limit": limit}
        yield Diagnostic("PRIORITY_ABOVE_LIMIT", subject, "priority", numbers)
