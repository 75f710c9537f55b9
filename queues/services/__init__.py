"""The only writers of promises, people and tokens.

Each ``save_x`` takes the whole desired state and makes the rows match it in one transaction:
rules asked, version guarded, audited with before and after, a cycle asked for. Saving what is
already so changes nothing. Each ``delete_x`` refuses while something needs the object; rooms
above add their reasons with ``register_delete_guard``.
"""

from queues.descriptions import (
    describe_cluster_queue,
    describe_cohort,
    describe_flavor,
    describe_local_queue,
    describe_namespace,
    describe_priority_class,
    describe_team,
    describe_topology,
)
from queues.services.cohorts import delete_cohort, ensure_cohort, save_cohort
from queues.services.flavors import delete_flavor, delete_topology, save_flavor, save_topology
from queues.services.groups import (
    add_group_grant,
    follow_groups,
    gives_anything,
    remove_group_grant,
)
from queues.services.people import (
    add_person,
    create_person,
    edit_person,
    set_alert_mail,
    set_language,
    set_password,
    set_platform_role,
)
from queues.services.queues import (
    delete_cluster_queue,
    delete_local_queue,
    delete_priority_class,
    save_cluster_queue,
    save_local_queue,
    save_priority_class,
)
from queues.services.teams import (
    delete_namespace,
    delete_team,
    ensure_namespace,
    give_namespace,
    person_called,
    save_namespace,
    save_team,
    set_membership,
)
from queues.services.tokens import issue_token, note_use, revoke_token
from queues.services.writing import register_delete_guard

__all__ = [
    "add_group_grant",
    "add_person",
    "create_person",
    "delete_cluster_queue",
    "delete_cohort",
    "delete_flavor",
    "delete_local_queue",
    "delete_namespace",
    "delete_priority_class",
    "delete_team",
    "delete_topology",
    "describe_cluster_queue",
    "describe_cohort",
    "describe_flavor",
    "describe_local_queue",
    "describe_namespace",
    "describe_priority_class",
    "describe_team",
    "describe_topology",
    "edit_person",
    "ensure_cohort",
    "ensure_namespace",
    "follow_groups",
    "give_namespace",
    "gives_anything",
    "issue_token",
    "note_use",
    "person_called",
    "register_delete_guard",
    "remove_group_grant",
    "revoke_token",
    "save_cluster_queue",
    "save_cohort",
    "save_flavor",
    "save_local_queue",
    "save_namespace",
    "save_priority_class",
    "save_team",
    "save_topology",
    "set_alert_mail",
    "set_language",
    "set_membership",
    "set_password",
    "set_platform_role",
]
