"""Django's view of the room."""

from django.apps import AppConfig


class QueuesConfig(AppConfig):
    """PROMISED: teams, quotas, cohorts, queues."""

    name = "queues"

    def ready(self) -> None:
        """Tell the frame of the pages who looks at them, and follow second factors."""
        from gpuplatform.common.pages import register_viewer  # noqa: PLC0415  # models are ready
        from queues.sign_in import records  # noqa: PLC0415
        from queues.views import viewer_of  # noqa: PLC0415

        register_viewer(viewer_of)
        records.connect()
