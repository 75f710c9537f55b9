"""The lock files: exact, with hashes, without an address, and of one mind."""

import re
import tomllib

import pytest

from gpuplatform import __version__
from tests.house.test_rooms import ROOT

PIN = re.compile(r"^([a-z0-9][a-z0-9._-]*)(?:\[[^\]]*\])?==(\S+)", re.MULTILINE)
LOCKS = ("requirements.lock", "requirements-dev.lock")


def pins(lock: str) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for name, version in PIN.findall((ROOT / lock).read_text()):
        found.setdefault(name, set()).add(version)
    return found


@pytest.mark.parametrize("lock", LOCKS)
def test_everything_is_pinned_by_hash_and_nothing_by_address(lock: str) -> None:
    text = (ROOT / lock).read_text()
    entries = [line for line in text.splitlines() if line and not line.startswith((" ", "#"))]
    assert entries
    assert [line for line in entries if not PIN.match(line)] == []
    assert text.count("--hash=sha256:") >= len(entries)
    assert "://" not in text


def test_the_runtime_lock_is_a_part_of_the_development_lock() -> None:
    development = pins("requirements-dev.lock")
    assert {n: v for n, v in pins("requirements.lock").items() if not v <= development[n]} == {}


def test_every_declared_dependency_is_locked() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    for lock, declared in (
        ("requirements.lock", project["dependencies"]),
        ("requirements-dev.lock", project["optional-dependencies"]["dev"]),
    ):
        names = {re.split(r"[\[<>=~!; ]", line)[0].lower() for line in declared}
        assert names - set(pins(lock)) == set()


def test_the_version_is_the_same_wherever_it_stands() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["version"] == __version__
