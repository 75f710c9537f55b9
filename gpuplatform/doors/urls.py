"""Addresses of manifests, of the REST schema and its reader, and of what is not there."""

from django.urls import URLPattern, path, re_path
from drf_spectacular.views import (
    SpectacularJSONAPIView,
    SpectacularRedocView,
    SpectacularSwaggerSplitView,
)
from rest_framework.permissions import AllowAny

from gpuplatform.doors import webhook_api as api
from gpuplatform.doors.api import ManifestsView, UnknownAddress
from gpuplatform.doors.installation.api import SettingsView
from gpuplatform.doors.operations import api as operations

urlpatterns: list[URLPattern] = [
    path("api/v1/manifests/", ManifestsView.as_view(), name="api-manifests"),
    path("api/v1/settings/", SettingsView.as_view(), name="api-settings"),
    path("api/v1/operations/", operations.OperationsView.as_view(), name="api-operations"),
    path(
        "api/v1/operations/<uuid:uid>/", operations.OperationView.as_view(), name="api-operation"
    ),
    path(
        "api/v1/operations/<uuid:uid>/result/",
        operations.OperationResultView.as_view(),
        name="api-operation-result",
    ),
    path("api/v1/webhooks/", api.WebhooksView.as_view(), name="api-webhooks"),
    path("api/v1/webhooks/<uuid:uid>/", api.WebhookView.as_view(), name="api-webhook"),
    path(
        "api/v1/webhooks/<uuid:uid>/deliveries/",
        api.DeliveriesView.as_view(),
        name="api-webhook-deliveries",
    ),
    path(
        "api/v1/webhooks/<uuid:uid>/deliveries/<uuid:delivery>/again/",
        api.AgainView.as_view(),
        name="api-webhook-again",
    ),
    path("api/v1/webhooks/<uuid:uid>/test/", api.TestView.as_view(), name="api-webhook-test"),
    path(
        "api/v1/webhooks/<uuid:uid>/secret/",
        api.SecretView.as_view(),
        name="api-webhook-secret",
    ),
    path(
        "api/v1/openapi.json",
        SpectacularJSONAPIView.as_view(permission_classes=[AllowAny]),
        name="api-schema",
    ),
    path(
        "api/docs/",
        SpectacularSwaggerSplitView.as_view(url_name="api-schema", permission_classes=[AllowAny]),
        name="api-docs",
    ),
    path(
        "api/redoc/",
        SpectacularRedocView.as_view(
            url_name="api-schema",
            permission_classes=[AllowAny],
            template_name="doors/redoc.html",
        ),
        name="api-redoc",
    ),
    re_path(r"^api/", UnknownAddress.as_view()),
]
