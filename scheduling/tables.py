"""Tables of this room, for django-tables2."""

from collections.abc import Callable
from typing import Any

import django_tables2 as tables
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from gpuplatform.common import clock
from gpuplatform.common.templatetags.shapes import age, duration, state_chip, team_mark
from scheduling.engine.terms import Status
from scheduling.models import Workload
from scheduling.selectors.pages import Pages
from scheduling.selectors.waiting import is_impossible


class WorkloadTable(tables.Table):  # type: ignore[misc]  # the library is untyped
    """Workloads, one a row."""

    name = tables.Column(verbose_name=_("Workload"))
    state = tables.Column(accessor="status", verbose_name=_("State"))
    team = tables.Column(verbose_name=_("Team"), order_by="team__name", empty_values=())
    queue = tables.Column(accessor="cluster_queue", verbose_name=_("Queue"), empty_values=())
    gpus = tables.Column(
        verbose_name=_("GPUs"), attrs={"th": {"class": "num"}, "td": {"class": "num"}}
    )
    priority = tables.Column(
        verbose_name=_("Priority"),
        attrs={"th": {"class": "num"}, "td": {"class": "num"}},
    )
    position = tables.Column(
        verbose_name=_("Position"),
        empty_values=(),
        attrs={"th": {"class": "num"}, "td": {"class": "num"}},
    )
    age = tables.Column(
        accessor="created_at",
        verbose_name=_("Waits, runs or ran"),
        attrs={"th": {"class": "num"}, "td": {"class": "num"}},
    )

    caption = _("Workloads")

    class Meta:
        model = Workload
        fields = ("name", "state", "team", "queue", "gpus", "priority", "position", "age")
        sequence = fields
        attrs = {"class": "table cards"}
        order_by_field = "sort"
        template_name = "components/table.html"

    def __init__(
        self,
        *args: Any,
        pages: Pages | None = None,
        may_act: Callable[[int | None], bool] = lambda _team: False,
        **kwargs: Any,
    ) -> None:
        super().__init__(*args, **kwargs)
        self.pages, self.may_act = pages, may_act

    def render_name(self, record: Any) -> SafeString:
        """Return the name as the link, the namespace beside it, and a box where one may act."""
        href = reverse("workload", args=[record.uid])
        return format_html(
            '{}<a href="{}">{}</a> <span class="muted">{}</span>',
            self._box(record),
            href,
            record.name,
            record.namespace,
        )

    def _box(self, record: Any) -> SafeString:
        if record.status == Status.FINISHED or not self.may_act(record.team_id):
            return SafeString("")
        words = gettext("Select %(name)s") % {"name": record.name}
        return format_html(
            '<input type="checkbox" name="uid" value="{}" form="many" aria-label="{}"> ',
            record.uid,
            words,
        )

    def render_state(self, record: Any) -> SafeString:
        """Return the chip of the state, and whether it waits in vain."""
        chip = state_chip(record)
        if record.status != Status.PENDING or not is_impossible(record):
            return chip
        return format_html('{} <span class="muted">{}</span>', chip, _("can never start"))

    def render_team(self, record: Any) -> SafeString:
        """Return the team's mark."""
        return team_mark(record.team)

    def render_queue(self, record: Any) -> str | SafeString:
        """Return the cluster queue; where none is behind the name, the name itself."""
        name = record.cluster_queue or record.queue_name
        if not name:
            return format_html('<span class="muted">{}</span>', _("outside every queue"))
        page = self.pages.of_queue(name) if self.pages else ""
        return format_html('<a href="{}">{}</a>', page, name) if page else str(name)

    def render_position(self, record: Any) -> str:
        """Return the place in the queue; only waiting work has one."""
        return str(record.position) if record.position else ""

    def render_age(self, record: Any) -> str:
        """Return how long it waits, runs, or ran."""
        if record.finished_at:
            return duration(record.finished_at - (record.started_at or record.created_at))
        return age(record.started_at or record.waits_since, clock.now())
