"""What the codes of rules and of HTTP's own refusals mean.

A rule words its refusal itself, with the value in it; the sentences here say what its code means
in general.
"""

from collections.abc import Mapping

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from gpuplatform.common.reason import ERROR, Reason


def _all(sentences: Mapping[str, str | Promise]) -> dict[str, Reason]:
    return {code: Reason(ERROR, words) for code, words in sentences.items()}


# Rules of promises, people, prices and periods.
RULES: dict[str, Reason] = _all(
    {
        "already_finished": _("It has ended already, or has just changed."),
        "bad_characters": _("The text holds a character that cannot be kept."),
        "bad_email": _("This is not an e-mail address."),
        "bad_address": _("This is no address that may be called."),
        "bad_label_key": _("This is not a label key, such as example.com/name."),
        "bad_label_value": _("This is not a label value."),
        "bad_name": _("This is not a name: use lower-case letters, digits, dashes and dots."),
        "bad_selector": _("This is not a label selector of Kubernetes."),
        "cycle": _("Cohorts cannot contain themselves."),
        "is_off": _("The webhook is switched off."),
        "needs_tls": _("Public addresses are called over https only."),
        "waits_already": _("It waits to be sent already."),
        "duplicate": _("The same thing is listed more than once."),
        "empty_key_needs_exists": _("A toleration without a key has the operator Exists."),
        "exists_has_no_value": _("The operator Exists takes no value."),
        "hostname_not_last": _("The hostname can only be the last level of a topology."),
        "immutable": _("The field cannot change once it is set."),
        "in_use": _("Something else still needs it."),
        "last_admin": _("The last active platform admin has to stay one."),
        "lending_above_nominal": _("A queue cannot lend more than its nominal quota."),
        "needs_reclaim": _("Who may evict while borrowing must also be allowed to reclaim."),
        "needs_whole_search": _(
            "Evicting can only be preferred where every flavor is looked at, both times."
        ),
        "negative": _("An amount cannot be negative."),
        "no_cohort": _("A queue without cohort has nobody to borrow from or to lend to."),
        "no_fair_share": _("There is a fair share only at the top of a tree that shares."),
        "no_parent": _("A cohort without parent has nobody to borrow from or to lend to."),
        "no_such_team": _("There is no such team."),
        "not_at_the_top": _("Fairness is set at the top of a tree of cohorts."),
        "not_found": _("It is not there, or not there for you."),
        "reason_required": _("This needs a reason, which stands in the audit trail."),
        "reason_too_short": _("A reason has at least 10 characters."),
        "out_of_range": _("The number is outside its bounds."),
        "required": _("The field is needed."),
        "reserved_name": _("The platform itself uses this name."),
        "own_lead": _("A lead cannot give up the own lead of a team."),
        "residual_has_no_quota": _("A quota that is computed cannot be declared as well."),
        "resources_differ": _("Each flavor lists the resources of its group, in the same order."),
        "seconds_need_no_execute": _("Seconds have a meaning with the effect NoExecute only."),
        "stale": _("It changed since it was seen, or the version is not given as it should be."),
        "too_few": _("The list has too few entries."),
        "too_large": _("The amount, or the body of the request, is too large."),
        "too_long": _("The text is too long."),
        "too_many": _("The list has too many entries."),
        "too_many_cells": _("A group has too many quotas."),
        "too_many_flavors": _("The quota table has too many flavors."),
        "too_many_resources": _("The quota table has too many resources."),
        "too_precise": _("The number has too many decimals."),
        "topology_needs_labels": _("A flavor with a topology needs a label that tells its nodes."),
        "unknown_choice": _("The value is not one of those that are possible."),
        "password_too_common": _("The password is one that many people use."),
        "password_too_short": _("The password is too short."),
        "weak": _("The password is too easy to guess."),
        "BAD_DURATION": _("This is not a window of a budget, like 1mo, 7d or 24h."),
        "COUNTED_TWICE": _("Another source tells about the same already."),
        "CURRENCY_MISMATCH": _("The price is in another currency than the bills."),
        "DAY_NOT_OVER": _("The day is not over yet."),
        "FLAVOR_NOT_FOUND": _("There is no such flavor."),
        "MAPPING_ENDED": _("The mapping ends already."),
        "MAPPING_OVERLAPS": _("Another mapping of the same thing is in force at that time."),
        "MUST_BE_EMPTY": _("The field says nothing here and must be left out."),
        "NOT_QUARANTINED": _("No reading of that day waits for a judgement."),
        "NO_LENGTH": _("The length of the body is not given."),
        "PAYLOAD_GONE": _("The answer of the source is not kept any more."),
        "PDF_NOT_INSTALLED": _("This installation makes no PDF: its extra is not installed."),
        "PDF_OF_ONE_BILL": _("A PDF is of one bill."),
        "PERIOD_CLOSED": _("The month is closed; its prices and bills stay."),
        "FIGURES_CHANGED": _("The figures are not those that were seen; look at them again."),
        "NO_BILLS": _("No bills of the month were made yet."),
        "NOT_IN_THE_WAY": _("No such finding stands in the way of closing the month."),
        "NOT_TO_BE_HELPED": _("Nobody can let this pass: the bills themselves are not right."),
        "PERIOD_NOT_OPEN": _("The month is not open."),
        "PERIOD_NOT_OVER": _("The month is not over."),
        "PERIOD_STEP": _("The month is not where this step begins."),
        "SECOND_PERSON": _("A second person has to do this, not the one who reviewed."),
        "PRICE_ENDED": _("The price ends already."),
        "PRICE_OVERLAPS": _("Another price is in force at that time."),
        "SHARED_COST_OVERLAPS": _("Another shared cost of this name is in force at that time."),
        "TOO_LONG": _("The text is too long."),
        "TOO_PRECISE": _("The number has too many decimals."),
        "UNKNOWN_PROFILE": _("A file of this kind has no such profile."),
        "WINDOW_BACKWARDS": _("The end comes before the start."),
    }
)

# What HTTP itself says, where no rule was asked.
PROTOCOL: dict[str, Reason] = _all(
    {
        "authentication_failed": _("The token is not known, or has expired."),
        "bad_request": _("The request cannot be read."),
        "error": _("The request cannot be answered."),
        "forbidden": _("This is not allowed to you."),
        "internal_server_error": _("The platform itself has failed; the log knows more."),
        "invalid": _("A parameter or a value is not one that is read here."),
        "blank": _("The text must not be empty."),
        "invalid_choice": _("The value is not one of those that are possible."),
        "max_decimal_places": _("The number has too many decimals."),
        "max_digits": _("The number has too many digits."),
        "max_length": _("The text is too long."),
        "max_string_length": _("The text is too long for a number."),
        "max_value": _("The number is too large."),
        "max_whole_digits": _("The number has too many digits before the point."),
        "min_value": _("The number is too small."),
        "null": _("The value must not be null."),
        "method_not_allowed": _("The address does not know this method."),
        "no_streams": _("This server cannot keep a stream open."),
        "resource_version_too_old": _("Too much has changed since, or it is too long ago."),
        "not_acceptable": _("The answer cannot be given in the wanted form."),
        "not_authenticated": _("Nobody is signed in."),
        "parse_error": _("The body is not JSON."),
        "permission_denied": _("This is not allowed to you."),
        "key_in_use": _("A request with this key is being answered; ask again in a moment."),
        "key_reused": _("This key stands for another request; each request needs its own."),
        "precondition_required": _("A change must say which version was seen."),
        "unsupported_media_type": _("The body is of a type that is not read here."),
    }
)
