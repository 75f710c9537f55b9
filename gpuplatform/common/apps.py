"""Django's view of the ground floor."""

from django.apps import AppConfig


class CommonConfig(AppConfig):
    """Audit trail, change sequence and leases."""

    name = "gpuplatform.common"
    label = "common"
