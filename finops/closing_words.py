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
CHECKS: Mapping[str, str | Promise] = {
    "R1": _("GPU-hours of our inventory, of OpenCost's assets"),
    "R2": _("GPU-hours of a team by our scheduler, by OpenCost"),
    "R3": _("GPU-hours held, of these with work running"),
    "R4": _("Lines of all bills, cost of the month"),
    "R5": _("LiteLLM's requests of a day, its own sum"),
    "R6": _("LiteLLM's spend, tokens at list price"),
    "R7": _("GPU price declared, resolved by the source"),
    "R8": _("Cost of tokens, iron they ran on"),
}
CAUSES: Mapping[str, str | Promise] = {
    "price": _("price: tokens are priced otherwise than their deployment costs at full load"),
    "utilisation": _("utilisation: the deployment serves less than it could"),
    "attribution": _("attribution: tokens or iron of somebody else"),
    "no_benchmark": _("no benchmark: say how many tokens per second the deployment serves"),
    "too_little": _("too little iron or too few tokens to say anything"),
    "lost_sums": _("the daily sums have lost something"),
    "lost_requests": _("requests are missing"),
    "hours_differ": _("hours differ by more than 1 h and 2 %"),
    "zero_spend": _("requests with tokens and no spend"),
    "spend_mismatch": _("spend is not tokens times price"),
    "price_anomaly": _("the source applied another price"),
}
