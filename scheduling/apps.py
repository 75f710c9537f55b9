"""Django's view of the room."""

from django.apps import AppConfig


class SchedulingConfig(AppConfig):
    """RUNNING: nodes, workloads, the cycle that admits and places."""

    name = "scheduling"

    def ready(self) -> None:
        """Keep promises from being deleted under work; tell editors what their edits mean."""
        from gpuplatform.common.consequences import register_watch  # noqa: PLC0415
        from queues.services import register_delete_guard  # noqa: PLC0415  # models are ready now
        from scheduling.guards import guard_promises  # noqa: PLC0415
        from scheduling.selectors.promises import watch_promise  # noqa: PLC0415

        register_delete_guard(guard_promises)
        register_watch(watch_promise)
