"""Addresses of this room's pages; mounted at the root, after those of the queues room."""

from django.urls import path

from scheduling import views

urlpatterns = [
    path("", views.overview, name="overview"),
    path("charts/quota-use/", views.quota_use_chart, name="chart-quota-use"),
    path("charts/borrowed/", views.borrowed_chart, name="chart-borrowed"),
    path("queues/", views.queues_page, name="queues"),
    path("queues/<name:name>/", views.queue_page, name="queue"),
    path("cohorts/<name:name>/", views.cohort_page, name="cohort"),
    path("workloads/", views.workloads_page, name="workloads"),
    path("workloads/<uuid:uid>/", views.workload_page, name="workload"),
    path("workloads/<uuid:uid>/cancel/", views.workload_cancel, name="workload-cancel"),
    path("nodes/", views.nodes_page, name="nodes"),
    path("nodes/<name:name>/", views.node_page, name="node"),
    path("nodes/<name:name>/cordon/", views.node_cordon, name="node-cordon"),
    path("borrowing/", views.borrowing_page, name="borrowing"),
]
