"""COST: prices, metering, bills."""
