"""Pictures of the running demo for the README: ``python -m tests.screenshots FOLDER``."""

import re
import shutil
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import Page, sync_playwright

from tests.integration.test_up import Terminal

# Who looks at what, by day (light) and by night (dark).
PAGES = {
    "overview": ("ada", "/", "light"),
    "overview-dark": ("ada", "/", "dark"),
    "queues": ("ada", "/queues/", "light"),
    "workloads": ("ada", "/workloads/", "light"),
    "nodes": ("ada", "/nodes/", "light"),
    "borrowing": ("ada", "/borrowing/", "light"),
    "cost": ("fin", "/cost/", "light"),
    "bills": ("fin", "/bills/2026-06/", "light"),
    "bill": ("fin", "/bills/2026-06/datos/", "light"),
    "audit": ("aud", "/audit/", "light"),
}


def main(folder: Path) -> None:
    """Start a demo of its own, sign in as each person and take the pictures."""
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as home:
        demo = Terminal(Path(home), "--demo")
        demo.wait_for(r"Decisions, as they are taken", 300)
        passwords = dict(re.findall(r"^  \S.*? +(\w+) +(\S+)$", demo.text(), re.MULTILINE))
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(
                executable_path=shutil.which("chromium"), args=["--no-sandbox"]
            )
            for name, (person, path, theme) in PAGES.items():
                page = browser.new_page(viewport={"width": 1280, "height": 900})
                page.emulate_media(color_scheme=theme)  # type: ignore[arg-type]
                sign_in(page, f"http://localhost:{demo.port}", person, passwords[person])
                page.goto(f"http://localhost:{demo.port}{path}", wait_until="networkidle")
                page.screenshot(path=folder / f"{name}.png")
                page.close()
            browser.close()
        demo.stop()


def sign_in(page: Page, url: str, person: str, password: str) -> None:
    """Sign in through the form."""
    page.goto(f"{url}/login/")
    page.fill("input[name=username]", person)
    page.fill("input[name=password]", password)
    page.press("input[name=password]", "Enter")
    page.wait_for_load_state("networkidle")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
