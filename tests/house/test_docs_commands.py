"""What the docs tell people to type, to set and to open exists."""

import re
from collections.abc import Iterable, Iterator
from html.parser import HTMLParser
from pathlib import Path

import pytest
from django.core.management import get_commands, load_command_class
from django.core.management.base import BaseCommand
from django.urls import Resolver404, resolve

from gpuplatform.common.pages import RAIL
from tests.gallery import DARK, every_picture, file_of, gallery
from tests.house.test_rooms import ROOT
from tests.house.test_texts import DOCS

README = ROOT / "README.md"
PRODUCTION = ROOT / "docs" / "production.md"
GUIDES = sorted((ROOT / "docs").glob("*.md")) + sorted((ROOT / "docs/coming-from").glob("*.md"))
LARGEST_PICTURE, ALL_PICTURES = 100_000, 6_000_000  # bytes
CODE = re.compile(r"`([^`\n]+)`")
INDENTED = re.compile(r"^(?: {4,}|\t)(\S.*)$", re.MULTILINE)
TARGET = re.compile(r"\bmake((?: +[A-Z]+=\S+| +[a-z][a-z-]*)+)")
COMMAND = re.compile(r"\bmanage\.py (\w+)((?: +[^|;`\n]*)?)")
OPTION = re.compile(r"(?<!\S)(--[a-z][a-z-]*)")
VARIABLE = re.compile(r"^\| `([A-Z][A-Z_]+)` \|", re.MULTILINE)
READ_BY_SETTINGS = re.compile(r'\benv(?:_bool)?\(\s*"([A-Z_]+)"')
READ_BY_COMPOSE = re.compile(r"\$\{([A-Z_]+)")
PAGE = re.compile(r"`(?:GET |POST |PUT |DELETE )?(/[a-z][\w./-]*/)(?:\?[^`]*)?`")


def code_of(path: Path) -> str:
    """Return what stands as code on a page, one piece a line."""
    text = path.read_text()
    return "\n".join([*CODE.findall(text), *INDENTED.findall(text)])


def commands_of(path: Path) -> Iterator[tuple[str, str]]:
    """Yield the management commands that a page names, each with what follows it."""
    for name, rest in COMMAND.findall(code_of(path)):
        yield name, rest.partition("#")[0]


def options_of(command: BaseCommand, name: str) -> set[str]:
    """Return the options that a command takes."""
    return set(
        re.findall(r"--[a-z][a-z-]*", command.create_parser("manage.py", name).format_help())
    )


@pytest.mark.parametrize("path", DOCS, ids=str)
def test_every_make_target_that_is_named_exists(path: Path) -> None:
    makefile = (ROOT / "Makefile").read_text()
    there = set(re.findall(r"^([a-z-]+):", makefile, re.MULTILINE))
    words = " ".join(TARGET.findall(code_of(ROOT / path))).split()
    assert {word for word in words if "=" not in word} - there == set()


@pytest.mark.parametrize("path", DOCS, ids=str)
def test_every_management_command_that_is_named_exists_with_its_options(path: Path) -> None:
    known, wrong = get_commands(), []
    for name, rest in commands_of(ROOT / path):
        if name not in known:
            wrong.append(name)
            continue
        command = load_command_class(str(known[name]), name)
        wrong += [
            f"{name} {option}" for option in set(OPTION.findall(rest)) - options_of(command, name)
        ]
    assert wrong == []


def test_the_readme_and_the_guides_name_commands_at_all() -> None:
    named = {name for path in [README, *GUIDES] for name, _rest in commands_of(path)}
    assert named >= {"up", "migrate", "first_admin", "issue_token", "import_manifests"}


def test_production_names_every_variable_that_is_read_and_no_other() -> None:
    text = PRODUCTION.read_text()
    settings, others = text.split("Read by others than the settings:")
    read = set(READ_BY_SETTINGS.findall((ROOT / "gpuplatform" / "settings.py").read_text()))
    assert set(VARIABLE.findall(settings)) == read
    compose = set(READ_BY_COMPOSE.findall((ROOT / "docker-compose.yml").read_text()))
    commands = {"GPUPLATFORM_ADMIN_PASSWORD", "GPUPLATFORM_PERSON_PASSWORD"}
    assert set(VARIABLE.findall(others)) - commands == compose - read


def test_the_example_environment_sets_only_variables_that_production_explains() -> None:
    example = (ROOT / ".env.example").read_text()
    offered = set(re.findall(r"^#? ?([A-Z_]+)=", example, re.MULTILINE))
    assert offered - set(VARIABLE.findall(PRODUCTION.read_text())) == set()


def test_every_address_that_is_named_leads_somewhere() -> None:
    named = {address for path in [README, *GUIDES] for address in PAGE.findall(path.read_text())}
    assert {"/queues/new/", "/bills/2026-06/", "/audit/"} <= named
    assert sorted(address for address in named if not leads_somewhere(address)) == []


def leads_somewhere(address: str) -> bool:
    """Return whether a view of ours, not the answer for unknown addresses, takes it."""
    try:
        found = resolve(address)
    except Resolver404:
        return False
    return found.url_name is not None or address == "/api/v1/"


class Pictures(HTMLParser):
    """Collect the pictures that HTML in Markdown shows."""

    def __init__(self) -> None:
        super().__init__()
        self.sources: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note ``src`` and ``srcset``."""
        if tag in ("img", "source"):
            self.sources += [value for key, value in attrs if key in ("src", "srcset") and value]


def pictures(text: str) -> Iterable[str]:
    """Return the addresses of all pictures of a Markdown page."""
    parser = Pictures()
    parser.feed(text)
    return [*parser.sources, *re.findall(r"!\[[^\]]*\]\(([^)]+)\)", text)]


def test_the_pictures_of_the_readme_are_those_that_make_screenshots_takes() -> None:
    shown = set(pictures(README.read_text()))
    assert len(shown) >= len({"overview", "overview-dark", "a persona each"})
    assert shown <= {f"docs/screenshots/{name}" for name in taken()}


def taken() -> set[str]:
    """Return the files that ``make screenshots`` writes, beside the list of them."""
    light = {file_of(one, "light") for one in every_picture()}
    return light | {file_of(one, "dark") for one in every_picture() if one.name in DARK}


def test_the_gallery_shows_every_page_of_the_rail_and_stays_small() -> None:
    folder = ROOT / "docs" / "screenshots"
    assert (folder / "README.md").read_text() == gallery()
    files = {path.name: path.stat().st_size for path in folder.glob("*.webp")}
    assert set(files) == taken()
    assert max(files.values()) < LARGEST_PICTURE
    assert sum(files.values()) < ALL_PICTURES
    looked_at = {resolve(re.sub(r"\?.*", "", one.path)).url_name for one in every_picture()}
    assert {item.name for item in RAIL} <= looked_at
