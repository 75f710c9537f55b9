"""What facts of a bill are refused for: ``manage.py chargeback`` names path and code."""

from collections.abc import Mapping

from django.utils.translation import gettext_lazy as _

from gpuplatform.common.reason import ERROR, Reason

FACTS: Mapping[str, Reason] = {
    "unknown_field": Reason(ERROR, _("This field is not known here.")),
    "bad_type": Reason(ERROR, _("This is a value of another kind than the field takes.")),
    "bad_number": Reason(
        ERROR,
        _("This is not an exact number."),
        _('Write decimals as text, "1.40", and whole numbers plainly.'),
    ),
    "bad_time": Reason(
        ERROR,
        _("This is not an instant with seconds and a time zone."),
        _("Write it like 2026-06-01T00:00:00Z; a day like 2026-06-01."),
    ),
    "bad_choice": Reason(ERROR, _("This is none of the words that the field takes.")),
    "empty": Reason(ERROR, _("This text must not be empty.")),
    "empty_window": Reason(ERROR, _("This window does not end after it begins.")),
    "unknown_time_zone": Reason(ERROR, _("There is no time zone of this name.")),
    "overlap": Reason(
        ERROR,
        _("This row shares time with an earlier one for the same thing."),
        _("End the earlier one where this one begins."),
    ),
    "reserved": Reason(ERROR, _("A central account has this name already.")),
    "currency_mismatch": Reason(ERROR, _("This currency is not that of the period.")),
    "price_missing": Reason(
        ERROR, _("The flavor has no price for a part of this row inside the period.")
    ),
    "not_100": Reason(ERROR, _("The percentages do not add up to 100.")),
    "not_allowed": Reason(ERROR, _("This field does not go together with the others.")),
    "not_cents": Reason(ERROR, _("This is not an amount of whole cents.")),
    "needs_scheduler": Reason(
        ERROR,
        _("Owners can pay their idle only where use comes from our own metering."),
        _("Set usage_source to scheduler, or choose another idle policy."),
    ),
    "unknown_team": Reason(ERROR, _("No team has this name."), _("Add it to the teams.")),
}
