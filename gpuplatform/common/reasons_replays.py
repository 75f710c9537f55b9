"""Why past work is not replayed, or an operation is not done, or not to the end."""

from django.utils.translation import gettext_lazy as _

from gpuplatform.common.reason import ERROR, Reason

REPLAYS: dict[str, Reason] = {
    "REPLAY_WINDOW": Reason(
        ERROR,
        _("A replay takes a window of whole days that has ended, of at most {most} days."),
        _("Choose a beginning before the end, and an end before today."),
    ),
    "REPLAY_TOO_LARGE": Reason(
        ERROR,
        _("{count} workloads waited or ran in this window; at most {most} are replayed."),
        _("Choose a shorter window, or export the trace and replay it on the command line."),
    ),
    "REPLAY_NO_WORK": Reason(ERROR, _("No work with GPUs waited or ran in this window.")),
    "REPLAY_BUSY": Reason(
        ERROR,
        _("{count} replays wait or run already."),
        _("Wait for one of them to end, or cancel one."),
    ),
    "REPLAY_LOST": Reason(
        ERROR,
        _("The worker that replayed it was lost {count} times."),
        _("Ask again with a shorter window."),
    ),
    "REPLAY_FAILED": Reason(
        ERROR, _("It broke off: {problem}."), _("The log of the worker says where.")
    ),
}

OPERATIONS: dict[str, Reason] = {
    "OPERATIONS_BUSY": Reason(
        ERROR,
        _("{count} of your operations wait or run already."),
        _("Wait for one of them to end, or cancel one."),
    ),
    "OPERATION_LOST": Reason(
        ERROR,
        _("The worker that did it was lost {count} times."),
        _("Ask again for less at once."),
    ),
    "OPERATION_FAILED": Reason(
        ERROR, _("It broke off: {problem}."), _("The log of the worker says where.")
    ),
    "OPERATION_TOO_LARGE": Reason(
        ERROR,
        _("The answer has {bytes} bytes; at most {most} are kept."),
        _("Ask for less at once, or for the same without waiting for it."),
    ),
    "OPERATION_TOKEN_GONE": Reason(
        ERROR, _("The token that asked has expired or was revoked before it was done.")
    ),
}
