"""What is promised, against what there is; and what an edit of promises or nodes means."""

from django.utils.translation import gettext_lazy as _

from gpuplatform.common.reason import ERROR, INFO, WARNING, Reason

PROMISES: dict[str, Reason] = {
    "GUARANTEES_EXCEED_CAPACITY": Reason(
        WARNING,
        _(
            "Of {name} queues and cohorts are promised {sum} together; healthy nodes have"
            " {capacity}."
        ),
        _("Lower the promises, or add nodes."),
    ),
    "GUARANTEES_EXCEED_CAPACITY:OutOfService": Reason(
        WARNING,
        _(
            "Of {name} queues and cohorts are promised {sum} together; healthy nodes have"
            " {capacity}, and {out} more are on nodes that take no pods: {nodes}."
        ),
        _("Bring {nodes} back into service; else lower the promises, or add nodes."),
    ),
    "STRANDED_CAPACITY": Reason(
        WARNING,
        _("{amount} of {name} can be used by nobody: no queue's ceiling reaches them."),
        _("Raise a quota or a limit."),
    ),
    "LENDER_CANNOT_RECLAIM": Reason(
        WARNING,
        _("{queues} may lend quota, but not take it back: the owner waits until borrowers end."),
        _("Set reclaimWithinCohort to LowerPriority or Any."),
    ),
    "DESERVED_BELOW_GUARANTEE": Reason(
        ERROR,
        _("Deserved {deserved} of {resource} is below the guarantee {guarantee}."),
        _("Raise deserved, or lower the guarantee."),
    ),
    "DESERVED_DEFAULTED": Reason(
        INFO, _("Deserved is absent and was set to the guarantee: {amount}.")
    ),
    "GUARANTEE_ABOVE_CAPABILITY": Reason(
        ERROR,
        _("The guarantee {guarantee} of {resource} is above the capability {capability}."),
        _("Lower the guarantee, or raise the capability."),
    ),
    "WORK_BECOMES_IMPOSSIBLE": Reason(
        WARNING,
        _("With this, {workload} can never run: {why}"),
        _("Tell its owner, or keep the old value."),
    ),
    "MORE_WORK_BECOMES_IMPOSSIBLE": Reason(
        WARNING,
        _("{count} more pending workloads can never run with this."),
        _("Tell their owners, or keep the old value."),
    ),
    "BORROW_WITHIN_COHORT_UNUSED": Reason(
        INFO,
        _(
            "{queue} may evict others while it borrows; in a tree that shares this is not"
            " looked at."
        ),
        _("Evicting goes by share there; set it to never."),
    ),
    "WORK_BECOMES_POSSIBLE": Reason(
        INFO, _("{workload} could never run; with this it can, once there is room.")
    ),
    "ALERT_CLEARS": Reason(INFO, _("With this it is no longer so: {why}")),
    "ALERT_STANDS": Reason(WARNING, _("It stands already, and not by this: {why}")),
    "EDIT_BELOW_USE": Reason(
        WARNING,
        _(
            "{queue} holds {amount} of {flavor}; with this {promised} are its own. What is above"
            " that is on loan, and may be taken back."
        ),
    ),
    "PREEMPTION_WITHOUT_CHECKPOINT": Reason(
        WARNING,
        _(
            "By this ({because}) running work without a recent checkpoint may be evicted:"
            " {count} in all, {gpu_hours} GPU-hours at risk: {workloads}."
        ),
        _("Have them save their progress first, or grant a minimum run time."),
    ),
    "EDIT_LEAVES_DEBT": Reason(
        WARNING,
        _(
            "{queue} holds {amount} of {flavor}, {over} above its ceiling of {ceiling} with this:"
            " nothing is evicted for it, and nothing new starts there until that has ended."
        ),
    ),
    "EDIT_STARTS": Reason(INFO, _("By this edit the next cycle starts {count}: {names}.")),
    "EDIT_KEEPS_WAITING": Reason(
        WARNING, _("Without this edit {count} would start in the next cycle: {names}.")
    ),
    "EDIT_EVICTS": Reason(
        WARNING,
        _(
            "By this edit the next cycle evicts {count} for {preemptors}: {names}."
            " {gpu_hours} GPU-hours of work are lost."
        ),
        _("Tell their owners, or wait until they have ended."),
        _("By this edit the next cycle evicts {count}: {names}."),
    ),
    "EDIT_EVICTS:Nobody": Reason(
        WARNING,
        _(
            "By this edit the next cycle evicts {count}: {names}."
            " {gpu_hours} GPU-hours of work are lost."
        ),
        _("Tell their owners, or wait until they have ended."),
    ),
    "EDIT_SHRINKS": Reason(
        WARNING,
        _(
            "By this edit the next cycle takes {pods} pods above their minimum from {count}"
            " running gangs for {preemptors}: {names}. {gpu_hours} GPU-hours of work are lost."
        ),
        _("They run on without these pods, and grow again when there is room."),
        _("By this edit the next cycle takes pods from {count} running gangs: {names}."),
    ),
    "EDIT_MOVES": Reason(
        WARNING,
        _(
            "By this edit the next cycle moves {count} to other nodes for {preemptors}: {names}."
            " {gpu_hours} GPU-hours of work are lost."
        ),
        _("They start again at once; whoever has saved its progress loses less."),
        _("By this edit the next cycle moves {count} to other nodes: {names}."),
    ),
    "REMOVAL_EVICTS": Reason(
        WARNING,
        _(
            "{count} with pods on {name} lose them: {names}. A gang that cannot go on without them"
            " is evicted after its grace; up to {gpu_hours} GPU-hours of work are lost."
        ),
        _("Cordon the node and wait until they have ended."),
    ),
    "DRAIN_MOVES": Reason(
        WARNING,
        _(
            "{count} with pods on {name} go elsewhere where there is room, and wait again where"
            " there is none: {names}. Up to {gpu_hours} GPU-hours of work are lost, worth {cost}"
            " {currency}."
        ),
        _("Cordon the node instead, and wait until they have ended or saved their progress."),
        _(
            "{count} with pods on {name} go elsewhere where there is room, and wait again where"
            " there is none: {names}. Up to {gpu_hours} GPU-hours of work are lost."
        ),
    ),
    "EDIT_SPARES": Reason(
        INFO, _("Without this edit {count} would be evicted in the next cycle: {names}.")
    ),
    "EDIT_CUTS_LOAN": Reason(
        WARNING,
        _("By this edit {queue} borrows {borrowed_after} of {flavor}, not {borrowed_before}."),
    ),
    "EDIT_GIVES_LOAN": Reason(
        INFO,
        _("By this edit {queue} borrows {borrowed_after} of {flavor}, not {borrowed_before}."),
    ),
    "EDIT_TOO_LARGE_TO_COMPARE": Reason(
        INFO, _("With {count} workloads only the next cycle can tell who starts and who goes.")
    ),
    # Amounts of several queues at once: a replay, a request, a file.
    "QUOTA_NO_QUEUE": Reason(ERROR, _("There is no queue {queue}.")),
    "QUOTA_NO_CELL": Reason(
        ERROR,
        _("{queue} is promised no {resource} of {flavor}, so no amount can be changed there."),
        _("Edit the queue to promise it another flavor or resource."),
    ),
    "QUOTA_TWICE": Reason(ERROR, _("{queue}, {flavor}, {resource} stands twice.")),
    # Requests of quota.
    "REQUEST_WHY": Reason(ERROR, _("A reason of at least {least} characters is needed.")),
    "REQUEST_OVER_BEFORE": Reason(ERROR, _("The day on which it ends must not be over.")),
    "REQUEST_EMPTY": Reason(ERROR, _("Nothing differs from how it stands.")),
    "REQUEST_DECIDED": Reason(ERROR, _("Somebody has decided on this request already.")),
    "REQUEST_LENDER_SHORT": Reason(
        ERROR,
        _("{queue} is promised {have} of {flavor}, and {need} would be taken from it."),
        _("Name another lender, or none."),
    ),
}
