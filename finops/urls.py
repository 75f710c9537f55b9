"""Addresses of the pages of money."""

from django.urls import path, register_converter

from finops.views import (
    bills,
    budgets,
    closing,
    cost,
    drift,
    hours,
    limits,
    mappings,
    prices,
    replays,
    shared,
    sources,
    token_prices,
)


class MonthConverter:
    """A month in an address: ``2026-06``."""

    regex = r"[12]\d{3}-(?:0[1-9]|1[0-2])"

    def to_python(self, value: str) -> str:
        """Return the name of the month."""
        return value

    def to_url(self, value: str) -> str:
        """Return it as it stands in an address."""
        return value


register_converter(MonthConverter, "month")

urlpatterns = [
    path("cost/", cost.cost, name="cost"),
    path("cost/by/", cost.cost_by, name="cost-by"),
    path("gpu-hours/", hours.hours, name="gpu-hours"),
    path("cost/<slug:kind>.json", cost.cost_chart, name="cost-chart"),
    path("bills/", bills.bill_months, name="bills"),
    path("bills/<month:month>/", bills.bill_month, name="bills-month"),
    path("bills/<month:month>/close/", closing.board, name="close-board"),
    path("bills/<month:month>/close/acknowledge/", closing.acknowledge, name="close-acknowledge"),
    path("bills/<month:month>/close/adjust/", closing.adjust, name="close-adjust"),
    path(
        "bills/<month:month>/close/adjust/<int:pk>/take-back/",
        closing.take_back,
        name="close-take-back",
    ),
    path("bills/<month:month>/close/<slug:step>/", closing.take_step, name="close-step"),
    path("bills/<month:month>/summary/", closing.summary, name="month-summary"),
    path("bills/<month:month>/rules/", shared.month_rules, name="month-rules"),
    path("bills/<month:month>/<slug:scope>/", bills.bill, name="bill"),
    path("bills/<month:month>/<slug:scope>/chart.json", bills.bill_chart, name="bill-chart"),
    path("drift/", drift.drift, name="drift"),
    path("replays/", replays.replay_list, name="replays"),
    path("replays/new/", replays.replay_new, name="replay-new"),
    path("replays/<uuid:uid>/", replays.replay, name="replay"),
    path("replays/<uuid:uid>/cancel/", replays.replay_cancel, name="replay-cancel"),
    path("replays/<uuid:uid>/<slug:kind>.json", replays.replay_chart, name="replay-chart"),
    path("budgets/", budgets.budget_list, name="budgets"),
    path("budgets/new/", budgets.budget_edit, name="budget-new"),
    path("budgets/limits/read/", limits.limits_read, name="limits-read"),
    path("budgets/limits/<int:pk>/push/", limits.limit_push, name="limit-push"),
    path("budgets/<slug:name>/edit/", budgets.budget_edit, name="budget-edit"),
    path("budgets/<slug:name>/delete/", budgets.budget_delete, name="budget-delete"),
    path("sources/", sources.source_list, name="sources"),
    path("sources/new/", sources.source_new, name="source-new"),
    path("sources/<slug:name>/", sources.source_detail, name="source"),
    path("sources/<slug:name>/edit/", sources.source_edit, name="source-edit"),
    path("sources/<slug:name>/test/", sources.source_test, name="source-test"),
    path("sources/<slug:name>/load/", sources.source_load, name="source-load"),
    path(
        "sources/<slug:name>/days/<day:day>/<slug:verdict>/",
        sources.source_judge,
        name="source-judge",
    ),
    path("mappings/", mappings.mapping_list, name="mappings"),
    path("mappings/new/", mappings.mapping_new, name="mapping-new"),
    path("mappings/assign/", mappings.mapping_assign, name="mapping-assign"),
    path("mappings/import/", mappings.mapping_import, name="mapping-import"),
    path("mappings/<int:pk>/end/", mappings.mapping_end, name="mapping-end"),
    path("shared-costs/", shared.shared_cost_list, name="shared-costs"),
    path("shared-costs/new/", shared.shared_cost_set, name="shared-cost-new"),
    path("shared-costs/<slug:name>/edit/", shared.shared_cost_set, name="shared-cost-edit"),
    path("shared-costs/<slug:name>/end/", shared.shared_cost_end, name="shared-cost-end"),
    path("prices/", prices.price_list, name="prices"),
    path("prices/new/", prices.price_new, name="price-new"),
    path("prices/<int:pk>/end/", prices.price_end, name="price-end"),
    path("prices/tokens/", token_prices.token_price_list, name="token-prices"),
    path("prices/calculator/", prices.price_calculator, name="price-calculator"),
]
