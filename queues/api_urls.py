"""REST addresses of the promises, below ``/api/v1/``."""

from django.urls import path

from queues import api, ledger_api, whoami_api

urlpatterns = [
    path("whoami/", whoami_api.WhoamiView.as_view(), name="api-whoami"),
    path("audit/", ledger_api.AuditView.as_view(), name="api-audit"),
    path("tokens/", ledger_api.TokensView.as_view(), name="api-tokens"),
    path(
        "workload-priority-classes/",
        ledger_api.PriorityClassesView.as_view(),
        name="api-workload-priority-classes",
    ),
    path("teams/", api.TeamList.as_view(), name="api-teams"),
    path("teams/<str:name>/", api.TeamDetail.as_view(), name="api-team"),
    path("cohorts/", api.CohortList.as_view(), name="api-cohorts"),
    path("cohorts/<str:name>/", api.CohortDetail.as_view(), name="api-cohort"),
    path("cluster-queues/", api.ClusterQueueList.as_view(), name="api-cluster-queues"),
    path(
        "cluster-queues/<str:name>/",
        api.ClusterQueueDetail.as_view(),
        name="api-cluster-queue",
    ),
    path("local-queues/", api.LocalQueueList.as_view(), name="api-local-queues"),
    path(
        "local-queues/<str:namespace>/<str:name>/",
        api.LocalQueueDetail.as_view(),
        name="api-local-queue",
    ),
    path("flavors/", api.FlavorList.as_view(), name="api-flavors"),
    path("flavors/<str:name>/", api.FlavorDetail.as_view(), name="api-flavor"),
    path("topologies/", api.TopologyList.as_view(), name="api-topologies"),
    path("topologies/<str:name>/", api.TopologyDetail.as_view(), name="api-topology"),
]
