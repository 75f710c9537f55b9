"""What happens in a workload's life beside its admission: rests, gates, members, limits."""

from django.utils.translation import gettext_lazy as _

from gpuplatform.common.reason import ERROR, INFO, WARNING, Reason

# Why it waits.
RESTS: dict[str, Reason] = {
    "AdmissionGated": Reason(INFO, _("It waits until somebody opens its gate.")),
    "UnsatisfiedAdmissionChecks": Reason(
        INFO, _("Quota and nodes are kept for it; an admission check has not agreed yet.")
    ),
    "BackingOff": Reason(INFO, _("It rests before it is tried again.")),
    "GATED": Reason(
        INFO, _("It waits until somebody opens its gate."), _("Open it on the workload's page.")
    ),
    "BACKOFF": Reason(
        INFO,
        _("It was sent back and rests until {until}."),
        _("It is looked at again then, without anybody's help."),
        _("It was sent back and rests before it is tried again."),
    ),
    "ADMISSION_CHECK": Reason(
        INFO,
        _("The admission check {where} has not answered yet; quota and nodes are kept for it."),
        _("It answers by itself: what it goes by stands on the page of admission checks."),
    ),
    "ADMISSION_CHECK:Manual": Reason(
        INFO,
        _("The admission check {where} waits for a person; quota and nodes are kept for it."),
        _("Ask a platform admin to answer it: on this workload's page, or over REST."),
    ),
    "BUDGET_BLOCK": Reason(
        WARNING,
        _("A hard budget of its team is gone; its next window begins at {until}."),
        _("It is looked at again then, or as soon as the budget has room: raise it, or wait."),
        _("A hard budget of its team is gone."),
    ),
}

# Why it lost its admission, was restarted, ended or was deactivated.
ENDS: dict[str, Reason] = {
    "PodsReadyTimeout": Reason(
        WARNING,
        _("Not all of its pods were ready within {waited_s}; it rests {rests_s}."),
        _("Look why a pod does not start: image, volume, or the node itself."),
        _("Not all of its pods were ready in time."),
    ),
    "AdmissionCheck": Reason(
        WARNING,
        _("The check {check} asks to try again in {rests_s}."),
        "",
        _("An admission check asks to try again later."),
    ),
    "AdmissionCheckRejected": Reason(
        ERROR,
        _("The check {check} has rejected it."),
        _("Reactivate it once the cause is gone."),
        _("An admission check has rejected it."),
    ),
    "MemberFailed": Reason(
        WARNING,
        _("A pod of {pod_set} on {node} failed."),
        "",
        _("One of its pods failed."),
    ),
    "RetryLimitExceeded": Reason(
        ERROR,
        _("One of its pods failed again after {retries} restarts."),
        "",
        _("One of its pods failed once too often."),
    ),
    "MembersOver": Reason(
        INFO, _("All its pods are over: {pods} of {of_pods} succeeded."), "", _("All pods ended.")
    ),
    "EnoughSucceeded": Reason(
        INFO, _("{pods} of its pods succeeded, which is enough."), "", _("Enough pods succeeded.")
    ),
    "AbortedByPolicy": Reason(
        WARNING,
        _("Its own policy AbortJob stops it until somebody reactivates it."),
    ),
    "TerminatedByPolicy": Reason(ERROR, _("Its own policy TerminateJob ended it.")),
    "CompletedByPolicy": Reason(INFO, _("Its own policy CompleteJob ended it.")),
    "MaximumExecutionTimeExceeded": Reason(
        ERROR,
        _("It has run for the {limit_s} that it may run in all."),
        _("Submit it with a longer maximum execution time, or reactivate it."),
        _("It has run for as long as it may."),
    ),
    "RequeuingLimitExceeded": Reason(
        ERROR,
        _("Its pods were not ready in time, {requeues} times before; it is not tried again."),
        _("Look why a pod does not start, and reactivate it."),
        _("Its pods were not ready in time, once too often."),
    ),
    "UserRequest": Reason(INFO, _("By request.")),
}

