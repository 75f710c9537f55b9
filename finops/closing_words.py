"""What the steps of a month are called, and which lead on from where."""

from collections.abc import Mapping

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

# Step -> from which status to which. A closed month leads nowhere.
LEADS: Mapping[str, tuple[str, str]] = {
    "put_forward": ("open", "provisional"),
    "reviewed": ("provisional", "reviewed"),
    "closed": ("reviewed", "closed"),
    "sent_back": ("reviewed", "provisional"),
}
NEXT: Mapping[str, tuple[str, ...]] = {
    status: tuple(step for step, (before, _after) in LEADS.items() if before == status)
    for status in ("open", "provisional", "reviewed", "closed")
}
# What the button of a step says, and what it does.
BUTTONS: Mapping[str, str | Promise] = {
    "put_forward": _("Put forward"),
    "reviewed": _("I have reviewed these bills"),
    "closed": _("Close the month"),
    "sent_back": _("Send back"),
}
EFFECTS: Mapping[str, str | Promise] = {
    "put_forward": _("The month is over. Its bills go on following what comes late."),
    "reviewed": _("From now on nothing is made anew; a second person can close."),
    "closed": _("Charged bills get their numbers. The month never changes again."),
    "sent_back": _("Its bills are made anew, and somebody has to review them again."),
}
# Of each check: what it asks, and what its two sides are.
CHECKS: Mapping[str, tuple[str | Promise, str | Promise, str | Promise]] = {
    "R1": (_("GPU-hours that were there"), _("our inventory"), _("OpenCost's assets")),
    "R2": (_("GPU-hours of a team"), _("our scheduler"), _("OpenCost")),
    "R3": (_("GPU-hours held"), _("held"), _("of these with work running")),
    "R4": (
        _("What the month cost"),
        _("lines of all bills"),
        _("sum of its sources"),
    ),
    "R5": (_("Spend of a day in LiteLLM"), _("its requests"), _("its own daily sum")),
    "R6": (_("Spend of requests in LiteLLM"), _("as logged"), _("tokens at the price here")),
    "R7": (_("Price of a GPU-hour"), _("declared here"), _("applied by the source")),
    "R8": (_("Tokens of our own models"), _("what they were priced at"), _("their iron")),
}
# What a check is of where it says nothing of its own.
ABOUT: Mapping[str, str | Promise] = {
    "R4": _("capacity, other iron, external tokens, shared amounts, adjustments"),
}
STATES: Mapping[str, str | Promise] = {
    "critical": _("critical"),
    "warning": _("differs"),
    "unknown": _("not known"),
    "info": _("for information"),
    "ok": _("agrees"),
}
# Why a check has no row: nothing was found that differs, or there is nothing to compare with.
SILENT: Mapping[str, tuple[str | Promise, str | Promise]] = {
    "R1": (_("agrees"), _("no capacity was metered")),
    "R2": (_("no team differs"), _("no source has GPU-hours of teams")),
    "R5": (_("every day agrees"), _("no source has daily sums beside its requests")),
    "R6": (_("no request differs"), _("no requests were read from LiteLLM")),
    "R7": (_("no price differs"), _("no source tells the prices that it applied")),
    "R8": (_("nothing differs"), _("no tokens of our own models were read")),
}
CAUSES: Mapping[str, str | Promise] = {
    "price": _("price: tokens are priced otherwise than their deployment costs at full load"),
    "utilisation": _("utilisation: the deployment serves less than it could"),
    "attribution": _("attribution: tokens or iron of somebody else"),
    "no_benchmark": _("no benchmark: say how many tokens per second the deployment serves"),
    "too_little": _("too little iron or too few tokens to say anything"),
    "lost_sums": _("the daily sums have lost something"),
    "lost_requests": _("requests are missing"),
    "assets_less": _(
        "the source saw less: days that it does not have, or machines it does not watch"
    ),
    "assets_more": _("the source saw machines that our inventory does not have"),
    "slow_start": _("pods start late: GPUs are held while images are pulled or volumes mounted"),
    "not_read_yet": _("the month goes on: OpenCost has whole days, today's hours are ours alone"),
    "opencost_less": _("OpenCost saw less: days in part, or pods without the team's label"),
    "opencost_more": _("OpenCost saw more: work of the team outside our queues"),
    "zero_spend": _("LiteLLM knew no price of the model when it logged these requests"),
    "spend_mismatch": _("LiteLLM is configured with another price than the one in force here"),
    "price_anomaly": _(
        "the source has another price list; a factor of 730 is a price by the month"
    ),
    "not_all_billed": _("a fault of the platform: do not close the month"),
}
