"""Commands about oneself: login, whoami, the known servers."""

import os
import sys
from collections.abc import Iterable
from gettext import gettext as _
from importlib.metadata import PackageNotFoundError
from importlib.metadata import version as version_of
from typing import Annotated, Any

import typer

from gpuplatform.client import config, options
from gpuplatform.client.config import Place
from gpuplatform.client.failures import Exit, Failed
from gpuplatform.client.options import Out, connect
from gpuplatform.client.output import Format, column, say, show, show_one
from gpuplatform.client.server import Server

servers = typer.Typer(no_args_is_help=True, help="Servers that you have logged in to.")


def login(
    url: Annotated[str, typer.Argument(help="Such as https://gpu.example.org")],
    token: Annotated[str, typer.Option(help="Default: asked for, or read from stdin.")] = "",
    name: Annotated[str, typer.Option(help="What you call this server.")] = "default",
) -> None:
    """Keep a server and a token; both are tried first.

    Make a token on your account page. Example: gpuctl login https://gpu.example.org < token.txt
    """
    secret = token or os.environ.get("GPUCTL_TOKEN", "") or _typed()
    place = Place(url.rstrip("/"), secret.strip())
    who = Server(place, options.transport()).get("whoami/")
    kept = config.read()
    kept.places[name] = place
    kept.current = name
    config.write(kept)
    say(_("Logged in to {url} as {user}.").format(url=place.url, user=who["user"]))


def _typed() -> str:
    if sys.stdin.isatty():
        return str(typer.prompt(_("Token"), hide_input=True, err=True))
    return sys.stdin.readline()


def whoami(output: Out = Format.TABLE) -> None:
    """Say who the token belongs to, and what it may do."""
    who = connect().get("whoami/")
    show_one(who | {"name": who["user"]}, output, lambda: _described(who))


def _described(who: dict[str, Any]) -> Iterable[str]:
    yield _("user    {user}").format(user=who["user"])
    yield _("roles   {roles}").format(roles=", ".join(who["roles"]) or "-")
    teams = ", ".join(f"{t['name']} ({t['role'] or '-'})" for t in who["teams"])
    yield _("teams   {teams}").format(teams=teams or "-")
    yield _("scopes  {scopes}").format(scopes=", ".join(who["scopes"] or ["-"]))
    if token := who["token"]:
        words = _("token   {name}, until {expires_at}")
        yield words.format(name=token["name"], expires_at=token["expires_at"] or "-")


@servers.command("list")
def list_servers(output: Out = Format.TABLE) -> None:
    """List the servers; the one in use has a star."""
    kept = config.read()
    rows = [
        {"name": name, "url": place.url, "current": name == kept.current}
        for name, place in kept.places.items()
    ]
    show(rows, [column("NAME"), column("URL"), column("CURRENT")], output)


@servers.command()
def use(name: str) -> None:
    """Ask this server from now on."""
    kept = config.read()
    if name not in kept.places:
        raise Failed(Exit.NOT_FOUND, _("There is no server {name}.").format(name=name))
    kept.current = name
    config.write(kept)


@servers.command()
def forget(name: str) -> None:
    """Forget a server and its token; revoke the token on your account page."""
    kept = config.read()
    if kept.places.pop(name, None) is None:
        raise Failed(Exit.NOT_FOUND, _("There is no server {name}.").format(name=name))
    kept.current = kept.current if kept.current != name else next(iter(kept.places), "")
    config.write(kept)


def version() -> None:
    """Print the version of this client."""
    try:
        number = version_of("gpuplatform")
    except PackageNotFoundError:  # run from its sources
        number = _("(not installed)")
    sys.stdout.write(f"gpuctl {number}\n")
