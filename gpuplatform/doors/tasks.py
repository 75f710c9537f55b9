"""Celery's door to what spans the rooms."""

from celery import shared_task

from gpuplatform.doors.demo.live import submit_next
from gpuplatform.doors.operations import running
from gpuplatform.doors.webhooks import outbox, sending


@shared_task(name="doors.demo_tick", ignore_result=True)
def demo_tick() -> None:
    """Let the demo move on; does nothing in an installation without demo data."""
    submit_next()


@shared_task(name="doors.tell_webhooks", ignore_result=True)
def tell_webhooks() -> None:
    """Write down what webhooks are to be told of, and send what is due; twice is harmless."""
    outbox.collect()
    sending.send()


@shared_task(name="doors.forget_deliveries", ignore_result=True)
def forget_deliveries() -> None:
    """Forget the old lines of the log of deliveries."""
    sending.forget()


@shared_task(name="doors.run_operations", ignore_result=True, soft_time_limit=900, time_limit=930)
def run_operations() -> None:
    """Do the operations that wait, one after another; twice at a time is harmless."""
    while running.run_next() is not None:
        pass
    running.forget_old()
