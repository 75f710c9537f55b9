"""One holder at a time, and a fence against those who come late."""

import os
import socket
import subprocess
from datetime import timedelta

import pytest
from django.utils import timezone

from gpuplatform.common import leases
from gpuplatform.common.models import Lease
from tests.scheduling.loop.conftest import answer

pytestmark = pytest.mark.django_db


def test_a_lease_has_one_holder_until_it_is_released():
    first = leases.acquire("cycle", "a", 10)
    assert first is not None
    assert leases.acquire("cycle", "b", 10) is None
    leases.release(first)
    second = leases.acquire("cycle", "b", 10)
    assert second is not None
    assert second.fence > first.fence


def test_a_dead_holder_is_followed_after_its_time(clock):
    dead = leases.acquire("cycle", "a", 10)
    assert dead is not None
    clock.shift(timedelta(seconds=10))
    assert leases.acquire("cycle", "b", 10) is None
    clock.shift(timedelta(seconds=1))
    heir = leases.acquire("cycle", "b", 10)
    leases.release(dead)  # too late: it is not his any more
    assert heir is not None
    assert Lease.objects.get().holder == "b"


def test_a_holder_whose_process_is_gone_is_followed_at_once_and_no_other():
    process = subprocess.Popen(["true"])
    process.wait()
    here, gone, lives = socket.gethostname(), process.pid, os.getpid()
    for holder, follows in (
        (f"{here}:{gone}:ab", True),
        (f"{here}:{lives}:ab", False),
        (f"elsewhere:{gone}:ab", False),
        ("somebody", False),
    ):
        assert leases.acquire("cycle", holder, 10) is not None
        heir = leases.acquire("cycle", "heir", 10)
        assert (heir is not None) is follows, holder
        leases.release(heir or leases.Held("cycle", holder, _fence(), 10))


def _fence() -> int:
    return Lease.objects.get().fence


def test_the_work_is_one_transaction_and_gives_the_lease_back():
    with leases.transaction_under("cycle", "a", 10) as held:
        assert held is not None
        assert Lease.objects.get().until > timezone.now()
    assert Lease.objects.get().holder == ""


def test_work_that_fails_is_undone_and_gives_the_lease_back():
    def fail() -> None:
        with leases.transaction_under("cycle", "a", 10):
            Lease.objects.create(name="other")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert list(Lease.objects.values_list("name", "holder")) == [("cycle", "")]


def test_who_does_not_hold_the_lease_may_not_work():
    leases.acquire("cycle", "a", 10)
    with leases.transaction_under("cycle", "b", 10) as held:
        assert held is None
    assert Lease.objects.get().holder == "a"


def test_who_lost_the_lease_before_beginning_abandons(monkeypatch):
    acquire = leases.acquire

    def slow(name, holder, seconds):
        held = acquire(name, holder, seconds)
        Lease.objects.update(until=timezone.now() - timedelta(seconds=1))
        acquire(name, "faster", seconds)
        return held

    monkeypatch.setattr(leases, "acquire", slow)
    with leases.transaction_under("cycle", "a", 10) as held:
        assert held is None
    assert Lease.objects.get().holder == "faster"


def test_processes_take_turns(elsewhere):
    program = """
from django.db import transaction
from gpuplatform.common import leases
turns = 0
for _ in range(15):
    with leases.transaction_under("turns", leases.unique_holder(), 5) as held:
        if held:
            row, _ = Lease.objects.get_or_create(name="counter")
            Lease.objects.filter(name="counter").update(fence=row.fence + 1)
            turns += 1
print(json.dumps(turns))
"""
    turns = [answer(process) for process in [elsewhere(program) for _ in range(2)]]
    counted = answer(elsewhere('print(json.dumps(Lease.objects.get(name="counter").fence))'))
    assert counted == sum(turns) > 0
