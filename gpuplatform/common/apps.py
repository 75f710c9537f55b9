"""Django's view of the ground floor."""

from django.apps import AppConfig

from gpuplatform.celery import app as celery_app

__all__ = ["CommonConfig", "celery_app"]  # tasks belong to the application that is loaded here


class CommonConfig(AppConfig):
    """Audit trail, change sequence and leases."""

    name = "gpuplatform.common"
    label = "common"
