"""Every page of the matrix in a browser: accessible in both themes, and as wide as its window."""

from itertools import cycle

import pytest
from axe_playwright_python.sync_playwright import Axe

from tests.integration.stack import stack_on
from tests.matrix.doors import PAGES, PEOPLE
from tests.walks.conftest import BROKER_DATABASE, WORLD
from tests.walks.walker import Walker

pytestmark = [pytest.mark.services, pytest.mark.long]
WINDOWS = {"light": 390, "dark": 1280}  # the window in which a theme is looked at
WIDTHS = (390, 1024, 1280)
TOO_WIDE = "document.documentElement.scrollWidth > document.documentElement.clientWidth"
# Files and figures, which are no pages, and pages that are not ours.
NO_PAGES = ("/healthz", "/readyz", "/charts/", "/events/", "/fragments/", "/reservations/")
FOREIGN = ("/api/docs/", "/api/redoc/")
FOLLOWS, A_MOMENT_MS = 50, 100
AXE = {"resultTypes": ["violations"]}
GRAVE = {"serious", "critical"}


def pages_of(who):
    """Return an address of every pattern that is a page for somebody."""
    column = PEOPLE.index(who)
    paths = {door.route: door.path for door in PAGES if door.answers[column] == "200"}
    return [
        path
        for path in paths.values()
        if not path.startswith((*NO_PAGES, *FOREIGN))
        and ".json" not in path
        and "format=" not in path
    ]


@pytest.fixture(scope="module")
def world_url(postgresql_url, broker_url, migrated, tmp_path_factory):
    """The address of a server on which every page has something to show."""
    home = tmp_path_factory.mktemp("world")
    with stack_on(postgresql_url, broker_url, home, BROKER_DATABASE + 1, migrated) as made:
        made.manage("shell", "-v", "0", text=f"{WORLD}\n\n")
        made.start_web()
        yield made.url


def faults(page, path, *themes):
    """Return what is wrong with a page: too wide in a window, or hard to read in a theme."""
    page.set_viewport_size({"width": WIDTHS[0], "height": 900})
    page.goto(path)
    found = []
    for width in WIDTHS:
        page.set_viewport_size({"width": width, "height": 900})
        if not fits(page):
            found.append(("too wide", width))
        for theme in themes:
            if WINDOWS[theme] == width:
                found += [(theme, *one) for one in grave(page, theme)]
    return found


def fits(page):
    """Return whether the page is as wide as its window, once its charts have followed."""
    for _ in range(FOLLOWS):
        if not page.evaluate(TOO_WIDE):
            return True
        page.wait_for_timeout(A_MOMENT_MS)
    return False


def grave(page, theme):
    """Return what axe finds to be serious or critical."""
    page.emulate_media(color_scheme=theme)
    told = Axe().run(page, options=AXE).response["violations"]
    return [(one["id"], one["nodes"][0]["html"]) for one in told if one["impact"] in GRAVE]


def test_every_page_is_accessible_and_as_wide_as_its_window(world_url, chromium):
    """One address of each pattern, by turns in the one theme and in the other."""
    ada = Walker(chromium, world_url, "ada")
    found = {}
    paths = pages_of("ada")
    for path, theme in zip(paths, cycle(WINDOWS), strict=False):
        if wrong := faults(ada.page, path, theme):
            found[path] = wrong
    ada.page.context.close()
    assert found == {}
    assert ada.complaints == []
    assert len(paths) > 70


@pytest.mark.long
@pytest.mark.parametrize("who", ["ada", "lea", "eve"])
def test_every_page_that_somebody_gets_is_accessible_in_both_themes(world_url, chromium, who):
    somebody = Walker(chromium, world_url, who)
    paths = [*pages_of(who), "/nodes/nothing/", "/queues/new/"]  # and what turns them away
    wrong = {path: found for path in paths if (found := faults(somebody.page, path, *WINDOWS))}
    somebody.page.context.close()
    assert wrong == {}
