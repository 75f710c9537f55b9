"""Serve plotly's own script from the installed package: no copy, no foreign host."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import plotly
from django.contrib.staticfiles.finders import BaseFinder
from django.core.files.storage import FileSystemStorage

PATH = "plotly/plotly.min.js"


class PlotlyFinder(BaseFinder):
    """Find ``plotly/plotly.min.js`` and nothing else."""

    def __init__(self, *_args: Any, **_kwargs: Any) -> None:
        self.folder = Path(plotly.__file__).parent / "package_data"
        self.storage = FileSystemStorage(location=str(self.folder))
        self.storage.prefix = "plotly"  # type: ignore[attr-defined]

    def find(self, path: str, find_all: bool = False, **_kwargs: Any) -> Any:
        """Return the script's place on disk, in the shape Django asks for."""
        if path != PATH:
            return []
        found = str(self.folder / "plotly.min.js")
        return [found] if find_all else found

    def list(self, ignore_patterns: Iterable[str] | None) -> Iterator[Any]:
        """Yield the one file for ``collectstatic``."""
        del ignore_patterns
        yield "plotly.min.js", self.storage
