"""Pictures of the running demo for README and gallery: ``python -m tests.screenshots FOLDER``.

``--url`` and ``--only NAME``: of a demo that runs already, and some pictures only.
"""

import argparse
import base64
import re
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from playwright.sync_api import Browser, BrowserContext, Page, expect, sync_playwright

from tests.gallery import DARK, WINDOW, Picture, every_picture, file_of, gallery
from tests.integration.test_up import Terminal

QUALITY = 72  # of WebP: text stays sharp
PATIENCE_MS = 120_000
FOLDER = re.compile(r"^/")  # of the machine on which they are taken: nobody else has it


def main() -> None:
    """Take the pictures and write the list of them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--url", help="a demo that runs already; without it one is made")
    parser.add_argument("--only", action="append", default=[], help="name of a picture")
    asked = parser.parse_args()
    asked.folder.mkdir(parents=True, exist_ok=True)
    with running_demo(asked.url) as url, sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox"]
        )
        for theme in ("light", "dark"):
            take(browser, url, asked.folder, theme, asked.only)
        browser.close()
    (asked.folder / "README.md").write_text(gallery(), encoding="utf-8")


@contextmanager
def running_demo(url: str | None) -> Iterator[str]:
    """Yield the address of a demo: one that runs, or one of our own."""
    if url:
        yield url
        return
    with tempfile.TemporaryDirectory() as home:
        demo = Terminal(Path(home), "--demo")
        demo.wait_for(r"Decisions, as they are taken", 300)
        yield f"http://localhost:{demo.port}"
        demo.stop()


def take(browser: Browser, url: str, folder: Path, theme: str, only: list[str]) -> None:
    """Take all pictures of one theme, each person in one session."""
    sessions: dict[str, BrowserContext] = {}
    for picture in every_picture():
        if (only and picture.name not in only) or (theme == "dark" and picture.name not in DARK):
            continue
        if picture.person not in sessions:
            sessions[picture.person] = sign_in(browser, url, picture.person, theme)
        page = sessions[picture.person].new_page()
        look(page, picture)
        session = sessions[picture.person].new_cdp_session(page)
        asked = {"format": "webp", "quality": QUALITY}
        taken = session.send("Page.captureScreenshot", asked)
        (folder / file_of(picture, theme)).write_bytes(base64.b64decode(taken["data"]))
        page.close()


def sign_in(browser: Browser, url: str, person: str, theme: str) -> BrowserContext:
    """Sign in through the form; the demo's passwords are made of the names."""
    context = browser.new_context(base_url=url, viewport=WINDOW, color_scheme=theme)  # type: ignore[arg-type]
    context.set_default_timeout(PATIENCE_MS)
    page = context.new_page()
    page.goto("/login/")
    page.fill("input[name=username]", person)
    page.fill("input[name=password]", f"{person}-demo")
    page.press("input[name=password]", "Enter")
    page.wait_for_url("**/")
    page.close()
    return context


def look(page: Page, picture: Picture) -> None:
    """Go where the picture is taken, and wait until everything is drawn."""
    answer = page.goto(picture.path)
    if picture.follow:
        with page.expect_navigation() as waited:
            page.locator(picture.follow).first.click()
        answer = waited.value
    if answer is None or not answer.ok:
        raise SystemExit(f"{picture.name}: {page.url} answers {answer and answer.status}")
    expect(page.locator(".chart:not(.is-drawn)")).to_have_count(0, timeout=PATIENCE_MS)
    folders = page.locator("td", has_text=FOLDER)
    folders.evaluate_all("cells => cells.forEach(one => { one.textContent = '/srv/gpuplatform' })")


if __name__ == "__main__":
    main()
