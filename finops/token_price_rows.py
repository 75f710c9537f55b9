"""Token prices as rows: the same for the file and the answer."""

from typing import Any

from finops.selectors.token_prices import TokenPriceRow

COLUMNS = (
    *("model", "namespace", "flavor", "tokens_per_second", "gpus", "full_load", "charged"),
    *("declared_input", "declared_output", "real", "with_idle", "drift", "level", "per_token"),
)


def cells_of(row: TokenPriceRow) -> dict[str, Any]:
    """Return the columns of a model; prices are of a million tokens."""
    declared = row.declared or (None, None)
    return {
        **{name: getattr(row, name) for name in COLUMNS if not name.startswith("declared")},
        "declared_input": declared[0],
        "declared_output": declared[1],
    }
