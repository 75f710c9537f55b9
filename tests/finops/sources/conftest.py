"""Doubles of other systems on real sockets, and the samples that they answer."""

import json
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import Any

import pytest
import stamina
from pytest_httpserver import HTTPServer
from werkzeug import Request, Response

from finops.ingest.configuring import save_source
from finops.models import Source
from finops.specs import SourceSpec
from tests.finops.sources.doubles import OpenCostDouble

DAY = date(2026, 6, 10)


@pytest.fixture(autouse=True)
def impatient() -> Iterator[None]:
    """Ask again as often as in earnest, without waiting in between."""
    stamina.set_testing(True, attempts=3)
    yield
    stamina.set_testing(False)


@pytest.fixture(scope="session")
def samples(shared: Path) -> Path:
    """The payloads of other systems with their expected numbers."""
    return shared / "samples"


@pytest.fixture
def opencost_sample(samples: Path) -> Any:
    """Return the body of a sample of OpenCost by the beginning of its name."""

    def body(name: str) -> bytes:
        return next(iter(sorted((samples / "opencost").rglob(f"{name}*")))).read_bytes()

    return body


@pytest.fixture
def here(httpserver: HTTPServer, settings: Any) -> str:
    """The address of the double; the operator allows its host."""
    settings.SOURCE_HOSTS = [f"localhost:{httpserver.port}"]
    settings.SOURCE_SECRETS = {"SOURCE_OC_TOKEN": "s3cret-of-oc"}
    return f"http://localhost:{httpserver.port}/model"


@pytest.fixture
def opencost(httpserver: HTTPServer) -> OpenCostDouble:
    """An OpenCost that answers what a test gives it, and remembers what it was asked."""
    double = OpenCostDouble()

    def answer(request: Request) -> Response:
        return double.answer(request)

    for path in ("allocation", "assets", "allNodePricing"):
        httpserver.expect_request(f"/model/{path}").respond_with_handler(answer)
    return double


@pytest.fixture
def oc(here: str, db: None) -> Source:
    """A source that reads the double."""
    return save_source(
        SourceSpec("oc", "opencost", url=here, first_day=date(2026, 6, 1)), actor=None
    )


@pytest.fixture
def week(opencost_sample: Any, opencost: OpenCostDouble) -> OpenCostDouble:
    """The double with the first seven days of June as sample 03 has them."""
    sets = json.loads(opencost_sample("03"))["data"]
    for number, rows in enumerate(sets, 1):
        opencost.days[date(2026, 6, number)] = [rows]
    return opencost
