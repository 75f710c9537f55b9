"""What can never work in a workload or a price (``placement.md`` 3, names of the samples)."""

from django.utils.translation import gettext_lazy as _

from gpuplatform.common.reason import ERROR, INFO, WARNING, Reason

# About one workload.
WORKLOADS: dict[str, Reason] = {
    "NEVER_FITS_QUEUE": Reason(
        ERROR,
        _(
            "{queue} can never give {need}: its ceiling is {ceiling},"
            " which is {largest_gang} of {pods} pods."
        ),
        _("Ask for at most {ceiling}, or ask an admin for a higher limit."),
        _("{queue} can never give {need}: its ceiling is {ceiling}."),
    ),
    "NEVER_FITS_CLUSTER": Reason(
        ERROR,
        _("The nodes that suit it can never give {need}: together they have {have}."),
        _("Ask for at most {have}, or let it use other nodes as well."),
    ),
    "NEVER_FITS_TOPOLOGY": Reason(
        ERROR,
        _("{need} must stand together in one {level}; the roomiest holds {largest}."),
        _("Ask for a wider level, or for at most {largest}."),
    ),
    "NEVER_FITS_TOPOLOGY:Slices": Reason(
        ERROR,
        _(
            "Each slice of {slice_size} pods must stand in one {slice_level}: {slices} needed,"
            " there is room for {fits_slices}."
        ),
        _("Ask for smaller or fewer slices, or for a wider level."),
    ),
    "NEVER_FITS_TOPOLOGY:Group": Reason(
        ERROR,
        _("{group} must stand together in one {level}; the roomiest holds {largest} of {need}."),
        _("Ask for a wider level, or for fewer pods."),
    ),
    "NEVER_FITS_NODE": Reason(
        ERROR,
        _("One pod needs {need}; the largest node that suits it has {largest}."),
        _("Make the pods smaller."),
    ),
    "NEEDS_WHOLE_CLUSTER": Reason(
        WARNING,
        _("It needs {need}, which is everything there is: any other busy GPU keeps it waiting."),
        _("A smaller gang starts sooner."),
    ),
    "FLAVOR_MISMATCH": Reason(
        ERROR,
        _("Flavor {flavor} has {label}={has}; the pods ask for {label}={asks}."),
        _("Change the node selector, or use a queue with another flavor."),
        _("Flavor {flavor} does not suit the pods."),
    ),
    "FLAVOR_MISMATCH:FlavorNotFound": Reason(
        ERROR, _("The flavor {flavor} of the queue does not exist."), _("Create the flavor.")
    ),
    "FLAVOR_MISMATCH:NodeAffinity": Reason(
        ERROR,
        _("The labels of flavor {flavor} do not match the node affinity of the pods."),
        _("Change the affinity, or use a queue with another flavor."),
    ),
    "FLAVOR_MISMATCH:TopologyLevelNotFound": Reason(
        ERROR,
        _("The topology of flavor {flavor} has no level {level}."),
        _("Name a level of that topology."),
    ),
    "FLAVOR_MISMATCH:GroupFlavors": Reason(
        ERROR,
        _("{group} are one group, and there is no flavor that suits all of them."),
        _("Let them ask for the same kind of node, or take one out of the group."),
    ),
    "FLAVOR_MISMATCH:UndeclaredResource": Reason(
        ERROR,
        _("{queue} has no quota for {resource}, which the workload asks for."),
        _("Remove the request, or ask an admin to add the resource to the queue."),
    ),
    "TAINT_NOT_TOLERATED": Reason(
        ERROR,
        _("The nodes carry the taint {taint}, which the pods do not tolerate."),
        _("Add a toleration for {taint} to the pods or to the flavor."),
    ),
    "UNCOVERED_RESOURCE": Reason(
        ERROR,
        _("{queue} has no quota for {resource}, which {pod_set} asks for."),
        _("Remove the request, or ask an admin to add the resource to the queue."),
        _("{queue} has no quota for {resource}, which the workload asks for."),
    ),
    "PRIORITY_CLASS_NOT_FOUND": Reason(
        ERROR,
        _("The priority class {priority_class} does not exist."),
        _("Create it, or name one that exists; there is no silent priority 0."),
    ),
    "DUPLICATE_GANG": Reason(
        ERROR,
        _("{other} and {subject} both make a gang of the same pods; together they ask twice."),
        _("Keep one of the two."),
    ),
    "DEMAND_MISMATCH": Reason(
        WARNING,
        _("minResources leaves out {missing}, which the pods ask for too."),
        _("The pods' own requests are what is checked; list all of them."),
    ),
    "GANG_LARGER_THAN_POD_COUNT": Reason(
        ERROR,
        _("The gang starts with at least {min_member} pods, but has {pods}."),
        _("Submit the pods with it, or lower the minimum."),
    ),
    "ROLE_MINIMA_EXCEED_GANG": Reason(
        ERROR,
        _("The roles need at least {sum_of_minima} pods; the gang starts with {min_member}."),
        _("Raise the gang's minimum, or lower those of its roles."),
    ),
    "ROLE_NOT_FOUND": Reason(ERROR, _("There is no pod set {role} to set a minimum for.")),
    "ROLE_MINIMUM_ABOVE_COUNT": Reason(
        ERROR, _("Role {role} needs at least {minimum} pods, but has {pods}.")
    ),
    "UNKNOWN_TOPOLOGY_LEVEL": Reason(
        ERROR,
        _("There is no topology level {level}."),
        _("Name a level of a topology by its label, or by the label's last part."),
    ),
    "TOPOLOGY_LEVEL_MISSING": Reason(
        ERROR, _("The pods must stand together, but no level says how near."), _("Name a level.")
    ),
    "SLICE_WIDER_THAN_TOPOLOGY": Reason(
        ERROR,
        _("The slice level {level} is wider than the level of what the slice is a part of."),
        _("Name that level or a closer one."),
    ),
    "TOO_MANY_SLICE_LAYERS": Reason(
        ERROR, _("Slices of slices go {layers} deep; at most {limit} are read.")
    ),
    "SLICES_NOT_WHOLE": Reason(
        ERROR,
        _("{pods} pods of {pod_set} are not a whole number of slices of {slice_size}."),
        _("Let the slice size divide the number of pods, and the smallest number of them."),
    ),
    "SLICES_AT_ONE_LEVEL": Reason(
        ERROR,
        _("The slices that these are made of have the level {level} as well."),
        _("Ask for one of the two sizes, or for the inner slices at a closer level."),
    ),
    "SLICES_NOT_NESTED": Reason(
        ERROR,
        _("Slices of {outer} pods cannot be made of slices of {inner}."),
        _("Let the inner size divide the outer one."),
    ),
    "PARTITIONS_NOT_WHOLE": Reason(
        ERROR,
        _("{partitions} partitions of {slice_size} pods are not the {pods} replicas of the task."),
        _("Let totalPartitions times partitionSize be the replicas."),
    ),
    "GROUP_OF_ONE": Reason(
        ERROR,
        _("No other pod set is in the group {group}."),
        _("Name the group at each pod set that is to stand with the others."),
    ),
    "GROUP_TOPOLOGY_DIFFERS": Reason(
        ERROR,
        _("The pod sets of the group {group} must ask for the same domain."),
        _("Give each the same mode, required or preferred, and the same level."),
    ),
    "SUBGROUP_TOO_LARGE": Reason(
        ERROR, _("{needed_pods} pods in subgroups are more than the {pods} of {pod_set}.")
    ),
    "RESTART_WITHOUT_MIN_RUNTIME": Reason(
        WARNING,
        _("It restarts when evicted, and its queue promises no minimum run time."),
        _("Set a minimum run time on the queue, so that it is not evicted again and again."),
    ),
    "WOULD_BE_ADMITTED": Reason(INFO, _("Would be admitted now on {flavors}.")),
    "WOULD_BE_ADMITTED_BORROWING": Reason(
        INFO, _("Would be admitted now on {flavors}, borrowing {borrows}.")
    ),
    "WOULD_BE_ADMITTED_IN_PART": Reason(INFO, _("Would be admitted now on {terms}.")),
    "WOULD_RESERVE": Reason(
        INFO,
        _(
            "Quota would be reserved for it now on {terms}; it starts once these admission checks"
            " have said yes: {checks}."
        ),
    ),
    "WOULD_EVICT_AND_RESERVE": Reason(
        INFO,
        _(
            "Would evict {victims} and have quota reserved once they have stopped; it starts once"
            " these admission checks have said yes: {checks}."
        ),
    ),
    "WOULD_EVICT": Reason(INFO, _("Would evict {victims} and start once they have stopped.")),
    "WOULD_WAIT": Reason(INFO, _("Would wait: {why}")),
    "FORECAST_TOO_LARGE": Reason(
        INFO, _("So much waits already that only a cycle can tell what becomes of it.")
    ),
    "UNKNOWN_RESOURCE": Reason(
        WARNING,
        _("{resource} is not a resource that anything here offers; did you mean {nearest}?"),
        _("Write {nearest}."),
    ),
    "NODE_WITHOUT_LEVEL": Reason(
        ERROR,
        _("The node belongs to flavor {flavor}, but has no label {level} of its topology."),
        _("Give the node the label, so that it is known what it stands near to."),
    ),
    "NODES_OUTSIDE_TOPOLOGY": Reason(
        WARNING,
        _("{nodes} of flavor {flavor} lack labels of its topology: no gang is placed there."),
        _("Give the nodes the labels of all levels."),
    ),
    "ALLOCATABLE_ABOVE_CAPACITY": Reason(
        ERROR, _("The node cannot offer {amount}: it has {capacity}.")
    ),
    "REQUEST_ABOVE_LIMIT": Reason(ERROR, _("{path} asks for more {resource} than its limit.")),
    "RESERVED_RESOURCE": Reason(
        ERROR, _("{resource} is counted by the platform; pods cannot ask for it.")
    ),
    "NO_POD_SETS": Reason(ERROR, _("The workload has no pods.")),
    "TOO_MANY_POD_SETS": Reason(ERROR, _("{pod_sets} pod sets are more than {limit}.")),
    "POD_SET_TWICE": Reason(ERROR, _("Two pod sets are called {pod_set}.")),
    "POD_COUNT": Reason(ERROR, _("{pod_set} has {pods} pods; 1 to {limit} are possible.")),
    "MIN_COUNT_ABOVE_COUNT": Reason(
        ERROR, _("{pod_set} starts with at least {minimum} pods, but has {pods}.")
    ),
    "PARTIAL_AND_ELASTIC": Reason(
        ERROR,
        _("An elastic workload starts whole; {pod_set} cannot start with fewer pods as well."),
        _("Leave min_count out; it can be brought to another size at any time."),
    ),
    "NOT_ELASTIC": Reason(
        ERROR,
        _("{workload} was not submitted as elastic, so it keeps its size."),
        _("Submit it with elastic, and its pod sets can be brought to another size."),
    ),
    "NOT_RUNNING": Reason(ERROR, _("{workload} holds nothing now, so nothing of it can be over.")),
    "POD_SET_NOT_FOUND": Reason(ERROR, _("There is no pod set {pod_set}.")),
    "SURPLUS_REPLICAS": Reason(
        WARNING,
        _("{asked} replicas are asked for, and {surplus} more are live: {workloads}."),
        _("Nothing is cancelled by itself; cancel those that are not needed."),
    ),
    "name_taken": Reason(
        ERROR,
        _("A workload {name} is already there in {namespace} and has not finished."),
        _("Choose another name, or cancel the other one first."),
    ),
    "QUEUE_REQUIRED": Reason(
        ERROR,
        _("The workload names no queue; only a platform admin may run work outside every quota."),
        _("Name a queue of your team."),
    ),
    "NOT_YOUR_TEAM": Reason(
        ERROR, _("You may not submit work to {queue}."), _("Ask the team's lead to add you.")
    ),
    "NOT_ALLOWED": Reason(ERROR, _("You may not change {subject}."), _("Ask an admin.")),
}

