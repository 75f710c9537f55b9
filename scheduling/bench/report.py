"""What a bench found: counted work, times and goals, as a table or as JSON.

Source: ``decisions.md`` 9.
"""

import json
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

Figure = int | float | str


@dataclass(frozen=True, slots=True)
class Goal:
    """One figure beside the limit that it should not pass, or should reach with ``at_least``."""

    id: str
    value: float
    limit: float
    at_least: bool = False

    @property
    def ok(self) -> bool:
        """Return whether the goal is reached."""
        return self.value >= self.limit if self.at_least else self.value <= self.limit

    def as_shape(self) -> dict[str, Figure | bool]:
        """Return the goal in the shape of the contract."""
        return {"id": self.id, "value": self.value, "limit": self.limit, "ok": self.ok}

    def __str__(self) -> str:
        reached = "reached" if self.ok else "MISSED "
        bound = "at least" if self.at_least else "at most"
        return f"{reached} {self.id}: {self.value:.4g} ({bound} {self.limit:g})"


@dataclass(frozen=True, slots=True)
class Report:
    """The outcome of a bench. ``seconds`` holds the time of each repetition, in ``unit``."""

    name: str
    env: Mapping[str, Figure]
    work: Mapping[str, Figure]
    seconds: Sequence[float]
    goals: Sequence[Goal] = field(default_factory=tuple)
    unit: str = "CPU seconds"

    def as_json(self) -> str:
        """Return the report in the shape of the contract."""
        shape = {
            "name": self.name,
            "env": dict(self.env),
            "work": dict(self.work),
            "time": {"best": min(self.seconds), "median": statistics.median(self.seconds)},
            "goals": [goal.as_shape() for goal in self.goals],
        }
        return json.dumps(shape, indent=2)

    def as_table(self) -> str:
        """Return the report for people."""
        lines = [self.name, *_block("env", self.env), *_block("work", self.work)]
        lines += [f"  {self.unit}: best {min(self.seconds):.2f}, of {len(self.seconds)} runs"]
        return "\n".join([*lines, *(f"  {goal}" for goal in self.goals)])


def _block(title: str, figures: Mapping[str, Figure]) -> list[str]:
    width = max((len(name) for name in figures), default=0)
    shown = (f"    {name:<{width}}  {_text(figure)}" for name, figure in figures.items())
    return [f"  {title}", *shown]


def _text(figure: Figure) -> str:
    return f"{figure:.4g}" if isinstance(figure, float) else str(figure)
