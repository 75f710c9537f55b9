"""``gpuctl`` is a program after ``make demo`` and ``make develop``, from wherever it is called."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.skipif(shutil.which("make") is None, reason="needs make")
def test_make_puts_a_program_that_runs_from_any_folder(tmp_path: Path) -> None:
    home = tmp_path / "a folder" / "venv"
    (home / "bin").mkdir(parents=True)
    (home / ".made").touch()
    python = home / "bin" / "python"
    python.write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
    python.chmod(0o755)
    link = tmp_path / "venv"  # make itself knows no spaces
    link.symlink_to(home)
    program = link / "bin" / "gpuctl"

    subprocess.run(["make", "-s", f"VENV={link}", str(program)], cwd=ROOT, check=True)
    told = subprocess.run(
        [str(program), "version"], cwd=tmp_path, capture_output=True, text=True, check=True
    )

    assert told.stdout.startswith("gpuctl ")


@pytest.mark.parametrize("target", ["demo", "install", "develop"])
def test_every_way_to_install_makes_it(target: str) -> None:
    needs = re.search(rf"^{target}:(.*)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert needs
    assert "$(VENV)/bin/gpuctl" in needs[1].split()
