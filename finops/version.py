"""Which version of the product runs: it stands on closed months and in manifests."""

from importlib.metadata import PackageNotFoundError, version

PACKAGE = "gpuplatform"


def code_version() -> str:
    """Return the version of the product, "unknown" in a folder that was never installed."""
    try:
        return version(PACKAGE)
    except PackageNotFoundError:
        return "unknown"
