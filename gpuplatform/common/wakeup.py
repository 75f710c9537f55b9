"""Ask for a scheduling cycle soon. A lost wake-up costs one beat tick, never correctness."""

import logging
import time
from collections.abc import Iterable

from celery import current_app
from django.db import transaction
from kombu.exceptions import OperationalError

from gpuplatform.common.models import Change

CYCLE_TASK = "scheduling.run_cycle"
KEYS_LENGTH = 4_000  # of the column: a hundred workloads
REST_S = 2.0  # after a loss: who waited for the broker once need not wait again at once
logger = logging.getLogger(__name__)


def note_changes(topic: str, keys: Iterable[object]) -> list[int]:
    """Note what has changed, in this transaction, for whoever keeps a world; wake nobody.

    Several keys share a row, with commas between them. Returns the numbers of the rows.
    """
    rows, line = [], ""
    for key in map(str, keys):
        if line and len(line) + 1 + len(key) > KEYS_LENGTH:
            rows.append(line)
            line = ""
        line = f"{line},{key}" if line else key
    made = [Change(topic=topic, key=one) for one in (*rows, line) if one]
    return [row.pk for row in Change.objects.bulk_create(made)]


def request_cycle(topic: str, *keys: object) -> None:
    """Note the change in this transaction, and wake the cycle worker once it has committed.

    A transaction that notes many changes sends one message.
    """
    if any(map(str, keys)):
        note_changes(topic, keys)
    else:
        Change.objects.create(topic=topic)
    wake()


def wake() -> None:
    """Wake the cycle worker once this transaction has committed; what has changed is noted."""
    inside = set(transaction.get_connection().savepoint_ids)
    waiting = transaction.get_connection().run_on_commit
    if not any(func is _wake and sids <= inside for sids, func, _ in waiting):
        transaction.on_commit(_wake, robust=True)


def _wake() -> None:
    if time.monotonic() < _Broker.rests_until:
        return
    try:
        current_app.send_task(CYCLE_TASK, ignore_result=True, retry=False, expires=60)
    except (OSError, OperationalError) as error:  # the broker is away: beat finds the work
        _Broker.rests_until = time.monotonic() + REST_S
        logger.warning("wakeup.lost", extra={"error": str(error)})


class _Broker:
    """When this process asks the broker again, on the monotonic clock."""

    rests_until = 0.0
