"""The frame of the house: settings, addresses, and Celery's application."""

from gpuplatform.celery import app as celery_app

__all__ = ["celery_app"]
