"""Where the client finds its server: the environment first, then the file that login writes.

``$XDG_CONFIG_HOME/gpuctl/config.json``, for its owner's eyes only (0600): it holds tokens.
"""

import json
import os
from dataclasses import dataclass, field
from gettext import gettext as _
from pathlib import Path

from gpuplatform.client.failures import Exit, Failed


@dataclass(frozen=True, slots=True)
class Place:
    """A server and the token to show it."""

    url: str
    token: str


@dataclass(slots=True)
class Config:
    """The servers that somebody has logged in to, by name, and the one in use."""

    current: str = ""
    places: dict[str, Place] = field(default_factory=dict)

    def chosen(self) -> Place:
        """Return the server to ask: ``GPUCTL_URL`` and ``GPUCTL_TOKEN``, else the one in use.

        Raises:
            Failed: nobody has said which.
        """
        kept = self.places.get(self.current)
        url = os.environ.get("GPUCTL_URL") or (kept.url if kept else "")
        token = os.environ.get("GPUCTL_TOKEN", "")
        if not token and kept and kept.url == url:  # a token is shown to no other server
            token = kept.token
        if not url:
            words = _("No server is known: run `gpuctl login URL`, or set GPUCTL_URL.")
            raise Failed(Exit.AUTH, words)
        return Place(url, token)


def path() -> Path:
    """Return where the configuration stands."""
    home = os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config"
    return Path(home) / "gpuctl" / "config.json"


def read() -> Config:
    """Return the configuration; an empty one where there is none.

    Raises:
        Failed: the file is damaged.
    """
    try:
        body = json.loads(path().read_text(encoding="utf-8"))
        places = {name: Place(one["url"], one["token"]) for name, one in body["places"].items()}
        return Config(str(body["current"]), places)
    except FileNotFoundError:
        return Config()
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        words = _("{path} cannot be read ({error}); correct it or remove it.")
        raise Failed(Exit.ERROR, words.format(path=path(), error=error)) from error


def write(config: Config) -> None:
    """Keep ``config``, whole or not at all."""
    target = path()
    target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    places = {name: {"url": p.url, "token": p.token} for name, p in config.places.items()}
    text = json.dumps({"current": config.current, "places": places}, indent=1) + "\n"
    new = target.with_suffix(".new")
    new.unlink(missing_ok=True)
    descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(text)
    new.replace(target)
