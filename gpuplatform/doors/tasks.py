"""Celery's door to what spans the rooms."""

from celery import shared_task

from gpuplatform.doors.demo.live import submit_next


@shared_task(name="doors.demo_tick", ignore_result=True)
def demo_tick() -> None:
    """Let the demo move on; does nothing in an installation without demo data."""
    submit_next()
