"""What the ground floor does by itself."""

from importlib import import_module

from celery import shared_task
from django.conf import settings

from gpuplatform.common import failures, sealing


@shared_task(name="common.seal_audit", ignore_result=True)
def seal_audit() -> None:
    """Seal the entries of the audit trail that have no seal yet; twice is harmless."""
    sealing.seal()


@shared_task(name="common.forget_failures", ignore_result=True)
def forget_failures() -> None:
    """Forget what failed long ago."""
    failures.forget_failures()


@shared_task(name="common.forget_sessions", ignore_result=True)
def forget_sessions() -> None:
    """Delete the sessions that have ended."""
    import_module(settings.SESSION_ENGINE).SessionStore.clear_expired()
