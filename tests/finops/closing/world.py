"""The articles' month on its way to being closed."""

from datetime import timedelta

from finops import billing
from finops.closing.steps import Asked, acknowledge, take_step
from finops.models import BillingPeriod
from queues.models import Team
from tests.finops import rows

JUNE, JULY = "2026-06", "2026-07"
AFTER = rows.JULY + timedelta(days=1)
STEPS = ("put_forward", "reviewed", "closed")


def june(**modes):
    """Bill the articles' month; ``modes`` are chargeback teams with their cost centres."""
    teams = rows.june()
    for name, cost_center in modes.items():
        Team.objects.filter(name=name).update(
            accounting_mode="chargeback", cost_center=cost_center
        )
    billing.rebuild_draft(JUNE, now=AFTER)
    return teams


def charged_june():
    """Bill it with Datos and IA charged, Plataforma for information."""
    return june(datos="1001", ia="2001")


def step(name, actor, reason="", *, month=JUNE, seen="", now=AFTER):
    return take_step(month, Asked(name, actor, reason, seen), now)


def close(fin, ada, *, month=JUNE, now=AFTER):
    """Put forward, review (fin), acknowledge what can be and close (ada)."""
    step("put_forward", fin, month=month, now=now)
    step("reviewed", fin, month=month, now=now)
    for finding in BillingPeriod.objects.get(name=month).findings.filter(severity="critical"):
        acknowledge(month, finding.code, finding.subject, fin, "known")
    return step("closed", ada, month=month, now=now)


def codes(refusal):
    return [problem.code for problem in refusal.value.problems]
