"""The rules of a month in words: what each of them decides, and what its choices mean."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _


@dataclass(frozen=True, slots=True)
class RuleWords:
    """One rule: its name, what it decides, and its choices in words."""

    label: Promise
    help: Promise
    options: Mapping[str, Promise] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RuleSaid:
    """One rule as it is in force, in words."""

    label: Promise
    value: str | Promise
    help: Promise


def said(choices: Mapping[str, str]) -> list[RuleSaid]:
    """Return the rules that ``choices`` are in force, in words."""
    return [
        RuleSaid(rule.label, rule.options.get(choices[name], choices[name]), rule.help)
        for name, rule in RULES.items()
        if name in choices
    ]


RULES: Mapping[str, RuleWords] = {
    "usage_source": RuleWords(
        _("Hours are counted by"),
        _("Whose measurement of use is billed; the other one is compared with it on Drift."),
        {"scheduler": _("our own metering"), "opencost": _("OpenCost")},
    ),
    "idle_scope": RuleWords(
        _("Idle is counted by"),
        _("Where unused capacity and use beyond capacity may cancel each other out."),
        {"cluster": _("the whole cluster"), "node": _("each node")},
    ),
    "idle_basis": RuleWords(
        _("Idle is shared by"),
        _("Whether who was busy is asked for the month or for each day."),
        {"period": _("the whole month"), "day": _("each day")},
    ),
    "preempted": RuleWords(
        _("Hours of evicted work are paid by"),
        _("Only stays that the platform ended; what its owner cancels is always its owner's."),
        {
            "borrower": _("who ran it"),
            "not_charged": _("nobody: the platform's own account"),
            "reclaimer": _("who took the GPUs back"),
        },
    ),
    "token_weight": RuleWords(
        _("A serving cost is shared by"),
        _("How the cost of a shared model is split among the teams that asked it."),
        {
            "spend": _("what LiteLLM says each spent"),
            "tokens": _("tokens"),
            "gpu_seconds": _("GPU-seconds by the model's benchmark"),
        },
    ),
    "tokens_without_team": RuleWords(
        _("Tokens of no team go to"),
        _("Requests whose LiteLLM team is mapped to nobody."),
        {"bucket": _("the central account"), "owner": _("the owner of the deployment")},
    ),
    "borrow_surcharge": RuleWords(
        _("Factor on borrowed GPU-hours"),
        _("1 is none; 1.2 makes a borrowed hour a fifth dearer."),
    ),
    "lender_credit": RuleWords(
        _("Part of it that the lender gets"),
        _("Between 0 and 1, of the cost of hours that others borrowed."),
    ),
}
