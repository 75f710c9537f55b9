"""The right to decide, held by one process at a time, on both databases.

A lease is taken in a small transaction of its own. The work's transaction then begins by
rewriting the row under its fencing number: on PostgreSQL this also locks it, so that nobody takes
over before the work has committed; whoever comes late finds another fence and abandons. The last
statement of the same transaction gives the lease back. A holder that dies leaves a lease that
expires.
"""

import os
import socket
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db import DatabaseError, transaction
from django.db.models import F, Q, QuerySet
from django.utils import timezone

from gpuplatform.common import clock
from gpuplatform.common.models import Lease

MOST = timedelta(minutes=5)  # no lease is taken for longer
CYCLE = "cycle"  # the lease of everything that decides, reconciles or meters


@dataclass(frozen=True, slots=True)
class Held:
    """A lease as it was taken."""

    name: str
    holder: str
    fence: int
    seconds: int


def unique_holder() -> str:
    """Return a name that no other process, thread or earlier run has."""
    return f"{socket.gethostname()}:{os.getpid()}:{uuid.uuid4().hex[:8]}"


def acquire(name: str, holder: str, seconds: int) -> Held | None:
    """Take the lease if it is free, expired or already the holder's; None if it is not."""
    now = timezone.now()
    # A lease that ends later than any could was taken before the clock was set back.
    sane = Q(until__gte=now, until__lte=now + MOST)
    takeable = Q(holder="") | Q(holder=holder) | ~sane
    with transaction.atomic():
        mine = {"holder": holder, "until": now + timedelta(seconds=seconds)}
        if Lease.objects.filter(takeable, name=name).update(**mine, fence=F("fence") + 1):
            fence = Lease.objects.values_list("fence", flat=True).get(name=name)
            return Held(name, holder, fence, seconds)
    _row, is_new = Lease.objects.get_or_create(name=name)
    return acquire(name, holder, seconds) if is_new else None  # nobody had it before


def release(held: Held) -> None:
    """Give the lease back, in the caller's transaction if there is one; harmless when lost."""
    _mine(held).update(holder="", until=timezone.now())


@contextmanager
def transaction_under(name: str, holder: str, seconds: int) -> Iterator[Held | None]:
    """Run the block as the one transaction that this lease allows.

    Yields:
        The lease; None when somebody else has it, and then the block must write nothing.
    """
    held = acquire(name, holder, seconds)
    if held is None:
        yield None
        return
    try:
        with transaction.atomic():
            if not _extend(held):
                yield None
                return
            yield held
            release(held)
    except BaseException:
        with suppress(DatabaseError):  # it expires by itself where the database is away
            release(held)
        raise


def beat(name: str) -> None:
    """Note that the holder of a lease is there, though it has had nothing to write."""
    Lease.objects.update_or_create(name=_seen(name), defaults={"until": clock.now()})


def last_beat(name: str) -> datetime | None:
    """Return when :func:`beat` was last called for the lease."""
    return Lease.objects.filter(name=_seen(name)).values_list("until", flat=True).first()


def _seen(name: str) -> str:
    return f"{name}-seen"


def _extend(held: Held) -> bool:
    """Return whether the lease is still ours; lock it if so."""
    until = timezone.now() + timedelta(seconds=held.seconds)
    return _mine(held).update(until=until) == 1


def _mine(held: Held) -> QuerySet[Lease]:
    return Lease.objects.filter(name=held.name, holder=held.holder, fence=held.fence)
