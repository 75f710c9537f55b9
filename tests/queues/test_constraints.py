"""The database holds by itself what one row can break: no code path can store it."""

import pytest
from django.db import IntegrityError, transaction

from queues import services
from queues.models import ClusterQueue, Cohort, FlavorQuota, LocalQueue, Team
from queues.specs import LocalQueueSpec
from tests.queues.promises import queue

pytestmark = pytest.mark.django_db

QUEUE_WRONGS = {
    "queue_has_a_name": {"name": ""},
    "queue_weight_not_neg": {"fair_weight": -1},
    "queue_strategy_known": {"queueing_strategy": "LIFO"},
    "queue_stop_policy_known": {"stop_policy": "Halt"},
    "queue_within_known": {"within_cluster_queue": "x"},
    "queue_reclaim_known": {"reclaim_within_cohort": "x"},
    "queue_borrow_preemption_needs_reclaim": {
        "borrow_within_cohort": "LowerPriority",
        "reclaim_within_cohort": "Never",
    },
    "queue_flavor_search_known": {"when_can_borrow": "x"},
    "queue_preference_needs_search": {"flavor_preference": "PreemptionOverBorrowing"},
    "queue_admission_order_known": {"admission_order": "luck"},
}
QUOTA_WRONGS = {
    "nominal_not_negative": {"nominal": -1},
    "borrowing_limit_not_negative": {"borrowing_limit": -1},
    "lending_limit_not_negative": {"lending_limit": -1},
    "lending_within_nominal": {"lending_limit": 17},
    "quota_has_one_owner": {"cluster_queue": None},
}
COHORT_WRONGS = {
    "cohort_has_a_name": {"name": ""},
    "cohort_weight_not_neg": {"fair_weight": -1},
    "cohort_fairness_known": {"fairness": "luck"},
    "cohort_reclaim_to_known": {"reclaim_to": "the moon"},
}
DOOR_WRONGS = {
    "local_queue_is_named": {"cluster_queue": ""},
    "local_stop_policy_known": {"stop_policy": "x"},
}
TEAM_WRONGS = {
    "team_has_a_name": {"name": ""},
    "team_accounting_mode_known": {"accounting_mode": "x"},
}
WRONGS = [
    pytest.param(model, fields, id=name)
    for model, wrongs in (
        (ClusterQueue, QUEUE_WRONGS),
        (FlavorQuota, QUOTA_WRONGS),
        (Cohort, COHORT_WRONGS),
        (LocalQueue, DOOR_WRONGS),
        (Team, TEAM_WRONGS),
    )
    for name, fields in wrongs.items()
]


@pytest.mark.parametrize(("model", "fields"), WRONGS)
def test_the_database_refuses_what_the_rules_forbid(model, fields, datos):
    services.save_cluster_queue(queue(team="datos"), actor=None)
    services.save_local_queue(LocalQueueSpec("ns", "lq", "cq-datos"), actor=None)
    with pytest.raises(IntegrityError), transaction.atomic():
        model.objects.update(**fields)


def test_the_database_refuses_doubles_and_a_cohort_above_itself():
    services.save_cluster_queue(queue(), actor=None)
    cell = FlavorQuota.objects.get()
    cell.pk = None
    with pytest.raises(IntegrityError), transaction.atomic():
        cell.save(force_insert=True)
    cohort = Cohort.objects.get()
    with pytest.raises(IntegrityError), transaction.atomic():
        Cohort.objects.filter(pk=cohort.pk).update(parent=cohort)
