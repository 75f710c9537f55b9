"""The right to decide, held by one process at a time, on both databases.

A lease is taken in a small transaction of its own. The work's transaction then begins by
rewriting the row under its fencing number: on PostgreSQL this also locks it, so that nobody takes
over before the work has committed; whoever comes late finds another fence and abandons. The last
statement of the same transaction gives the lease back. A holder that dies leaves a lease that
expires, or that is taken at once where its process can be seen to be gone. One that is paused in
its transaction, or cut off, loses it after a while, and finds out when it wakes up.
"""

import logging
import os
import socket
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.conf import settings
from django.db import Error, OperationalError, connection, transaction
from django.db.models import QuerySet
from django.utils import timezone

from gpuplatform.common import clock
from gpuplatform.common.models import Lease

MOST = timedelta(minutes=5)  # no lease is taken for longer
LOCKED_FOR_TOO_LONG = "55P03"  # PostgreSQL's word for a lock_timeout
logger = logging.getLogger(__name__)
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
    mine = holder, now + timedelta(seconds=seconds), name
    # A lease that ends later than any could was taken before the clock was set back.
    takeable = holder, now, now + MOST
    try:
        with transaction.atomic():
            _bounded("lock_timeout")
            taken = _change(TAKE, *mine, *takeable)
            if not taken and Lease.objects.get_or_create(name=name)[1]:  # nobody ever had it
                taken = _change(TAKE, *mine, *takeable)
            if not taken:
                other = Lease.objects.values_list("holder", flat=True).get(name=name)
                if not (_is_gone(other) and _change(INHERIT, *mine, other)):
                    return None
            fence = _fence_of(name)
    except OperationalError as error:
        if getattr(error.__cause__, "sqlstate", "") != LOCKED_FOR_TOO_LONG:
            raise
        _end_the_paused()
        return None
    return Held(name, holder, fence, seconds)


def release(held: Held) -> None:
    """Give the lease back, in the caller's transaction if there is one; harmless when lost."""
    _change(LET_GO, timezone.now(), held.name, held.holder, held.fence)


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
            _bounded("idle_in_transaction_session_timeout")
            if not _extend(held):
                yield None
                return
            yield held
            release(held)
    except BaseException:
        with suppress(Error):  # it expires by itself where the database is away
            release(held)
        raise


def beat(name: str) -> None:
    """Note that the holder of a lease is there, though it has had nothing to write."""
    Lease.objects.update_or_create(name=_seen(name), defaults={"until": clock.now()})


def last_beat(name: str) -> datetime | None:
    """Return when :func:`beat` was last called for the lease. 1 query."""
    return beats(name).values_list("until", flat=True).first()


def beats(name: str) -> QuerySet[Lease]:
    """Return the question for what :func:`beat` keeps: ``until`` is when it was last called."""
    return Lease.objects.filter(name=_seen(name))


def _seen(name: str) -> str:
    return f"{name}-seen"


def _is_gone(holder: str) -> bool:
    """Return whether a holder was a process of this machine that is no more.

    Taken by mistake (machines of the same name), a lease costs its holder one cycle: the fence.
    """
    host, _, rest = holder.rpartition(":")[0].rpartition(":")
    if host != socket.gethostname() or not rest.isdecimal():
        return False
    try:
        os.kill(int(rest), 0)
    except ProcessLookupError:
        return True
    except OSError:
        return False
    return False


def _bounded(timeout: str) -> None:
    """Let PostgreSQL keep nobody longer in this transaction than a worker may be silent."""
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute(f"SET LOCAL {timeout} = {round(settings.CYCLE_STUCK_S * 1000)}")


def _end_the_paused() -> None:
    """End the transactions that hold a lease and of whose client nothing is heard any more.

    No timeout of the server does so where a COPY waits for its rows.
    """
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT pg_terminate_backend(a.pid)"
            " FROM pg_stat_activity a JOIN pg_locks l USING (pid)"
            " WHERE l.relation = 'common_lease'::regclass AND l.mode = 'RowExclusiveLock'"
            " AND l.granted AND a.wait_event = 'ClientRead' AND a.pid <> pg_backend_pid()"
            " AND a.xact_start < clock_timestamp() - make_interval(secs => %s)",
            [settings.CYCLE_STUCK_S],
        )
        logger.error("lease.holder_was_silent", extra={"ended": cursor.rowcount})


def _extend(held: Held) -> bool:
    """Return whether the lease is still ours; lock it if so."""
    until = timezone.now() + timedelta(seconds=held.seconds)
    return _change(EXTEND, until, held.name, held.holder, held.fence) == 1


# Worded by the ORM several times in each turn of the worker, these took as long as a cycle.
_LEASE = Lease._meta.db_table  # noqa: SLF001
_SET_MINE = f"UPDATE {_LEASE} SET holder = %s, until = %s, fence = fence + 1 WHERE name = %s"  # noqa: S608
TAKE = f"{_SET_MINE} AND (holder IN ('', %s) OR NOT (until >= %s AND until <= %s))"
INHERIT = f"{_SET_MINE} AND holder = %s"
_IS_MINE = "WHERE name = %s AND holder = %s AND fence = %s"
EXTEND = f"UPDATE {_LEASE} SET until = %s {_IS_MINE}"  # noqa: S608
LET_GO = f"UPDATE {_LEASE} SET holder = '', until = %s {_IS_MINE}"  # noqa: S608


def _change(statement: str, *values: str | int | datetime) -> int:
    """Return how many rows a statement has changed; the same words on both databases."""
    adapt = connection.ops.adapt_datetimefield_value
    said = [adapt(value) if isinstance(value, datetime) else value for value in values]
    with connection.cursor() as cursor:
        cursor.execute(statement, said)
        return int(cursor.rowcount)


def _fence_of(name: str) -> int:
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT fence FROM {_LEASE} WHERE name = %s", [name])  # noqa: S608
        return int(cursor.fetchone()[0])
