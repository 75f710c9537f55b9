"""Celery's application and the whole timetable of what happens by itself.

A message is only an alarm clock: every task looks at the rows and does what is due, so losing
or doubling a message changes nothing but the delay.
"""

import os
from typing import Any

from celery import Celery
from celery.signals import task_failure
from django.conf import settings

from gpuplatform.common.broker import use_whole_files

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "gpuplatform.settings")

use_whole_files()
app = Celery("gpuplatform")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()
app.conf.beat_schedule = {
    "cycle": {"task": "scheduling.run_cycle", "schedule": 2.0},
    "watch": {"task": "scheduling.watch", "schedule": 30.0},
    "mail": {"task": "scheduling.send_mail", "schedule": 60.0},
    "sources": {"task": "finops.load_sources", "schedule": 600.0},
    "drafts": {"task": "finops.rebuild_drafts", "schedule": 300.0},
    "budgets": {"task": "finops.measure_budgets", "schedule": 600.0},
    "limits": {"task": "finops.read_limits", "schedule": 6 * 3600.0},
    "loans": {"task": "queues.end_loans", "schedule": 60.0},
    "operations": {"task": "doors.run_operations", "schedule": 60.0},
    "replays": {"task": "finops.replay_quotas", "schedule": 60.0},
    "close_up": {"task": "finops.close_up", "schedule": 6 * 3600.0},
    "seals": {"task": "common.seal_audit", "schedule": 60.0},
    "failures": {"task": "common.forget_failures", "schedule": 6 * 3600.0},
    "sessions": {"task": "common.forget_sessions", "schedule": 6 * 3600.0},
    "webhooks": {"task": "doors.tell_webhooks", "schedule": 10.0},
    "deliveries": {"task": "doors.forget_deliveries", "schedule": 6 * 3600.0},
    "prune": {"task": "scheduling.prune", "schedule": 3600.0},
}
app.conf.task_routes = {
    "scheduling.send_mail": {"queue": "mail"},  # a dead mail server keeps no cycle waiting
    "doors.tell_webhooks": {"queue": "mail"},
    "scheduling.*": {"queue": "cycle"},
    "finops.*": {"queue": "cost"},
    "doors.*": {"queue": "cost"},
    "queues.*": {"queue": "cost"},
    "common.*": {"queue": "cost"},
}


@task_failure.connect
def remember(sender: Any, exception: BaseException, **_kwargs: object) -> None:
    """Keep what a task failed of, for the page of failures."""
    from gpuplatform.common.failures import note_failure  # noqa: PLC0415  # tables are ready now

    note_failure(sender.name, exception)


@app.on_after_finalize.connect
def keep_the_demo_moving(sender: Celery, **_kwargs: object) -> None:
    """Submit a short job now and then, in an installation filled by ``manage.py demo`` only."""
    if settings.DEMO:
        sender.add_periodic_task(30.0, sender.signature("doors.demo_tick"), name="demo")
