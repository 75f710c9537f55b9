"""What may stand in the tracked files, in the templates and in the docs."""

import re
import subprocess
from pathlib import Path

import pytest

from tests.house.test_rooms import ROOT

TEMPLATES = sorted(path.relative_to(ROOT) for path in (ROOT / "templates").rglob("*.html"))
DOCS = sorted(
    path.relative_to(ROOT) for path in [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
)
# Built in pieces, so that this file does not name what it looks for.
MACHINE = re.compile("|".join(rf"(^|[^\w.])/{name}/[\w.]" for name in ("work", "root", "farm")))
REGISTRY = re.compile("|".join([r"index-" + "url", r"files\.python" + "hosted", r"/sim" + "ple/"]))
UNFINISHED = re.compile(r"\b(" + "|".join(["TO" + "DO", "FIX" + "ME", "X" * 3]) + r")\b")
LINK = re.compile(r"\]\((?!https?:|mailto:|#)([^)#\s]+)")
PATH = re.compile(r"`([\w.-]+(?:/[\w.-]+)*/?)`")


def tracked() -> list[Path]:
    """Text files that are, or are about to be, in the repository."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.splitlines()
    binary = {".png", ".webp", ".ico", ".woff2", ".gz", ".backup", ".mo"}
    return [Path(name) for name in listed if Path(name).suffix not in binary]


def lines(pattern: re.Pattern[str], paths: list[Path]) -> list[str]:
    """Lines of the files in which the pattern is found, with their place."""
    return [
        f"{path}:{number}: {line.strip()}"
        for path in paths
        if (ROOT / path).is_file()
        for number, line in enumerate((ROOT / path).read_text().splitlines(), 1)
        if pattern.search(line)
    ]


def test_no_tracked_file_names_a_machine_or_a_registry() -> None:
    assert lines(MACHINE, tracked()) == []
    assert lines(REGISTRY, [path for path in tracked() if path.name != "Makefile"]) == []


def test_nothing_is_left_for_later() -> None:
    ours = {".py", ".html", ".js", ".css", ".yml", ".toml"}
    assert lines(UNFINISHED, [path for path in tracked() if path.suffix in ours]) == []


@pytest.mark.parametrize("path", TEMPLATES, ids=str)
def test_templates_have_no_inline_script_and_no_foreign_host(path: Path) -> None:
    text = (ROOT / path).read_text()
    inline = re.findall(r"<script(?![^>]*\bsrc=)(?![^>]*application/json)[^>]*>", text)
    handlers = re.findall(r"\son[a-z]+=[\"']", text)
    foreign = re.findall(r"(?:src|href)=[\"'](?:https?:)?//[^\"']*", text)
    assert (inline, handlers) == ([], [])
    assert [place for place in foreign if "<link" in place or "src" in place] == []


# 500.html is shown when nothing else works, so it asks nothing of the application.
@pytest.mark.parametrize("path", [p for p in TEMPLATES if p.name != "500.html"], ids=str)
def test_templates_speak_through_gettext(path: Path) -> None:
    text = (ROOT / path).read_text()
    for block in (r"{% comment %}.*?{% endcomment %}", r"{% blocktrans.*?{% endblocktrans\w* %}"):
        text = re.sub(block, "", text, flags=re.DOTALL)
    text = re.sub(r"{#.*?#}|{%.*?%}|{{.*?}}|&\w+;|<!--.*?-->", "", text, flags=re.DOTALL)
    text = re.sub(r"<(script|style|svg)\b.*?</\1>", "", text, flags=re.DOTALL)
    words = re.findall(r">([^<>]*[A-Za-z]{2,}[^<>]*)<", text)
    names = {
        "gpuplatform",
        "GPU",
        "GPUs",
        "CSV",
        "JSON",
        "YAML",
        "API",
        "REST",
        "UTC",
        "Esc",
        "Ctrl",
    }
    spoken = [word.strip() for word in words if set(re.findall(r"[A-Za-z]{2,}", word)) - names]
    assert spoken == []


@pytest.mark.parametrize("path", DOCS, ids=str)
def test_links_of_the_docs_lead_somewhere(path: Path) -> None:
    text = (ROOT / path).read_text()
    missing = [to for to in LINK.findall(text) if not (ROOT / path.parent / to).exists()]
    assert missing == []


def test_every_path_named_in_the_architecture_exists() -> None:
    page = ROOT / "docs" / "architecture.md"
    rooms = (
        "gpuplatform",
        "queues",
        "scheduling",
        "finops",
        "templates",
        "static",
        "tests",
        "docs",
    )
    named = {name for name in PATH.findall(page.read_text()) if name.split("/")[0] in rooms}
    assert {name.split("/")[0] for name in named} >= set(rooms[:4])
    assert [name for name in sorted(named) if not (ROOT / name).exists()] == []


def test_the_code_of_the_docs_is_known_to_make() -> None:
    makefile = (ROOT / "Makefile").read_text()
    said = {
        target
        for path in DOCS
        for target in re.findall(
            r"^\s*(?:\$ )?make ([a-z-]+)", (ROOT / path).read_text(), re.MULTILINE
        )
    }
    assert [
        target for target in sorted(said) if not re.search(rf"^{target}:", makefile, re.MULTILINE)
    ] == []
