"""What a closed month rests on, kept beside its lines: the rules whole, the rows by their hash."""

from dataclasses import asdict, fields
from datetime import datetime
from fractions import Fraction
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from finops.allocation.facts import Facts
from finops.loader import MonthFacts
from finops.models import BillingPeriod, Coverage, Freeze
from finops.selectors.digests import Digest, hash_of

# Kept whole, because a person asks for them; the rest are rows of usage, kept by their hash.
RULES = frozenset(
    {
        *("period", "policy", "teams", "mappings", "namespaces", "deployments"),
        *("prices", "token_prices", "shared", "adjustments"),
    }
)
PACKAGE = "gpuplatform"


def freeze(period: BillingPeriod, facts: MonthFacts, digest: Digest, now: datetime) -> Freeze:
    """Write down what the bills of ``period`` were made from."""
    frozen = frozen_facts(period, facts.under(period.idle_policy))  # type: ignore[arg-type]
    return Freeze.objects.create(
        period=period,
        facts=frozen,
        facts_sha256=hash_of(frozen),
        columns=list(digest.columns),
        lines_sha256=digest.sha256,
        code_version=code_version(),
        frozen_at=now,
    )


def frozen_facts(period: BillingPeriod, facts: Facts) -> dict[str, Any]:
    """Return the rules of the bill, and of each list of rows its length and hash."""
    rules: dict[str, Any] = {}
    rows: dict[str, Any] = {}
    for part in fields(facts):
        value = _plain(getattr(facts, part.name))
        if part.name in RULES:
            rules[part.name] = value
        else:
            rows[part.name] = {"rows": len(value), "sha256": hash_of(value)}
    return {"rules": rules, "rows": rows, "sources": _readings(period)}


def code_version() -> str:
    """Return the version of the product that runs."""
    try:
        return version(PACKAGE)
    except PackageNotFoundError:  # run from a folder that was never installed
        return "unknown"


def _readings(period: BillingPeriod) -> list[dict[str, str]]:
    """Return which reading of each source stood for each day."""
    days = Coverage.objects.filter(
        starts_at__lt=period.ends_at, ends_at__gt=period.starts_at
    ).order_by("source__name", "day")
    found = days.values_list("source__name", "day", "stored", "applied__sha256")
    return [
        {"source": source, "day": day.isoformat(), "stored": stored, "sha256": sha256 or ""}
        for source, day, stored, sha256 in found
    ]


def _plain(value: Any) -> Any:
    """Return facts in the types of JSON; fractions exactly, rows in one order."""
    if hasattr(value, "__dataclass_fields__"):
        return _plain(asdict(value))
    if isinstance(value, dict):
        return {str(key): _plain(one) for key, one in value.items()}
    if isinstance(value, tuple | list):
        return sorted((_plain(one) for one in value), key=repr)
    return str(value) if isinstance(value, Fraction) else value
