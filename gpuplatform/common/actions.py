"""The audit trail's actions in words: ``cluster_queue.created`` is "Queue created"."""

from collections.abc import Mapping

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

NOUNS: Mapping[str, str | Promise] = {
    "budget": _("Budget"),
    "agent": _("Agent"),
    "cluster_queue": _("Queue"),
    "cohort": _("Cohort"),
    "local_queue": _("Local queue"),
    "namespace": _("Namespace"),
    "node": _("Node"),
    "priority_class": _("Priority class"),
    "resource_flavor": _("Flavor"),
    "source": _("Source"),
    "team": _("Team"),
    "topology": _("Topology"),
    "user": _("Person"),
    "webhook": _("Webhook"),
    "workload": _("Workload"),
    "admission_check": _("Admission check"),
}
VERBS: Mapping[str, str | Promise] = {
    "began": _("%(noun)s began anew"),
    "cancelled": _("%(noun)s cancelled"),
    "deactivated": _("%(noun)s deactivated"),
    "reactivated": _("%(noun)s reactivated"),
    "gate_opened": _("%(noun)s: gate opened"),
    "priority_changed": _("%(noun)s: priority changed"),
    "check_answered": _("%(noun)s: admission check answered"),
    "drained": _("%(noun)s drained"),
    "cordoned": _("%(noun)s cordoned"),
    "created": _("%(noun)s created"),
    "deleted": _("%(noun)s deleted"),
    "scaled": _("%(noun)s brought to another size"),
    "submitted": _("%(noun)s submitted"),
    "disabled": _("%(noun)s switched off by the platform"),
    "secret_renewed": _("%(noun)s: another secret"),
    "uncordoned": _("%(noun)s opened again"),
    "updated": _("%(noun)s changed"),
}
SENTENCES: Mapping[str, str | Promise] = {
    "bill.exported": _("Bill exported"),
    "billing_period.acknowledged": _("Finding acknowledged"),
    "billing_period.adjusted": _("Adjustment made"),
    "billing_period.adjustment_taken_back": _("Adjustment taken back"),
    "billing_period.closed": _("Month closed"),
    "billing_period.corrected": _("Late data booked"),
    "billing_period.idle_policy_chosen": _("Idle policy chosen"),
    "billing_period.policy_chosen": _("Rules of a month chosen"),
    "shared_cost.set": _("Shared cost set"),
    "shared_cost.ended": _("Shared cost ended"),
    "shared_cost.taken_back": _("Shared cost taken back"),
    "namespace.taken": _("Namespace given to another team"),
    "litellm_limit.pushed": _("Limit pushed to LiteLLM"),
    "billing_period.put_forward": _("Month put forward"),
    "billing_period.reviewed": _("Month reviewed"),
    "billing_period.sent_back": _("Month sent back"),
    "cluster_queue.shared_by_weight": _("Quota given by weight"),
    "cost_mapping.ended": _("Mapping ended"),
    "cost_mapping.set": _("Mapping set"),
    "cost_mapping.taken_back": _("Mapping taken back"),
    "membership.removed": _("Member removed"),
    "membership.set": _("Member's role set"),
    "platform_role.granted": _("Platform role granted"),
    "platform_role.revoked": _("Platform role taken away"),
    "quota_request.approved": _("Quota request approved"),
    "quota_request.asked": _("Quota asked for"),
    "quota_request.declined": _("Quota request declined"),
    "quota_request.ended": _("Loan of quota ended"),
    "quota_request.withdrawn": _("Quota request withdrawn"),
    "quota_replay.asked": _("Replay under other quotas asked"),
    "quota_replay.cancelled": _("Replay under other quotas cancelled"),
    "price.ended": _("Price ended"),
    "price.set": _("Price set"),
    "price.taken_back": _("Price taken back"),
    "source_day.accepted": _("Reading of a day accepted"),
    "source_day.rejected": _("Reading of a day rejected"),
    "token.issued": _("Token issued"),
    "token.revoked": _("Token revoked"),
    "user.language_set": _("Language of the pages chosen"),
    "user.password_set": _("Password set"),
}


def action_words(action: str) -> str:
    """Return an action in words; one that nobody has named is spelled out as it is."""
    if action in SENTENCES:
        return str(SENTENCES[action])
    noun, _dot, verb = action.partition(".")
    if noun in NOUNS and verb in VERBS:
        return str(VERBS[verb]) % {"noun": NOUNS[noun]}
    return action.replace("_", " ").replace(".", " ").capitalize()
