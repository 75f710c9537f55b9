"""Why work waits, or stopped: summary words, blockers, evictions, queues that cannot admit."""

from django.utils.translation import gettext_lazy as _

from gpuplatform.common.reason import ERROR, INFO, WARNING, Reason

# One word of summary (``admission.md`` K82).
PENDING: dict[str, Reason] = {
    "PendingEvaluation": Reason(INFO, _("Waiting for the next scheduling cycle.")),
    "NoMatchingFlavor": Reason(
        ERROR,
        _("No flavor of the queue suits this workload."),
        _("Check the node selector, the tolerations and the resources asked for."),
    ),
    "ExceedsMaxQuota": Reason(
        ERROR,
        _("The queue can never give this much, however long the workload waits."),
        _("Ask for less, or ask an admin for a higher quota or limit."),
    ),
    "WaitingForQuota": Reason(WARNING, _("Waiting for quota to become free.")),
    "TopologyPlacementFailed": Reason(
        WARNING, _("There is quota, but no nodes on which the whole gang can stand now.")
    ),
    "WaitingForPreemptedWorkloads": Reason(
        INFO, _("Room is being made: the workloads that give way are still stopping.")
    ),
    "Misconfigured": Reason(
        ERROR, _("Something that this workload needs is missing or not allowed.")
    ),
    "OnHold": Reason(INFO, _("The queue is on hold and takes nothing new.")),
}

