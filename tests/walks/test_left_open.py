"""A page that is left open for days: 2,000 live updates, and its tab needs no more memory."""

import re
from collections.abc import Iterator
from itertools import count
from typing import Any

import pytest

from tests.walks.conftest import CHROMIUM
from tests.walks.walker import Walker

pytestmark = [pytest.mark.services, pytest.mark.long]
UPDATES, WARM_UP = 2_000, 100
MOST_BYTES = 10 * 10**6  # product.md 7.11
FLAGS = ["--no-sandbox", "--enable-precise-memory-info", "--js-flags=--expose-gc"]
# The stream of a tab whose topics change as often as the test says.
STREAM = """
window.EventSource = class extends EventTarget {
  static OPEN = 1;
  constructor() { super(); this.readyState = 1; window.stream = this; }
  close() {}
};
"""
CHANGE = """async (times) => {
  for (let at = 0; at < times; at += 1) {
    const once = { once: true };
    const told = new Promise((done) => document.addEventListener("livechange", done, once));
    window.stream.dispatchEvent(new Event("topic"));
    await told;
  }
  window.gc();
  return performance.memory.usedJSHeapSize;
}"""


@pytest.fixture
def browser() -> Iterator[Any]:
    """A browser that counts its memory exactly."""
    if CHROMIUM is None:
        pytest.skip("no Chromium here")
    from playwright.sync_api import sync_playwright  # noqa: PLC0415

    with sync_playwright() as tool:
        made = tool.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield made
        made.close()


@pytest.mark.parametrize("path", ["/", "/queues/"])
def test_a_page_that_is_left_open_does_not_grow(product, browser, path, record_property):
    page = Walker(browser, product.url, "ada").page
    page.add_init_script(STREAM)
    page.goto(path)
    html, numbers = page.content(), count()
    assert html.count("data-part") > 1

    def answer(route):
        mark = f" data-part data-update='{next(numbers)}'"  # every part differs every time
        route.fulfill(body=re.sub(" data-part", mark, html), content_type="text/html")

    page.route(f"{product.url}{path}", answer)
    before = page.evaluate(CHANGE, WARM_UP)
    shown = page.locator("[data-update]").first.get_attribute("data-update")
    grown = page.evaluate(CHANGE, UPDATES) - before
    assert page.locator("[data-update]").first.get_attribute("data-update") != shown
    record_property("heap_growth_bytes", grown)
    print(f"{path}: {grown / 10**6:.2f} MB after {UPDATES} updates")  # noqa: T201
    assert grown < MOST_BYTES
