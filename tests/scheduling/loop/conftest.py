"""A clock that only moves when told to, and processes beside this one."""

import json
import os
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import time_machine
from django.db import connection

from tests.scheduling.loop.world import NOON

ROOT = Path(__file__).resolve().parents[3]
PREAMBLE = """
import json, os, signal, sys, time
from datetime import timedelta
import django
django.setup()
from django.conf import settings
from django.utils import timezone
settings.CYCLE_LEASE_S = 1
settings.CELERY_BROKER_URL = "memory://"
from gpuplatform.celery import app
app.conf.broker_url = "memory://"
from gpuplatform.common.models import Lease
from scheduling import applier, cycle, meter, reconciler
from scheduling.models import Admission, Cycle, Placement, UsageInterval, Workload, WorkloadEvent
"""


@pytest.fixture
def clock() -> Iterator[time_machine.Traveller]:
    """Noon of 1 June 2026, standing still."""
    with time_machine.travel(NOON, tick=False) as traveller:
        yield traveller


@pytest.fixture
def elsewhere(
    transactional_db: None, tmp_path: Path
) -> Iterator[Callable[[str], subprocess.Popen[str]]]:
    """Start a program in a process of its own, on a database with this test's rows.

    What it prints as JSON in its last line is what ``answer`` returns.
    """
    url: list[str] = []
    started: list[subprocess.Popen[str]] = []
    with connection.cursor() as cursor:
        # Knox makes a table for its own token model although ours is in force; the test's
        # clean-up does not know it, and PostgreSQL then refuses to truncate the users.
        cursor.execute("DROP TABLE IF EXISTS knox_authtoken")

    def start(program: str) -> subprocess.Popen[str]:
        if not url:
            url.append(_address(tmp_path))
        environment = {
            **os.environ,
            "DATABASE_URL": url[0],
            "GPUPLATFORM_HOME": str(tmp_path / "home"),
            "DJANGO_SETTINGS_MODULE": "gpuplatform.settings",
        }
        process = subprocess.Popen(
            [sys.executable, "-c", PREAMBLE + program],
            cwd=ROOT,
            env=environment,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate()


def answer(process: subprocess.Popen[str]) -> Any:
    """Wait for a program that must succeed; return its last line, read as JSON."""
    out, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    return json.loads(out.splitlines()[-1])


def _address(folder: Path) -> str:
    """Return the URL of the test's database; SQLite's lives in memory and is copied to a file."""
    settings = connection.settings_dict
    if connection.vendor == "sqlite":
        connection.ensure_connection()
        copy = sqlite3.connect(folder / "copy.sqlite3")
        connection.connection.backup(copy)
        copy.close()
        return f"sqlite:///{folder / 'copy.sqlite3'}"
    user = f"{settings['USER']}:{settings['PASSWORD']}"
    return f"postgres://{user}@{settings['HOST']}:{settings['PORT']}/{settings['NAME']}"
