"""What this room raises alerts about: promises, drift, nodes and agents.

Looks at what is, not at what was told: doubled or lost calls change nothing but the delay.
"""

from datetime import datetime

from gpuplatform.common import clock
from scheduling.alerting import Audience, Concern, Kind, follow
from scheduling.engine.terms import DiagnosticCode
from scheduling.loader import load_platform
from scheduling.selectors.alerts import OWNER, SILENT, UNDRIVEN, current_findings
from scheduling.selectors.promises import identity

ADMINS = (Audience.ADMINS,)
# What names queues of others, or what only those who look after the machines need to know, is
# for readers of everything.
KINDS = (
    Kind(DiagnosticCode.GUARANTEES_EXCEED_CAPACITY.value, ADMINS, open_to_all=True),
    Kind(DiagnosticCode.STRANDED_CAPACITY.value, ADMINS, open_to_all=True),
    Kind(DiagnosticCode.LENDER_CANNOT_RECLAIM.value, ADMINS),
    Kind("DRIFT", ADMINS, open_to_all=True),
    Kind("UNMANAGED_USE", ADMINS, open_to_all=True),
    Kind("NODES_NOT_READY", ADMINS, open_to_all=True),
    Kind("NODE_OVERCOMMITTED", ADMINS, open_to_all=True),
    Kind(SILENT, ADMINS),
    Kind(UNDRIVEN, ADMINS),
)


def watch(now: datetime | None = None) -> int:
    """Bring this room's alerts up to what holds now; return how many were raised or cleared."""
    now = now or clock.now()
    found = current_findings(load_platform(now))
    return follow(OWNER, [Concern(one, identity(one)[2]) for one in found], now)
