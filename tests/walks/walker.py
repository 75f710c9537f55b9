"""Somebody who walks through the product in a browser, and what must hold wherever they go."""

import re
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, Locator, Page, expect

PASSWORD = "correct horse battery"
SOON_MS = 60_000  # within which the control loop decides on a busy machine
ON_A_PAGE_MS = 30_000
# A form that is answered with its mistakes or with somebody else's edit is no failure.
ANSWERED = re.compile(r"the server responded with a status of (412|422) ")
TELL_VIOLATIONS = """
document.addEventListener("securitypolicyviolation", event =>
  console.error(`CSP: ${event.violatedDirective} ${event.blockedURI}`));
"""


class Walker:
    """A signed-in person in a browser of their own.

    ``complaints`` holds errors of the console, violations of the Content Security Policy and
    requests to anybody else than the product; ``clicks`` counts since the last :meth:`home`.
    """

    def __init__(self, browser: Browser, url: str, name: str) -> None:
        context = browser.new_context(base_url=url, viewport={"width": 1280, "height": 900})
        context.add_init_script(TELL_VIOLATIONS)
        self.page: Page = context.new_page()
        self.page.set_default_timeout(ON_A_PAGE_MS)
        self.complaints: list[str] = []
        self.clicks = 0
        self._watch(url)
        self.page.goto("/login/")
        self.page.fill("[name=username]", name)
        self.page.fill("[name=password]", PASSWORD)
        self.page.press("[name=password]", "Enter")
        self.page.wait_for_url("**/", timeout=ON_A_PAGE_MS)

    def _watch(self, url: str) -> None:
        told = self.complaints.append

        def of_console(message: Any) -> None:
            if message.type == "error" and not ANSWERED.search(message.text):
                told(f"{message.text} {message.location}")

        self.page.on("console", of_console)
        self.page.on("pageerror", lambda error: told(str(error)))
        here = (url, "data:", "blob:")
        self.page.on("request", lambda r: None if r.url.startswith(here) else told(r.url))

    # ---- walking -------------------------------------------------------------------------------
    def home(self) -> None:
        """Begin a task: from the overview on, clicks are counted."""
        self.page.goto("/")
        self.clicks = 0

    def click(self, what: str, *, within: str = "body", role: Any = "link") -> None:
        """Click what has this name, and only that."""
        found = self.page.locator(within).get_by_role(role, name=what, exact=True).first
        found.click()
        self.clicks += 1

    def press(self, what: str) -> None:
        self.click(what, role="button")

    def rail(self, what: str) -> None:
        self.click(what, within="nav.rail")

    def type(self, **values: str) -> None:
        """Fill in fields of the form by their names."""
        for name, value in values.items():
            field = self.field(name)
            if field.evaluate("node => node.tagName") == "SELECT":
                field.select_option(value)
            else:
                field.fill(value)

    def field(self, name: str) -> Locator:
        """Return the field that can be seen; ``quota_0_nominal`` is
        ``quota-0-nominal``."""
        html = re.sub(r"^(quota|teams)_(\d)_", r"\1-\2-", name)
        return self.page.locator(f"main [name='{html}']:visible").first

    # ---- reading -------------------------------------------------------------------------------
    def reads(self, words: str, *, within: str = "main", soon: bool = False) -> None:
        """Expect that the page says so; ``soon``: by itself, once the control loop has decided."""
        place = self.page.locator(within).first
        expect(place).to_contain_text(words, timeout=SOON_MS if soon else ON_A_PAGE_MS)

    def headline(self, words: str, *, soon: bool = False) -> None:
        self.reads(words, within="#headline", soon=soon)

    def note(self, code: str) -> str:
        """Return the sentence of what is told under a code."""
        place = self.page.locator("li.note", has=self.page.locator(f"code >> text='{code}'")).first
        return str(place.inner_text())

    def money(self, cells: str) -> list[Decimal]:
        """Return the amounts in these cells of the page."""
        shown = self.page.locator(cells).all_inner_texts()
        return [
            Decimal(re.sub(r"[^\d.-]", "", text.replace("\N{MINUS SIGN}", "-"))) for text in shown
        ]

    def download(self, click: Callable[[], None], folder: Path) -> str:
        """Return the text of the file that this click saves."""
        with self.page.expect_download() as waited:
            click()
        path = folder / waited.value.suggested_filename
        waited.value.save_as(path)
        return path.read_text(encoding="utf-8")

    # ---- without a mouse -----------------------------------------------------------------------
    def tab_to(self, focused: str) -> None:
        """Press Tab until the focus stands on what the selector means."""
        for _ in range(150):
            self.page.keyboard.press("Tab")
            if self.page.evaluate("css => document.activeElement.matches(css)", focused):
                return
        raise AssertionError(f"the Tab key never came to {focused}")