# What cannot be asked for.
REFUSED: dict[str, Reason] = {
    "PRIORITY_ABOVE_LIMIT": Reason(
        ERROR,
        _("The priority {priority} is above {limit}, up to which leads and members may go."),
        _("Name a priority class, ask for at most {limit}, or ask a platform admin."),
    ),
    "POLICY_EVENT": Reason(
        ERROR,
        _("The event {event} of a policy is not followed here; known are {allowed}."),
        _("Leave the policy out: one that is kept and not followed would mislead."),
    ),
    "POLICY_ACTION": Reason(
        ERROR,
        _("The action {action} of a policy is not taken here; known are {allowed}."),
        _("Name an action that is about the whole job."),
    ),
    "POLICY_EVENT_OR_CODE": Reason(
        ERROR, _("A policy names either events or one exit code."), _("Leave one of them out.")
    ),
    "POLICY_EXIT_CODE_ZERO": Reason(ERROR, _("The exit code 0 is success and no failure.")),
    "POLICY_TWICE": Reason(ERROR, _("Two policies answer {event}."), _("Leave one of them out.")),
    "POLICY_ANY_ALONE": Reason(
        ERROR, _("A policy for every event leaves nothing to others."), _("Let it stand alone.")
    ),
    "TOO_MANY_GATES": Reason(ERROR, _("It has {gates} gates; at most {limit} are possible.")),
    "GATE_ADDED": Reason(ERROR, _("A gate can be opened and not be added: {gate}.")),
    "MIN_SUCCESS_ABOVE_COUNT": Reason(
        ERROR, _("{min_success} pods must succeed, and there are {pods}.")
    ),
    "NOT_ACTIVE": Reason(ERROR, _("{workload} has ended and can be neither stopped nor resumed.")),
    "NO_SUCH_CHECK": Reason(ERROR, _("No check {check} is asked about this workload.")),
    "UNKNOWN_CHECK_KIND": Reason(ERROR, _("There is no kind of check {kind}; known are {known}.")),
    "CHECK_BY_PEOPLE": Reason(
        WARNING,
        _("Nothing here is {controller}: a person has to answer the admission check {check}."),
        _("Checks that the platform answers are gpuplatform.io/budget and the like."),
    ),
    "CHECK_MADE": Reason(
        WARNING,
        _("There was no admission check {check}; it is one now that a person has to answer."),
        _("If something else should answer it, edit the check."),
    ),
    "CHECK_FOR_ALL_FLAVORS": Reason(
        WARNING,
        _("The admission check {check} is asked whichever flavor work gets, not of some only."),
    ),
    "CHECK_NEEDS_NO_ANSWER": Reason(
        ERROR, _("The check {check} is answered by the platform, not by people.")
    ),
}
# What an admin should look at.
ALERTS: dict[str, Reason] = {
    "DRIFT": Reason(
        WARNING,
        _(
            "Of {name} {promised} are promised and {placeable} can be placed: of {declared} that"
            " are declared, {away} are on nodes that are not ready, {cordoned} on cordoned ones,"
            " and pods outside every queue hold {unmanaged}."
        ),
        _("Bring nodes back, or promise less."),
        _("More of {name} is promised than can be placed."),
    ),
    "UNMANAGED_USE": Reason(
        WARNING,
        _("Pods outside every queue hold {unmanaged} of {name}."),
        _("Give them a queue, or leave their GPUs out of what is promised."),
    ),
    "NODES_NOT_READY": Reason(
        WARNING,
        _("Not ready: {on_nodes} of {name} ({names})."),
        _("What runs there is moved or evicted once its grace has passed."),
    ),
    "NODE_OVERCOMMITTED": Reason(
        ERROR,
        _("More is placed on {name} than it has any more: {amount}, and it has {have}."),
        _("Drain it, or give it back what it had."),
    ),
}
LIFE = {**RESTS, **ENDS, **REFUSED, **ALERTS}
