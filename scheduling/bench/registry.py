"""Benches of rooms above: they register themselves when Django starts."""

from argparse import ArgumentParser
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from scheduling.bench.report import Report


@dataclass(frozen=True, slots=True)
class Bench:
    """One more bench: its name, what it is, its options, and what runs it."""

    name: str
    help: str
    add_arguments: Callable[[ArgumentParser], None]
    run: Callable[[dict[str, Any]], Report]


_benches: dict[str, Bench] = {}


def register(bench: Bench) -> None:
    """Let ``manage.py bench`` know one more bench."""
    _benches[bench.name] = bench


def registered() -> dict[str, Bench]:
    """Return the benches of rooms above by name."""
    return dict(_benches)
