"""Addresses of this room's pages; mounted at the root, after those of the queues room."""

from django.urls import path

from scheduling import life_views, live, machines, many_views, views

urlpatterns = [
    path("", views.overview, name="overview"),
    path("events/", live.events, name="events"),
    path("charts/quota-use/", views.quota_use_chart, name="chart-quota-use"),
    path("charts/borrowed/", views.borrowed_chart, name="chart-borrowed"),
    path("queues/", views.queues_page, name="queues"),
    path("queues/<name:name>/", views.queue_page, name="queue"),
    path("cohorts/<name:name>/", views.cohort_page, name="cohort"),
    path("workloads/", views.workloads_page, name="workloads"),
    path("workloads/act/", many_views.workloads_act, name="workloads-act"),
    path("workloads/<uuid:uid>/", views.workload_page, name="workload"),
    path("workloads/<uuid:uid>/cancel/", views.workload_cancel, name="workload-cancel"),
    path("workloads/<uuid:uid>/active/", life_views.workload_active, name="workload-active"),
    path("workloads/<uuid:uid>/gate/", life_views.workload_gate, name="workload-gate"),
    path(
        "workloads/<uuid:uid>/checks/<name:name>/",
        life_views.workload_check,
        name="workload-check",
    ),
    path("alerts/", life_views.alerts_page, name="alerts"),
    path("admission-checks/", life_views.admission_checks, name="admission-checks"),
    path("admission-checks/save/", life_views.admission_check_save, name="admission-check-save"),
    path(
        "admission-checks/<name:name>/delete/",
        life_views.admission_check_delete,
        name="admission-check-delete",
    ),
    path("agents/", machines.agents_page, name="agents"),
    path("agents/forget/", machines.agent_forget, name="agent-forget"),
    path("nodes/", machines.nodes_page, name="nodes"),
    path("nodes/<name:name>/", machines.node_page, name="node"),
    path("nodes/<name:name>/delete/", machines.node_delete, name="node-delete"),
    path("nodes/<name:name>/cordon/", machines.node_cordon, name="node-cordon"),
    path("reservations/", machines.reservations_file, name="reservations"),
    path("fragments/", machines.fragments_file, name="fragments"),
    path("charts/fragments/", machines.fragments_chart, name="chart-fragments"),
    path("flavors/", machines.flavors_page, name="flavors"),
    path("flavors/<name:name>/", machines.flavor_page, name="flavor"),
    path("priority-classes/", life_views.priority_classes, name="priority-classes"),
    path("topology/", machines.topology_map, name="topology-map"),
    path("topologies/<name:name>/", machines.topology_page, name="topology"),
    path("fair-share/", views.fair_share_page, name="fair-share"),
    path("borrowing/", views.borrowing_page, name="borrowing"),
    path("evictions/", life_views.evictions_page, name="evictions"),
]
