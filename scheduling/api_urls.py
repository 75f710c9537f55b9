"""REST addresses of workloads and nodes, below ``/api/v1/``."""

from django.urls import URLPattern, path

from scheduling.agent_api import (
    AgentDesiredView,
    AgentHelloView,
    AgentReportsView,
    AgentsView,
    AgentView,
)
from scheduling.api import (
    AlertsView,
    AvailabilityView,
    FragmentsView,
    WorkloadsView,
    WorkloadView,
)
from scheduling.bulk_api import WorkloadsBulkView
from scheduling.fairness_api import FairShareView
from scheduling.ledger_api import EvictionsView, LedgerView
from scheduling.life_api import (
    AdmissionChecksView,
    AdmissionCheckView,
    CheckpointView,
    WorkloadCheckView,
)
from scheduling.nodes_api import NodesView, NodeView

urlpatterns: list[URLPattern] = [
    path("workloads/", WorkloadsView.as_view(), name="api-workloads"),
    path("workloads/bulk/", WorkloadsBulkView.as_view(), name="api-workloads-bulk"),
    path("workloads/<uuid:uid>/", WorkloadView.as_view(), name="api-workload"),
    path(
        "workloads/<uuid:uid>/checkpoint/",
        CheckpointView.as_view(),
        name="api-workload-checkpoint",
    ),
    path(
        "workloads/<uuid:uid>/checks/<str:name>/",
        WorkloadCheckView.as_view(),
        name="api-workload-check",
    ),
    path("admission-checks/", AdmissionChecksView.as_view(), name="api-admission-checks"),
    path("admission-checks/<str:name>/", AdmissionCheckView.as_view(), name="api-admission-check"),
    path("nodes/", NodesView.as_view(), name="api-nodes"),
    path("nodes/<str:name>/", NodeView.as_view(), name="api-node"),
    path("agent/<str:name>/hello/", AgentHelloView.as_view(), name="api-agent-hello"),
    path("agent/<str:name>/reports/", AgentReportsView.as_view(), name="api-agent-reports"),
    path("agent/<str:name>/desired/", AgentDesiredView.as_view(), name="api-agent-desired"),
    path("agents/", AgentsView.as_view(), name="api-agents"),
    path("agents/<str:name>/", AgentView.as_view(), name="api-agent"),
    path("ledger/", LedgerView.as_view(), name="api-ledger"),
    path("evictions/", EvictionsView.as_view(), name="api-evictions"),
    path("alerts/", AlertsView.as_view(), name="api-alerts"),
    path("availability/", AvailabilityView.as_view(), name="api-availability"),
    path("fair-share/", FairShareView.as_view(), name="api-fair-share"),
    path("fragments/", FragmentsView.as_view(), name="api-fragments"),
]