# What exactly stands in the way (``product.md`` 1.3).
BLOCKERS: dict[str, Reason] = {
    "QUEUE_STOPPED": Reason(
        WARNING,
        _("{where} is stopped and admits nothing new."),
        _("Ask an admin to resume it."),
        _("Its queue is stopped and admits nothing new."),
    ),
    "QUEUE_MISSING": Reason(
        ERROR,
        _("The queue that it names does not exist in its namespace."),
        _("Create the local queue, or name one that exists."),
    ),
    "QUEUE_INACTIVE": Reason(
        ERROR, _("{where} cannot admit anything now ({cause})."), _("Ask an admin to complete it.")
    ),
    "BEHIND_IN_QUEUE": Reason(
        INFO,
        _("{ahead} ahead of it in {where}."),
        _(
            "{where} takes its work strictly in order: it is looked at once those ahead have"
            " started; a higher priority goes before them."
        ),
    ),
    "QUOTA_NOMINAL": Reason(
        WARNING,
        _("Needs {needed} of {flavor}; the nominal quota of {where} has {available} left."),
        _("It fits once {missing} of what {where} holds come free, or with a higher quota."),
    ),
    "QUOTA_NOMINAL:Kept": Reason(
        WARNING,
        _(
            "Needs {needed} of {flavor}; the nominal quota of {where} has {available} left for it:"
            " {kept} more are kept for work that goes first."
        ),
        _(
            "It fits once {missing} of what {where} holds, or keeps for that work, come free, or"
            " with a higher quota."
        ),
    ),
    "QUOTA_NOMINAL:TooSmall": Reason(
        WARNING,
        _("Needs {needed} of {flavor}; the nominal quota of {where} has {available} left."),
        _("That quota is smaller than it needs: it fits with a loan, or with a higher quota."),
    ),
    "QUOTA_NOMINAL:TooSmallKept": Reason(
        WARNING,
        _(
            "Needs {needed} of {flavor}; the nominal quota of {where} has {available} left for it:"
            " {kept} more are kept for work that goes first."
        ),
        _("That quota is smaller than it needs: it fits with a loan, or with a higher quota."),
    ),
    "BORROW_LIMIT": Reason(
        WARNING,
        _("Needs {needed} of {flavor}; with what {where} may still borrow it gets {available}."),
        _("Wait until the queue's own work ends, or ask for a higher borrowing limit."),
    ),
    "BORROW_LIMIT:Kept": Reason(
        WARNING,
        _(
            "Needs {needed} of {flavor}; with what {where} may still borrow it gets {available}:"
            " {kept} more are kept for work that goes first."
        ),
        _("Wait until the work that goes first has ended or is withdrawn."),
    ),
    "LENDER_BUSY": Reason(
        WARNING,
        _(
            "Needs {needed} of {flavor}; the lenders in {where} use their own and have quota for"
            " {available} to lend."
        ),
        _("It fits once {missing} more come free in {where}: when work of the lenders ends."),
    ),
    "LENDER_BUSY:Kept": Reason(
        WARNING,
        _(
            "Needs {needed} of {flavor}; the lenders in {where} use their own and have quota for"
            " {available} to lend to it: {kept} more are kept for work that goes first."
        ),
        _("It fits once {missing} more come free in {where}: when work of the lenders ends."),
    ),
    "COHORT_EXHAUSTED": Reason(
        WARNING,
        _("Needs {needed} of {flavor}; the cohort {where} has {available} of quota left."),
        _("It fits once {missing} more come free in {where}: when work there ends or gives way."),
    ),
    "COHORT_EXHAUSTED:Kept": Reason(
        WARNING,
        _(
            "Needs {needed} of {flavor}; the cohort {where} has {available} of quota left for it:"
            " {kept} more are kept for work that goes first."
        ),
        _("It fits once {missing} more come free in {where}: when work there ends or gives way."),
    ),
    "FLAVOR_TOO_SMALL": Reason(
        INFO,
        _("{flavor} will not do: {where} can never give {needed} of it, at most {available}."),
    ),
    "NOMINAL_FIRST": Reason(
        INFO,
        _("In {where} {rival} goes first: it asks for its own quota, and {own} would borrow."),
        _("It fits once more comes free in {where} than the owners want back."),
    ),
    "LARGER_SHARE": Reason(
        INFO,
        _(
            "In {where} {rival} goes first: with what it asks for it borrows {their_share} % of"
            " what there is, by weight; {own} would borrow {our_share} %."
        ),
        _("Its turn comes when {own} borrows less than the others in {where}, by weight."),
    ),
    "USED_MORE": Reason(
        INFO,
        _(
            "In {where} {rival} goes first: of late it has used {their_hours} GPU-hours with"
            " {their_gpus} promised; {own} has used {our_hours} with {our_gpus} promised."
        ),
        _("Past use fades: its turn comes when {own} has used less than {rival}, by promise."),
    ),
    "NOMINAL_FIRST:Started": Reason(
        INFO,
        _("In {where} {rival} went first: it asked for its own quota, and {own} would borrow."),
        _("It fits once more comes free in {where} than the owners want back."),
    ),
    "LARGER_SHARE:Started": Reason(
        INFO,
        _(
            "In {where} {rival} went first: with what it asked for it borrows {their_share} % of"
            " what there is, by weight; {own} would borrow {our_share} %."
        ),
        _("Its turn comes when {own} borrows less than the others in {where}, by weight."),
    ),
    "USED_MORE:Started": Reason(
        INFO,
        _(
            "In {where} {rival} went first: of late it had used {their_hours} GPU-hours with"
            " {their_gpus} promised; {own} had used {our_hours} with {our_gpus} promised."
        ),
        _("Past use fades: its turn comes when {own} has used less than {rival}, by promise."),
    ),
    "TAINT": Reason(
        ERROR,
        _("The nodes of {where} carry a taint that the pods do not tolerate ({taint})."),
        _("Add a toleration for {taint} to the pods or to the flavor."),
    ),
    "GANG_NO_FIT": Reason(
        WARNING,
        _("The gang needs {needed} at once; usable {where} nodes have room for {available}."),
        _("It fits once {missing} more come free at the same time, or a node comes back."),
        _("The gang needs {needed} at once; usable nodes have room for {available}."),
    ),
    "TOPOLOGY_NO_DOMAIN": Reason(
        WARNING,
        _("The gang needs {needed} together in one {where}; the roomiest can take {available}."),
        _(
            "It fits once one {where} has room for all of its {pods} pods, not for {fits}; as"
            " preferred, instead of required, it may stand in several."
        ),
    ),
    "TOPOLOGY_NO_DOMAIN:Slices": Reason(
        WARNING,
        _(
            "The gang needs {slices} slices of {slice_size} pods, each in one {slice_level};"
            " there is room for {fits_slices}."
        ),
        _(
            "It fits once a {slice_level} has room for a whole slice more; room that is scattered"
            " over several does not help."
        ),
    ),
    "TOPOLOGY_NO_DOMAIN:Group": Reason(
        WARNING,
        _("{group} need {needed} together in one {where}; the roomiest can take {available}."),
        _("It fits once one {where} has room for all of their {pods} pods, not for {fits}."),
    ),
    "FRAGMENTED": Reason(
        WARNING,
        _("{available} are free, but scattered: no set of nodes has room for pods of this size."),
        _(
            "There is room for {fits} of its {pods} pods: it fits once others end on the same"
            " nodes, or with fewer GPUs in each pod."
        ),
    ),
    "IMPOSSIBLE": Reason(
        ERROR, _("This can never run as things are."), _("Ask for less, or change the promises.")
    ),
    "WAITING_PREEMPTION": Reason(
        INFO, _("Room is being made: workloads that give way are still stopping.")
    ),
    "CLAIMED": Reason(
        WARNING,
        _("What is free is kept for a workload that room was made for."),
    ),
    "MINIMUM_RUNTIME": Reason(
        WARNING,
        _(
            "Running workloads could give way to it, but {victims} of those that it needs may not"
            " be stopped yet: their queue grants them a minimum runtime."
        ),
        _("It is looked at again at {until}, when enough of them may be stopped."),
    ),
    "RESERVED": Reason(
        INFO,
        _("What is free is promised to a gang in front of it, which starts by {until}."),
        _("Work that says how long it runs, and ends before, may start in the meantime."),
        _("What is free is promised to a gang in front of it."),
    ),
    "HELD": Reason(
        INFO,
        _("Nodes that empty are held for a gang that has waited too long."),
        _("It is looked at again once that gang has started."),
    ),
    "PROMISED": Reason(
        INFO,
        _("Room on {on_nodes} is promised to it: it starts by {until}."),
        _(
            "The promise holds as long as running work ends when it said that it would. Higher"
            " priority goes before it, and so do owners within their own quota where it would take"
            " more than its queue's."
        ),
        _("Room is promised to it."),
    ),
    "GATHERING": Reason(
        INFO,
        _("Nodes that empty are held for it until it has enough."),
        _("As work has run up to now, that is expected at {until}."),
    ),
}

