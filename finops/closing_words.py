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
