"""What is wrong between the platform and those who drive machines for it."""

from django.utils.translation import gettext_lazy as _

from gpuplatform.common.reason import ERROR, WARNING, Reason

AGENTS: dict[str, Reason] = {
    "AGENT_SILENT": Reason(
        WARNING,
        _(
            "Nothing was heard of the agent {agent} since {since}; taken for not ready: its"
            " {on_nodes}."
        ),
        _("Look after the agent; or forget it, if its machines are gone for good."),
    ),
    "NODES_WITHOUT_AGENT": Reason(
        WARNING,
        _(
            "Without an agent: {on_nodes} of {name} ({names}). What is placed there is started"
            " by nobody."
        ),
        _("Start an agent for them; or cordon them, if nothing should come there."),
    ),
    "STALE_EPOCH": Reason(
        ERROR,
        _("This is epoch {epoch} of the agent; the platform listens to epoch {current}."),
        _("Another one with this name has begun anew: stop one of them, or say hello again."),
    ),
    "SEQUENCE_GAP": Reason(
        ERROR,
        _("The next report has the number {expected}; this one has {found}."),
        _("Send the reports from that number on, or begin a new epoch."),
    ),
}
