"""Django's view of the doors."""

from django.apps import AppConfig


class DoorsConfig(AppConfig):
    """Manifests from outside; has commands, no tables."""

    name = "gpuplatform.doors"
    label = "doors"

    def ready(self) -> None:
        """Tell the schema how programs sign in."""
        from gpuplatform.doors import schema  # noqa: F401, PLC0415
