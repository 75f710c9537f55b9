"""The addresses of the house; the only file that imports all rooms."""

from django.contrib.auth.views import LogoutView
from django.urls import URLPattern, URLResolver, include, path, register_converter
from django.views.i18n import set_language

from gpuplatform.common import health
from gpuplatform.common.pages import DayConverter, NameConverter
from gpuplatform.doors import views as doors
from gpuplatform.doors import webhook_pages as webhooks
from gpuplatform.doors.failures import failures_page
from gpuplatform.doors.installation.pages import settings_page
from gpuplatform.doors.metrics import metrics
from gpuplatform.doors.onboarding.pages import team_begin, team_onboard
from gpuplatform.doors.search import search_page
from queues.second_factor import CodePage
from queues.signing_in import PatientLogin, provider_begin, provider_callback

handler400 = "gpuplatform.common.http.bad_request"
handler404 = "gpuplatform.common.http.not_found"
handler500 = "gpuplatform.common.http.server_error"

register_converter(NameConverter, "name")
register_converter(DayConverter, "day")

urlpatterns: list[URLPattern | URLResolver] = [
    path("login/", PatientLogin.as_view(), name="login"),
    path("login/", PatientLogin.as_view(), name="account_login"),  # what allauth calls it
    path("login/code/", CodePage.as_view(), name="mfa_authenticate"),
    path("login/provider/", provider_begin, name="provider-begin"),
    path("login/provider/callback/", provider_callback, name="provider-callback"),
    path("language/", set_language, name="set-language"),  # of this browser
    path("logout/", LogoutView.as_view(), name="logout"),
    path("healthz", health.healthz, name="healthz"),
    path("readyz", health.readyz, name="readyz"),
    path("metrics", metrics, name="metrics"),
    path("api/v1/", include("scheduling.api_urls")),
    path("api/v1/", include("queues.api_urls")),
    path("api/v1/", include("finops.api_urls")),
    path("", include("gpuplatform.doors.urls")),  # ends with what is not there under /api/
    path("search/", search_page, name="search"),
    path("failures/", failures_page, name="failures"),
    path("settings/", settings_page, name="settings"),
    path("submit/", doors.submit_page, name="submit"),
    path("teams/onboard/", team_onboard, name="team-onboard"),
    path("teams/<name:name>/begin/", team_begin, name="team-begin"),
    path("webhooks/", webhooks.webhooks_page, name="webhooks"),
    path("webhooks/new/", webhooks.webhook_new, name="webhook-new"),
    path("webhooks/<uuid:uid>/", webhooks.webhook_page, name="webhook"),
    path("webhooks/<uuid:uid>/edit/", webhooks.webhook_edit, name="webhook-edit"),
    path("webhooks/<uuid:uid>/test/", webhooks.webhook_test, name="webhook-test"),
    path("webhooks/<uuid:uid>/secret/", webhooks.webhook_secret, name="webhook-secret"),
    path("webhooks/<uuid:uid>/delete/", webhooks.webhook_delete, name="webhook-delete"),
    path("webhooks/<uuid:uid>/again/", webhooks.webhook_again, name="webhook-again"),
    path("", include("queues.urls")),  # before scheduling's: "queues/new/" is not a queue
    path("", include("finops.urls")),
    path("", include("scheduling.urls")),
]
