"""One running product for all walks, one browser for each module of them."""

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.integration.stack import BEAT, WORKER, Stack, stack_on
from tests.walks.walker import Walker

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
SEED, WORLD = ((Path(__file__).parent / f"{name}.py").read_text() for name in ("seed", "world"))
BROKER_DATABASE = 61  # tests/integration counts up to 60


@pytest.fixture(scope="session")
def product(
    postgresql_url: str, broker_url: str, migrated: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Stack]:
    """Server, worker and beat on PostgreSQL, with the people and promises of the walks."""
    home = tmp_path_factory.mktemp("walks")
    with stack_on(postgresql_url, broker_url, home, BROKER_DATABASE, migrated) as made:
        made.manage("shell", "-v", "0", text=f"{SEED}\n\n")
        made.start(*WORKER)
        made.start(*BEAT, "-s", str(home / "beat"))
        made.start_web()
        yield made


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    """A browser; nothing of Django's runs in this process while it is open."""
    if CHROMIUM is None:
        pytest.skip("no Chromium here")
    from playwright.sync_api import sync_playwright  # noqa: PLC0415

    with sync_playwright() as tool:
        browser = tool.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture
def walk(product: Stack, chromium: Any) -> Iterator[Callable[[str], Walker]]:
    """Return somebody signed in; at the end nobody has a complaint."""
    walkers: dict[str, Walker] = {}

    def of(name: str) -> Walker:
        walkers[name] = Walker(chromium, product.url, name)
        return walkers[name]

    yield of
    complaints = {name: walker.complaints for name, walker in walkers.items()}
    for walker in walkers.values():
        walker.page.context.close()
    assert complaints == {name: [] for name in walkers}
