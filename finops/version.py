"""Which version of the product runs: it stands on closed months and in manifests."""

import tomllib
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

PACKAGE = "gpuplatform"
PROJECT = Path(__file__).resolve().parent.parent / "pyproject.toml"


def code_version() -> str:
    """Return the version of the product: of the installed one, else of the folder it runs from.

    "unknown" only where neither says one.
    """
    try:
        return version(PACKAGE)
    except PackageNotFoundError:
        return _version_of(PROJECT)


def _version_of(project: Path) -> str:
    try:
        said = tomllib.loads(project.read_text("utf-8"))["project"]["version"]
    except (OSError, ValueError, KeyError):
        return "unknown"
    return str(said)
