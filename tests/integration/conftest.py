"""One stack per test."""

from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest

from tests.integration.stack import Stack, stack_on

_numbers = count(1)


@pytest.fixture
def empty_stack(postgresql_url: str, broker_url: str, tmp_path: Path) -> Iterator[Stack]:
    """The product as processes on an empty PostgreSQL database and a broker; nothing runs yet."""
    with stack_on(postgresql_url, broker_url, tmp_path, next(_numbers) % 60) as made:
        yield made


@pytest.fixture
def stack(postgresql_url: str, broker_url: str, migrated: str, tmp_path: Path) -> Iterator[Stack]:
    """The product as processes on a migrated PostgreSQL database and a broker."""
    with stack_on(postgresql_url, broker_url, tmp_path, next(_numbers) % 60, migrated) as made:
        yield made