# Why an admission was lost (``admission.md`` 2.1, 2.3).
EVICTIONS: dict[str, Reason] = {
    "Preempted": Reason(WARNING, _("Gave way to a workload with a better right.")),
    "Consolidated": Reason(
        WARNING,
        _("It moves so that a larger gang fits."),
        _("Its new nodes are kept for it: it starts again there as soon as it has left."),
    ),
    "NodeFailures": Reason(WARNING, _("A node under it failed.")),
    "ClusterQueueStopped": Reason(WARNING, _("Its cluster queue was drained.")),
    "LocalQueueStopped": Reason(WARNING, _("Its local queue was drained.")),
    "Outgrown": Reason(
        WARNING, _("Pods that had ended came back, and others hold their quota by now.")
    ),
    "Deactivated": Reason(WARNING, _("It was deactivated.")),
    "ScaledDown": Reason(INFO, _("It was brought to a smaller size.")),
    "InClusterQueue": Reason(INFO, _("A workload of higher priority in the same queue.")),
    "InCohortReclamation": Reason(INFO, _("The owner took its lent quota back.")),
    "InCohortFairSharing": Reason(
        INFO,
        _(
            "Fair sharing: who gives way goes by what is borrowed now, by weight, and not by past"
            " use. With its request the other side borrows {mine} % of what there is; this side"
            " borrowed {before} %, and {after} % without this."
        ),
        "",
        _("Fair sharing: the other side borrows less of what there is now, by weight."),
    ),
    "InCohortReclaimWhileBorrowing": Reason(
        INFO, _("A borrower of higher priority took borrowed quota.")
    ),
}

# Why a ClusterQueue cannot admit (``admission.md`` K16).
INACTIVE_QUEUES: dict[str, Reason] = {
    "FlavorNotFound": Reason(
        WARNING,
        _("{queue} is kept and admits nothing: its flavor {flavor} does not exist yet."),
        _("Create the flavor."),
    ),
    "TopologyNotFound": Reason(
        WARNING,
        _("{queue} is kept and admits nothing: its flavor's topology {topology} does not exist."),
        _("Create the topology."),
    ),
    "CohortCycle": Reason(
        WARNING, _("{queue} admits nothing: its cohorts form a circle."), _("Break the circle.")
    ),
    "ClusterQueueNotFound": Reason(
        WARNING,
        _("{queue} is kept and admits nothing: the cluster queue {target} does not exist yet."),
        _("Create the cluster queue."),
    ),
    "Stopped": Reason(INFO, _("{queue} is stopped.")),
    "Terminating": Reason(INFO, _("{queue} is being deleted and accepts nothing.")),
}
