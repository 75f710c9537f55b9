"""The engine stands alone: the standard library and itself, no clock, no chance."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SOURCES = sorted((ROOT / "scheduling" / "engine").rglob("*.py"))
FORBIDDEN = {"time", "datetime", "random", "os", "secrets", "uuid"}


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_imports(path: Path) -> None:
    for found in ast.walk(ast.parse(path.read_text())):
        names = []
        if isinstance(found, ast.Import):
            names = [alias.name for alias in found.names]
        elif isinstance(found, ast.ImportFrom):
            names = [found.module or ""]
        for name in names:
            top = name.split(".")[0]
            assert top not in FORBIDDEN
            assert top in sys.stdlib_module_names or name.startswith("scheduling.engine")


def test_it_runs_without_site_packages() -> None:
    code = "import scheduling.engine.cycle, scheduling.engine.codec, scheduling.engine.view"
    code += ", scheduling.engine.scenario.loop, scheduling.engine.scenario.comparing"
    subprocess.run([sys.executable, "-S", "-E", "-c", code], cwd=ROOT, check=True)
