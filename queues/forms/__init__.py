"""Forms of the promises: what people type becomes a spec; the rules are asked by the service.

A form checks shape only (is this a quantity at all). What a rule refuses comes back as problems
with paths, and :func:`add_problems` puts each at its field.
"""

from queues.forms.edits import EditForm, add_problems, form_problems
from queues.forms.machines import FlavorForm, TopologyForm
from queues.forms.people import (
    GENERATED,
    TYPED,
    FactorForm,
    FirstPasswordForm,
    GroupGrantForm,
    NewPasswordForm,
    PersonForm,
    TokenForm,
    team_places,
)
from queues.forms.priorities import PriorityClassForm
from queues.forms.promises import CohortForm, QueueForm
from queues.forms.quotas import RESOURCES, QuotaRows, quota_rows
from queues.forms.teams import LocalQueueForm, MemberForm, NamespaceForm, TeamForm

__all__ = [
    "GENERATED",
    "RESOURCES",
    "TYPED",
    "CohortForm",
    "EditForm",
    "FactorForm",
    "FirstPasswordForm",
    "FlavorForm",
    "GroupGrantForm",
    "LocalQueueForm",
    "MemberForm",
    "NamespaceForm",
    "NewPasswordForm",
    "PersonForm",
    "PriorityClassForm",
    "QueueForm",
    "QuotaRows",
    "TeamForm",
    "TokenForm",
    "TopologyForm",
    "add_problems",
    "form_problems",
    "quota_rows",
    "team_places",
]
