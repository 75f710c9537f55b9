"""Where work goes: a queue that is not there, or takes nothing, or not from this namespace."""

from django.utils.translation import gettext_lazy as _

from gpuplatform.common.reason import ERROR, WARNING, Reason

ROUTES: dict[str, Reason] = {
    "QUEUE_NOT_FOUND": Reason(
        ERROR,
        _("The queue {queue} does not exist in namespace {namespace}; did you mean {nearest}?"),
        _("Name a queue that exists; queues are made by platform admins."),
        _("The queue {queue} does not exist in namespace {namespace}."),
    ),
    "QUEUE_NOT_FOUND:closed": Reason(
        ERROR,
        _("Work cannot name the cluster queue {queue} directly; did you mean {nearest}?"),
        _("Name a local queue of the workload's namespace."),
        _("Work cannot name the cluster queue {queue} directly."),
    ),
    "QUEUE_NOT_FOUND:cluster_queue": Reason(
        ERROR,
        _("There is no cluster queue {queue}; did you mean {nearest}?"),
        _("Name a queue that exists; queues are made by platform admins."),
        _("There is no cluster queue {queue}."),
    ),
    "QUEUE_CANNOT_ADMIT": Reason(
        WARNING, _("The queue {queue} admits nothing now ({cause}); the workload waits in it.")
    ),
    "NAMESPACE_NOT_ALLOWED": Reason(
        ERROR,
        _("{queue} does not admit work from namespace {namespace}."),
        _("Use a queue of this namespace, or ask an admin to allow the namespace."),
        _("The queue does not admit work from this namespace."),
    ),
}
