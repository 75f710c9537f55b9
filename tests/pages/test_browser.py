"""The pages in a real browser: they work, and ask nobody but this machine.

That each is accessible and as wide as its window stands in tests/walks.
"""

import shutil
from collections.abc import Iterator
from typing import Any

import pytest
from django.urls import reverse

from scheduling import services
from tests.pages.conftest import decide

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
pytestmark = [
    pytest.mark.browser,
    pytest.mark.django_db(transaction=True),
    pytest.mark.skipif(CHROMIUM is None, reason="no Chromium here"),
]


@pytest.fixture
def page(live_server: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A browser page; afterwards: no error in its console, no request to another host."""
    from playwright.sync_api import sync_playwright  # noqa: PLC0415

    monkeypatch.setenv("DJANGO_ALLOW_ASYNC_UNSAFE", "true")  # Playwright's loop runs beside us
    with sync_playwright() as tool:
        browser = tool.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        tab = browser.new_page(base_url=live_server.url, viewport={"width": 1280, "height": 900})
        errors, foreign = [], []
        tab.on("console", lambda m: errors.append(m.text) if m.type == "error" else None)
        tab.on("pageerror", lambda error: errors.append(str(error)))
        here = (live_server.url, "data:", "blob:")
        tab.on("request", lambda r: None if r.url.startswith(here) else foreign.append(r.url))
        yield tab
        browser.close()
    assert (errors, foreign) == ([], [])


def sign_in(page: Any, name: str = "ada") -> None:
    page.goto("/login/")
    page.fill("[name=username]", name)
    page.fill("[name=password]", "correct horse battery")
    page.click("button[type=submit]")
    page.wait_for_url("**/")


def test_charts_are_drawn_and_follow_the_theme(platform, ada, page):
    from playwright.sync_api import expect  # noqa: PLC0415

    sign_in(page)
    page.wait_for_selector(".chart.is-drawn .main-svg")
    words = page.locator(".chart .legendtext").first
    light = words.evaluate("node => getComputedStyle(node).fill")
    with page.expect_response("**/charts/quota-use/**theme=dark"):
        page.evaluate("document.querySelector('[data-theme-switch]').click()")  # light
        page.evaluate("document.querySelector('[data-theme-switch]').click()")  # dark
    expect(words).not_to_have_css("fill", light)


def test_the_keyboard_leads_through_the_pages(platform, ada, page):
    sign_in(page)
    page.keyboard.press("g")
    page.keyboard.press("q")
    page.wait_for_url("**/queues/")
    page.focus("tr[role=row][aria-level='1']")
    page.keyboard.press("ArrowLeft")
    assert page.locator("tr[aria-level='2']:visible").count() == 0
    page.keyboard.press("ArrowRight")
    assert page.locator("tr[aria-level='2']:visible").count() == 2


def test_a_workload_is_cancelled_in_a_dialog(platform, ada, page):
    sign_in(page)
    page.goto(reverse("workload", args=[platform.later.uid]))
    page.click("text=Cancel workload >> nth=0")
    page.click("dialog[open] .is-danger")
    page.wait_for_selector("text=later is cancelled.")


def test_search_drops_down_and_is_walked_by_keys(platform, ada, page):
    sign_in(page)
    page.keyboard.press("Control+k")
    with page.expect_response(lambda answer: answer.url.endswith("q=later")):
        page.keyboard.type("later")  # what was found for its first letters is another list
    page.wait_for_selector(".drop a >> text=later")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    page.wait_for_url(f"**/workloads/{platform.later.uid}/")
    page.keyboard.press("Control+k")
    page.keyboard.type("zebra")
    page.wait_for_selector(".drop >> text=zebra")
    page.keyboard.press("Escape")
    assert page.is_hidden(".drop")


def test_an_open_page_learns_that_somebody_has_started(platform, ada, page, monkeypatch):
    page.clock.install()  # the development server keeps no stream: the page asks every 15 s
    sign_in(page)
    page.goto(reverse("workload", args=[platform.later.uid]))
    page.click("summary >> text=YAML")
    services.cancel_workload(platform.train.uid, actor=ada)
    decide()
    decide()
    page.clock.fast_forward(16_000)
    page.wait_for_selector("#headline >> text=runs")
    assert page.locator("details[open] pre").count() == 1  # what was opened stays open


def test_an_open_page_says_that_it_has_lost_its_connection_until_it_is_back(platform, ada, page):
    page.clock.install()
    sign_in(page)
    page.goto(reverse("queues"))
    page.evaluate(
        "() => { window.asks = window.fetch; window.fetch = () => Promise.reject(new Error()); }"
    )
    page.clock.fast_forward(90_000)
    page.wait_for_selector("[role=status] >> text=This page has lost its connection")
    assert page.is_visible("text=cq-datos")  # nothing is taken away
    page.evaluate("() => { window.fetch = window.asks; }")
    page.clock.fast_forward(16_000)
    page.clock.fast_forward(6_000)
    page.wait_for_selector("[role=status] >> text=This page has lost", state="detached")
