"""What the platform raises about money: budgets, drift, sources, months that were reviewed."""

from django.utils.translation import gettext_lazy as _

from gpuplatform.common.reason import ERROR, WARNING, Reason

COST: dict[str, Reason] = {
    "BUDGET_THRESHOLD": Reason(
        WARNING,
        _("{percent} % of the budget {budget} is gone: {spent} of {limit} by {ends}."),
        _("Spend less until then, or raise the limit."),
        short=_("{percent} % of the budget {budget} is gone."),
    ),
    "BUDGET_EXHAUSTED": Reason(
        ERROR,
        _("The budget {budget} is gone: {spent} of {limit}. Its next window begins {ends}."),
        _("Where it is a hard one, no new work of the team starts before; or raise the limit."),
        short=_("The budget {budget} is gone."),
    ),
    "BUDGET_FORECAST": Reason(
        WARNING,
        _("The budget {budget} will be gone: {expected} of {limit} are expected by {ends}."),
        _("Spend less until then, or raise the limit."),
        short=_("The budget {budget} will be gone."),
    ),
    "COST_DRIFT": Reason(
        WARNING,
        _("{check} of {month} differs since {since} ({what}): {a} against {b}, {cause}."),
        _("Look at the drift page: it says which of both is likely to be wrong."),
        short=_("{check} of {month} differs ({what})."),
    ),
    "COST_DRIFT_CRITICAL": Reason(
        ERROR,
        _("{check} of {month} differs much since {since} ({what}): {a} against {b}, {cause}."),
        _("Look at the drift page. It may stand in the way of closing the month."),
        short=_("{check} of {month} differs much ({what})."),
    ),
    "SOURCE_DEAD": Reason(
        ERROR,
        _("Nothing of {source} has been loaded since {since}: {days} whole days are missing."),
        _("Look at the page of the source, and test it there. Missing days are billed as gaps."),
        short=_("The source {source} is dead."),
    ),
    "changed_since_review": Reason(
        ERROR,
        _("Something that these bills rest on has changed since they were reviewed."),
        _("Send the month back: its bills are made anew, and somebody reviews them again."),
    ),
    "NOTHING_TO_PUSH": Reason(
        ERROR,
        _("No budget says anything else than this limit of LiteLLM."),
        _("Read the limits anew; or make a money budget of the team first."),
    ),
    "SOURCE_JUDGEMENT": Reason(
        WARNING,
        _("{days} days of {source} wait for a person's judgement, the first is {since}."),
        _("Accept or reject each reading on the page of the source."),
        short=_("Days of {source} wait for a judgement."),
    ),
}
