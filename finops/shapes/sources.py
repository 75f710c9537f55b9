"""The shapes of sources, of their days and of attempts to load one."""

from finops.models.sources import Outcome, SourceKind, Stored
from gpuplatform.common.rest_shapes import (
    COUNT,
    CURRENCY,
    DAY,
    DECIMAL,
    FACT,
    INSTANT,
    SHA256,
    TEXT,
    TRUTH,
    choice,
    or_none,
    record,
    rows_of,
    said,
    values_of,
)

MEASURES = values_of(DECIMAL, "Sums by which readings are compared, by name.")
FETCH = record(
    "Fetch",
    {
        "day": DAY,
        "at": INSTANT,
        "outcome": choice(Outcome.values, "What became of the attempt."),
        "code": said(TEXT, "Of docs/reasons.md; empty: it went well."),
        "sentence": TEXT,
        "notes": rows_of(TEXT),
        "rows": COUNT,
        "measures": MEASURES,
        "sha256": said(SHA256, "Of what was read; empty: nothing was."),
    },
)
SOURCE = record(
    "SourceState",
    {
        "name": TEXT,
        "kind": choice(SourceKind.values),
        "url": TEXT,
        "cluster": TEXT,
        "currency": CURRENCY,
        "time_zone": TEXT,
        "options": values_of(
            {"anyOf": [FACT, rows_of(FACT), values_of(FACT)]}, "By kind of source."
        ),
        "first_day": DAY,
        "enabled": TRUTH,
        "version": COUNT,
        "last_day": or_none(DAY),
        "days": record("", dict.fromkeys(("loaded", "partial", "missing", "waiting"), COUNT)),
        "last_error": or_none(FETCH),
        "tested_at": or_none(INSTANT),
        "test": record("", {"code": TEXT, "sentence": TEXT}),
    },
)
DAYS = rows_of(
    record(
        "SourceDay",
        {
            "day": DAY,
            "from": INSTANT,
            "to": INSTANT,
            "state": choice((*Stored.values, "quarantined")),
            "stored": choice(Stored.values),
            "ratio": or_none(said(DECIMAL, "Part of the capacity that it saw: 1 is all.")),
            "applied": or_none(FETCH),
            "quarantined": or_none(FETCH),
            "last": or_none(FETCH),
        },
    )
)
TEST = record(
    "SourceTest",
    {
        "ok": TRUTH,
        "code": said(TEXT, "Of docs/reasons.md; empty: it went well."),
        "sentence": TEXT,
        "rows": COUNT,
        "measures": MEASURES,
        "notes": rows_of(TEXT),
        "answers": values_of(values_of(TEXT), "What Prometheus says to known questions."),
    },
)
