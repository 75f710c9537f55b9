"""Alerts as rows: raised when something begins to hold, cleared when it ends.

Looks at what is, not at what was told: doubled or lost calls change nothing but the delay.
"""

import logging
from datetime import datetime

from django.db import transaction

from gpuplatform.common import clock
from scheduling.models import Alert
from scheduling.selectors.alerts import current_findings, load_platform
from scheduling.selectors.promises import identity

logger = logging.getLogger(__name__)


@transaction.atomic
def watch(now: datetime | None = None) -> int:
    """Bring the rows of alerts up to what holds now; return how many were raised or cleared.

    Where nothing has changed nothing is written.
    """
    now = now or clock.now()
    found = {identity(one): dict(one.numbers) for one in current_findings(load_platform(now))}
    standing = {(a.code, a.subject, a.key): a for a in Alert.objects.filter(cleared_at=None)}
    for key in standing.keys() - found.keys():
        alert = standing[key]
        alert.cleared_at = max(now, alert.raised_at)
        alert.save(update_fields=["cleared_at"])
        logger.info("alert cleared: %s", alert)
    raised = [
        Alert(code=key[0], subject=key[1], key=key[2], facts=facts, raised_at=now)
        for key, facts in sorted(found.items())
        if key not in standing
    ]
    Alert.objects.bulk_create(raised, ignore_conflicts=True)
    for alert in raised:
        logger.warning("alert raised: %s", alert)
    for key in standing.keys() & found.keys():
        if standing[key].facts != found[key]:
            standing[key].facts = found[key]
            standing[key].save(update_fields=["facts"])
    return len(raised) + len(standing.keys() - found.keys())
