"""Django's view of the room."""

from django.apps import AppConfig


class SchedulingConfig(AppConfig):
    """RUNNING: nodes, workloads, the cycle that admits and places."""

    name = "scheduling"

    def ready(self) -> None:
        """Keep promises from being deleted under work; tell editors what their edits mean."""
        from django.conf import settings  # noqa: PLC0415

        from gpuplatform.common.consequences import register_watch  # noqa: PLC0415
        from gpuplatform.common.live import register_feed  # noqa: PLC0415
        from queues.services import register_delete_guard  # noqa: PLC0415  # models are ready now
        from scheduling import alerting, live, watch  # noqa: PLC0415
        from scheduling.charging import read_rules  # noqa: PLC0415
        from scheduling.guards import guard_promises  # noqa: PLC0415
        from scheduling.readers import moving_of, patience_of  # noqa: PLC0415
        from scheduling.selectors.alerts import OWNER  # noqa: PLC0415
        from scheduling.selectors.edits import watch_edit  # noqa: PLC0415

        patience_of(settings)  # a wrong setting stops the start
        moving_of(settings)
        read_rules(settings.RESOURCE_TRANSFORMATIONS)
        register_delete_guard(guard_promises)
        register_watch(watch_edit)
        alerting.register(OWNER, watch.KINDS)
        for name, feed in ("edit", live.edits), ("story", live.stories), ("cycle", live.holds):
            register_feed(name, feed)
