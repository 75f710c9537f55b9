"""Scenarios: a platform, its work and what happens later, run cycle by cycle under a profile."""
