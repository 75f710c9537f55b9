"""What is wrong or doubtful about the text that somebody sent."""

from django.utils.translation import gettext_lazy as _

from gpuplatform.common.reason import ERROR, INFO, WARNING, Reason

# The text cannot be read: nothing of the submission is taken.
UNREADABLE: dict[str, Reason] = {
    "BAD_SYNTAX": Reason(ERROR, _("Line {line} is not valid YAML or JSON: {problem}.")),
    "BAD_CSV": Reason(
        ERROR,
        _("This is not such a CSV file: {problem}."),
        _("Download the file here, change the amounts in it, and send it back."),
    ),
    "TOO_LARGE": Reason(
        ERROR,
        _("The submission is larger than {limit} bytes."),
        _("Send it in several parts."),
    ),
    "TOO_MANY_DOCUMENTS": Reason(
        ERROR, _("The submission has more than {limit} documents."), _("Send it in several parts.")
    ),
    "EMPTY_SUBMISSION": Reason(ERROR, _("The submission holds no document.")),
    "NOT_A_MAPPING": Reason(ERROR, _("The document at line {line} is not a mapping of fields.")),
    "TOO_DEEP": Reason(ERROR, _("The document is nested deeper than {limit} levels.")),
    "ANCHOR": Reason(
        ERROR,
        _("Line {line} uses a YAML anchor or alias; a document must show what it means."),
        _("Write the repeated part out."),
    ),
    "TAG": Reason(ERROR, _("Line {line} uses a YAML tag.")),
    "BAD_KEY": Reason(ERROR, _("Line {line} uses something other than text as a key.")),
    "DUPLICATE_KEY": Reason(ERROR, _("The key {key} stands twice in the same mapping.")),
    "BAD_TEXT": Reason(ERROR, _("A text holds a character that cannot be stored.")),
    "BAD_NUMBER": Reason(ERROR, _("{value} is too large for a number.")),
    "UNKNOWN_KIND": Reason(
        ERROR,
        _("Objects of kind {kind} ({api_version}) are not read here; did you mean {nearest}?"),
        _("The documentation lists the kinds that are read."),
        _("Objects of kind {kind} ({api_version}) are not read here."),
    ),
    "BAD_TYPE": Reason(ERROR, _("{path} must be {expected}, and is {found}.")),
    "REQUIRED": Reason(ERROR, _("{path} is missing.")),
    "BAD_QUANTITY": Reason(
        ERROR, _("{value} is not an amount."), _("Write amounts like 4, 500m or 64Gi.")
    ),
    "BAD_QUANTITY:NotWhole": Reason(
        ERROR,
        _("{value} cannot be: {resource} only comes in whole pieces."),
        _("Write a whole number; CPU, memory and storage can be divided."),
    ),
    "NEGATIVE": Reason(ERROR, _("{path} is {value}; it cannot be negative.")),
    "OUT_OF_RANGE": Reason(ERROR, _("{path} is {value}; it must be from {low} to {high}.")),
    "BAD_VALUE": Reason(ERROR, _("{path} is {value}; it must be one of {allowed}.")),
    "BAD_VALUE:TwoPriorities": Reason(
        ERROR,
        _("Both priority and priority_class are given; a workload has one priority."),
        _("Leave one of the two out."),
    ),
    "BAD_VALUE:TwoSlices": Reason(
        ERROR,
        _("Both slice and slices are given."),
        _("Leave one of the two out; slices lists those that are made of others."),
    ),
    "BAD_VALUE:LimitDiffers": Reason(
        ERROR,
        _("{path} asks for {value} of {resource} with a limit of {limit}; both must be equal."),
        _("Write the same number twice, or leave the request out."),
    ),
    "NAME_DIFFERS": Reason(
        ERROR,
        _("The body is about {value}, the address about {name}."),
        _("Write the same name, or leave it out of the body."),
    ),
    "BAD_NAME": Reason(
        ERROR,
        _("{value} is not a name that Kubernetes would accept."),
        _("Use lower-case letters, digits, dots and dashes, at most 253 of them."),
    ),
}

