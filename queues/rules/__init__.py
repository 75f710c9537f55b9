"""The rules of promises, asked by form, REST, manifest and command alike.

Each ``check_*`` yields every problem of one spec: the path of the field in the spec, a stable
code, a sentence. The services ask them, so that no door can skip one; rules that one row can
break are constraints of the database, too. Source: ``admission.md`` 1.1 (K numbers).
"""

from queues.rules.flavors import check_flavor, check_topology
from queues.rules.people import check_admin_left, check_password, check_person
from queues.rules.queues import check_cluster_queue, check_cohort, check_local_queue
from queues.rules.teams import check_namespace, check_priority_class, check_team

__all__ = [
    "check_admin_left",
    "check_cluster_queue",
    "check_cohort",
    "check_flavor",
    "check_local_queue",
    "check_namespace",
    "check_password",
    "check_person",
    "check_priority_class",
    "check_team",
    "check_topology",
]
