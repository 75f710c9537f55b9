"""Benches: plain functions that count and time the engine, without framework or database."""