# The text is read; this is what the sender should know.
DOUBTFUL: dict[str, Reason] = {
    "UNKNOWN_FIELD": Reason(
        WARNING,
        _("The field {path} is not known here and changes nothing; did you mean {nearest}?"),
        _("Write {nearest}."),
        _("The field {path} is not known here; it is kept and changes nothing."),
    ),
    "FIELD_NOT_HONOURED": Reason(
        WARNING, _("The field {path} is kept, but this platform does not act on it.")
    ),
    "HAS_ENDED": Reason(
        WARNING,
        _("{subject} has ended ({state}): it was not taken."),
        _("To run it again, send it without its status."),
    ),
    "BEING_DELETED": Reason(
        WARNING, _("{subject} is being deleted since {since}: it was not taken.")
    ),
    "OWNED_BY": Reason(
        INFO, _("{owner} makes {subject}: it counts there and was not taken twice.")
    ),
    "POD_GROUP_INCOMPLETE": Reason(
        ERROR,
        _("The group {group} counts {total} pods, but {pods} of them are here."),
        _("Submit all pods of the group together."),
    ),
    "POD_GROUP_DIFFERS": Reason(
        ERROR,
        _("{member} has another {field} than {other}; all pods of a group share it."),
        _("Say the same on every pod of the group."),
    ),
    "CLUSTER_SELECTED": Reason(
        INFO, _("{subject} runs on a Ray cluster that is there already: it counts there.")
    ),
    "NAME_GENERATED": Reason(
        INFO,
        _("It is called {name}, as only the beginning {prefix} was given."),
        _("Sent again it is work of its own; name it, so that it is known again."),
    ),
    "AUTOSCALER_NOT_FOLLOWED": Reason(
        WARNING,
        _("Asked for are the replicas that stand here; Ray's autoscaler adds none with quota."),
        _("Let kueue.x-k8s.io/elastic-job be true and ask for other sizes, or switch it off."),
    ),
    "FIELD_RENAMED": Reason(
        WARNING,
        _("{old} is called {new} in this API version; it was read as that."),
        _("Write {new}."),
    ),
    "UNKNOWN_ANNOTATION": Reason(
        WARNING,
        _("No scheduler reads the annotation {annotation}; the pods join no group by it."),
        _("Use scheduling.k8s.io/group-name."),
    ),
    "QUEUE_DEFAULTED": Reason(
        WARNING,
        _("There is no queue {queue} here; it bounds nothing."),
        _("Create the queue, or name one that exists."),
    ),
    "LEVEL_AS_NAME": Reason(
        WARNING,
        _("{path} expects a tier number; the name {level} was read as the topology level."),
        _("Write the name into highestTierName."),
    ),
    "DERIVED_QUEUE": Reason(
        INFO, _("The local queue {queue} was made, so that namespace {namespace} can use it.")
    ),
    "TEAM_NOT_FOUND": Reason(
        WARNING,
        _("The label names team {team}, which does not exist; nobody owns {subject} yet."),
        _("Ask an admin to create the team."),
    ),
    "TEAM_UNKNOWN": Reason(
        INFO,
        _("Nothing says which team owns {subject}."),
        _("Set the label gpuplatform.io/team, or choose the team on the page."),
    ),
    "RESOURCE_ALIAS": Reason(WARNING, _("{old} was read as {new}."), _("Write {new}.")),
    "VGPU_NUMBER_DEFAULTED": Reason(
        WARNING,
        _("{pod_set} asks for a part of a device and not of how many; it gets it of one."),
        _("Write {resource}."),
    ),
    "OUTSIDE_QUOTA": Reason(
        INFO,
        _("{subject} names no queue: what it uses is shown as use without quota."),
        _("Set the label kueue.x-k8s.io/queue-name."),
    ),
    "FAIR_WEIGHT_KEPT": Reason(
        INFO,
        _("The weight is kept; nothing is shared by weight here."),
        _("Set fairness at the top cohort, or order by usage in the cluster queue."),
    ),
    "CURRENCY_ASSUMED": Reason(
        INFO,
        _("LiteLLM states US dollars; the numbers were taken as {currency}."),
        _("Convert the prices where they are meant in another currency."),
    ),
    "SECTION_NOT_READ": Reason(INFO, _("{path} is not read here: it changes no price.")),
    "COHORT_IMPLICIT": Reason(
        WARNING,
        _("Nobody has declared the cohort {cohort}: it is there because it was named."),
        _("Check the name, or declare the cohort."),
    ),
    "TEAMS_IN_COMMENTS": Reason(INFO, _("The file names no teams; comments are not read.")),
}
