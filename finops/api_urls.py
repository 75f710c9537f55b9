"""Addresses of the REST resources of money, below ``/api/v1/``."""

from django.urls import path

from finops import (
    api,
    budget_api,
    closing_api,
    cost_api,
    mapping_api,
    replay_api,
    shared_api,
    source_api,
)

urlpatterns = [
    path("prices/tokens/", cost_api.TokenPricesView.as_view(), name="api-token-prices"),
    path("prices/", api.PricesView.as_view(), name="api-prices"),
    path("bills/<str:month>/", api.BillMonthView.as_view(), name="api-bills-month"),
    path(
        "bills/<str:month>/files/<slug:kind>/", api.BillFileView.as_view(), name="api-bill-files"
    ),
    path(
        "bills/<str:month>/<slug:scope>/files/<slug:kind>/",
        api.TeamBillFileView.as_view(),
        name="api-bill-file",
    ),
    path("bills/<str:month>/<slug:scope>/", api.BillView.as_view(), name="api-bill"),
    path("cost/", cost_api.CostView.as_view(), name="api-cost"),
    path("gpu-hours/", cost_api.HoursView.as_view(), name="api-gpu-hours"),
    path("mappings/", mapping_api.MappingsView.as_view(), name="api-mappings"),
    path("mappings/unmatched/", mapping_api.UnmatchedView.as_view(), name="api-unmatched"),
    path("mappings/<int:pk>/end/", mapping_api.MappingEndView.as_view(), name="api-mapping-end"),
    path("drift/<str:month>/", closing_api.DriftView.as_view(), name="api-drift"),
    path("budgets/", budget_api.BudgetsView.as_view(), name="api-budgets"),
    path("budgets/<slug:name>/", budget_api.BudgetView.as_view(), name="api-budget"),
    path("litellm-limits/", budget_api.LimitsView.as_view(), name="api-limits"),
    path(
        "litellm-limits/<int:pk>/push/", budget_api.LimitPushView.as_view(), name="api-limit-push"
    ),
    path("periods/", closing_api.PeriodsView.as_view(), name="api-periods"),
    path("periods/<str:month>/", closing_api.PeriodView.as_view(), name="api-period"),
    path(
        "periods/<str:month>/policy/", closing_api.PolicyView.as_view(), name="api-period-policy"
    ),
    path(
        "periods/<str:month>/summary/",
        closing_api.PeriodSummaryView.as_view(),
        name="api-period-summary",
    ),
    path(
        "periods/<str:month>/acknowledgements/",
        closing_api.AcknowledgementsView.as_view(),
        name="api-period-acknowledgements",
    ),
    path(
        "periods/<str:month>/adjustments/",
        closing_api.AdjustmentsView.as_view(),
        name="api-period-adjustments",
    ),
    path(
        "periods/<str:month>/adjustments/<int:pk>/",
        closing_api.AdjustmentView.as_view(),
        name="api-period-adjustment",
    ),
    path(
        "periods/<str:month>/rebuild/",
        closing_api.PeriodRebuildView.as_view(),
        name="api-period-rebuild",
    ),
    path(
        "periods/<str:month>/<slug:step>/",
        closing_api.PeriodStepView.as_view(),
        name="api-period-step",
    ),
    path("shared-costs/", shared_api.SharedCostsView.as_view(), name="api-shared-costs"),
    path("shared-costs/<slug:name>/", shared_api.SharedCostView.as_view(), name="api-shared-cost"),
    path("replays/", replay_api.ReplaysView.as_view(), name="api-replays"),
    path("replays/<uuid:uid>/", replay_api.ReplayView.as_view(), name="api-replay"),
    path("sources/", source_api.SourcesView.as_view(), name="api-sources"),
    path("sources/<slug:name>/", source_api.SourceView.as_view(), name="api-source"),
    path("sources/<slug:name>/test/", source_api.SourceTestView.as_view(), name="api-source-test"),
    path("sources/<slug:name>/days/", source_api.SourceDaysView.as_view(), name="api-source-days"),
    path(
        "sources/<slug:name>/days/<day:day>/",
        source_api.SourceDayView.as_view(),
        name="api-source-day",
    ),
    path(
        "sources/<slug:name>/days/<day:day>/<slug:verdict>/",
        source_api.SourceVerdictView.as_view(),
        name="api-source-verdict",
    ),
]
