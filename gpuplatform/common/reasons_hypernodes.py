"""Why HyperNodes are not taken in, or not as they are written."""

from django.utils.translation import gettext_lazy as _

from gpuplatform.common.reason import ERROR, WARNING, Reason

HYPERNODES: dict[str, Reason] = {
    "HYPERNODE_SELECTOR": Reason(
        ERROR,
        _("A member is chosen by exactly one of exactMatch, regexMatch and labelMatch."),
        _("Give each member one selector; labelMatch is for nodes only."),
    ),
    "HYPERNODE_PATTERN": Reason(
        ERROR,
        _("The pattern cannot be used: {cause}."),
        _("Write a simpler pattern, or name the members."),
    ),
    "HYPERNODE_TWO_PARENTS": Reason(
        ERROR,
        _("{member} is a member of {other} already; each has one parent."),
        _("Take it out of one of the two."),
    ),
    "HYPERNODE_TIER": Reason(
        ERROR, _("{member} has tier {tier}; the members of tier {own} have lower ones.")
    ),
    "HYPERNODE_TIER_NAMED": Reason(
        ERROR,
        _("Tier {tier} is called {name} already."),
        _("Call it the same in all HyperNodes of the tier."),
    ),
    "HYPERNODE_MEMBER_UNKNOWN": Reason(WARNING, _("There is no {kind} {member}.")),
    "HYPERNODE_EMPTY": Reason(
        WARNING,
        _("None of its nodes is known; nothing is kept of it."),
        _("Import it again once its nodes are there."),
    ),
    "HYPERNODE_MOVED": Reason(WARNING, _("{count} nodes leave {other} for it.")),
}
