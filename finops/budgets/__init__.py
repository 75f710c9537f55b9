"""Budgets: their windows, what was spent in them, what follows."""
