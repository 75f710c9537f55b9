"""Values of the environment, by which an installation is set; for ``settings`` alone."""

import os


def env(name: str, default: str = "") -> str:
    """Return an environment variable; empty counts as absent."""
    return os.environ.get(name) or default


def env_bool(name: str, default: bool = False) -> bool:
    """Return whether an environment variable says yes."""
    return env(name, str(default)).lower() in {"1", "true", "yes", "on"}
