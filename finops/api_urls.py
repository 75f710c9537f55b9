"""Addresses of the REST resources of money, below ``/api/v1/``."""

from django.urls import path

from finops import api

urlpatterns = [
    path("prices/", api.PricesView.as_view(), name="api-prices"),
    path("bills/<str:month>/", api.BillMonthView.as_view(), name="api-bills-month"),
    path("bills/<str:month>/<slug:scope>/", api.BillView.as_view(), name="api-bill"),
]