# About prices.
PRICES: dict[str, Reason] = {
    "TOKEN_PRICE_ABOVE_IRON": Reason(
        WARNING,
        _("{model}: {price} per million tokens, while the iron costs {iron} ({times} times)."),
        _("Lower the price, or state the throughput it rests on."),
    ),
    "NODE_PRICE_COUNTED_TWICE": Reason(
        WARNING,
        _("The GPU price holds the whole node; CPU and RAM add {extra} per hour to {node}."),
        _("Set the prices of CPU and RAM to 0."),
    ),
    "TOKEN_PRICE_AMBIGUOUS": Reason(
        WARNING,
        _("{model} is declared {times} times with different prices; {price} is taken."),
        _("Give all deployments of a model the same price."),
    ),
    "TOKEN_PRICE_MISSING": Reason(
        INFO,
        _("{model} declares no price per token; what it costs is not known here."),
        _("Declare input_cost_per_token and output_cost_per_token, 0 where it is free."),
    ),
    "PRICE_NOT_USED": Reason(
        WARNING,
        _("{field} is a price that no bill here uses; it is not taken over."),
    ),
    "CUSTOM_PRICING_DISABLED": Reason(
        WARNING,
        _("Custom pricing is switched off, so OpenCost does not use these prices; none is taken."),
        _("Set customPricing.enabled to true."),
    ),
    # ---- findings of a bill (finops) ----------------------------------------------------------
    "unpriced": Reason(
        ERROR,
        _("{gpu_hours} GPU-hours have no price and cost nothing on the bills."),
        _("Set a price that is in force from the beginning of the month."),
    ),
    "missing_coverage": Reason(
        ERROR,
        _("{hours} hours of a source were not loaded."),
        _("Load the missing days of the source, or accept them as a gap with a reason."),
    ),
    "source_currency": Reason(
        ERROR,
        _("A source counts in another currency than the bills; nothing of it is on them."),
        _("Declare the currency that its numbers are really in."),
    ),
    "hours_differ": Reason(
        WARNING,
        _("Our metering has {scheduler} GPU-hours, OpenCost has {opencost}."),
        _("Look at work outside queues, and at days that OpenCost saw in part."),
    ),
    "zero_spend": Reason(
        WARNING,
        _("{rows} requests with {tokens} tokens were logged at no cost; {amount} is billed."),
        _("Their cost is worked out anew from tokens and price."),
    ),
    "no_price": Reason(
        WARNING,
        _("{rows} requests with {tokens} tokens have no cost and no price."),
        _("Set the price of a million tokens of the model."),
    ),
    "spend_mismatch": Reason(
        WARNING,
        _("Requests were logged at {spend}; at the declared price they cost {listed}."),
        _("Compare the price that LiteLLM is configured with."),
    ),
    "unknown_team": Reason(
        WARNING,
        _("{rows} requests with {tokens} tokens come from a team that nobody has assigned."),
        _("Assign the team of LiteLLM to a team."),
    ),
    "unmapped_model": Reason(
        WARNING,
        _("{rows} requests with {tokens} tokens went to a model without a deployment."),
        _("Say which namespace serves the model, or that it is external."),
    ),
    "utc_day_rows": Reason(
        WARNING,
        _("Some tokens are known by the day of UTC only; days of bills begin elsewhere."),
    ),
    "zero_weights": Reason(
        INFO,
        _("A cost that is shared by use had no use to go by, and is shared in equal parts."),
    ),
    "drift": Reason(
        WARNING,
        _("Tokens were priced at {token_cost}; their iron costs {iron}."),
        _("Look at the price of tokens, at how busy the deployment is, and at who uses it."),
    ),
    "price_anomaly": Reason(
        ERROR,
        _("A machine was counted at {resolved} an hour, and {declared} is declared."),
        _("Compare the price list of the source with the prices here."),
    ),
    "over_allocation": Reason(
        WARNING,
        _("More GPU-hours were used than were there, worth {amount}."),
        _("Compare the inventory of nodes with what ran on them."),
    ),
    "unallocated": Reason(
        WARNING,
        _("Use worth {amount} has no owner."),
        _("Give its namespaces or queues a team."),
    ),
    "sums_of_litellm": Reason(
        ERROR,
        _("LiteLLM's requests come to {spend}, its own daily sums to {sums}."),
        _("The requests are billed; find out which of both has lost something."),
    ),
    "no_bills": Reason(
        ERROR, _("The month has no bills."), _("Wait until its draft has been made.")
    ),
    "no_cost_center": Reason(
        ERROR,
        _("{team} is charged and has no cost centre to debit."),
        _("Give the team a cost centre, or let it be for information only."),
    ),
    "sums_differ": Reason(
        ERROR,
        _("The bills add up to {billed}, the month costs {cost}."),
        _("This is a fault of the platform: do not close the month."),
    ),
    "facts_refused": Reason(
        ERROR,
        _("The month cannot be billed anew, metering contradicts itself: {field} {problem}."),
        _("Correct the metering rows; until then the last draft stands."),
    ),
    "overcommitted": Reason(
        INFO,
        _("Quotas promise {gpu_hours} GPU-hours more than were there."),
        _("Compare the sum of nominal quotas with the capacity of the flavor."),
    ),
    "borrow_limit_exceeded": Reason(
        WARNING,
        _("{gpu_hours} GPU-hours were borrowed beyond the queue's borrowing limit."),
        _("A limit that was cut under running work is a debt until that work ends."),
    ),
}
