"""Addresses of this room's pages; mounted at the root, before those of the rooms above."""

from django.urls import path

from queues import (
    account,
    editors,
    groups,
    people,
    quota_edits,
    quota_requests,
    second_factor,
    views,
)

urlpatterns = [
    path("queues/new/", editors.queue_edit, name="queue-new"),
    path("queues/<name:name>/edit/", editors.queue_edit, name="queue-edit"),
    path("cohorts/new/", editors.cohort_edit, name="cohort-new"),
    path("cohorts/<name:name>/edit/", editors.cohort_edit, name="cohort-edit"),
    path("flavors/new/", editors.flavor_edit, name="flavor-new"),
    path("flavors/<name:name>/edit/", editors.flavor_edit, name="flavor-edit"),
    path("priority-classes/new/", editors.priority_class_edit, name="priority-class-new"),
    path(
        "priority-classes/<slug:kind>/<name:name>/edit/",
        editors.priority_class_edit,
        name="priority-class-edit",
    ),
    path("topologies/new/", editors.topology_edit, name="topology-new"),
    path("topologies/<name:name>/edit/", editors.topology_edit, name="topology-edit"),
    path("teams/", views.teams_page, name="teams"),
    path("teams/new/", editors.team_edit, name="team-new"),
    path("teams/<name:name>/", views.team_page, name="team"),
    path("teams/<name:name>/edit/", editors.team_edit, name="team-edit"),
    path("teams/<name:name>/members/", views.team_member, name="team-member"),
    path("teams/<name:name>/namespaces/", views.team_namespace, name="team-namespace"),
    path("teams/<name:name>/local-queues/", views.team_local_queue, name="team-local-queue"),
    path("requests/", quota_requests.request_list, name="requests"),
    path("requests/new/", quota_requests.request_new, name="request-new"),
    path("requests/<int:pk>/", quota_requests.request_page, name="request"),
    path("requests/<int:pk>/decide/", quota_requests.request_decide, name="request-decide"),
    path("requests/<int:pk>/withdraw/", quota_requests.request_withdraw, name="request-withdraw"),
    path("quotas/", quota_edits.quotas_edit, name="quotas-edit"),
    path("people/", people.people_page, name="people"),
    path("people/new/", people.person_new, name="person-new"),
    path("people/groups/", groups.groups_page, name="groups"),
    path("people/groups/remove/", groups.group_remove, name="group-remove"),
    path("people/<name:username>/edit/", people.person_edit, name="person-edit"),
    path("people/<name:username>/password/", people.person_password, name="person-password"),
    path("people/<name:username>/second-factor/", people.person_factor, name="person-factor"),
    path("account/", account.account_page, name="account"),
    path("account/password/", account.ChangePassword.as_view(), name="account-password"),
    path("account/mail/", account.alert_mail, name="account-mail"),
    path("account/language/", account.language, name="account-language"),
    path("account/tokens/", account.token_new, name="account-tokens"),
    path("account/tokens/revoke/", account.token_revoke, name="account-token-revoke"),
    path("account/second-factor/", second_factor.factor_page, name="second-factor"),
    path("account/second-factor/", second_factor.factor_page, name="mfa_index"),
    path("account/second-factor/app/", second_factor.SetUp.as_view(), name="mfa_activate_totp"),
    path(
        "account/second-factor/remove/",
        second_factor.Remove.as_view(),
        name="mfa_deactivate_totp",
    ),
    path(
        "account/second-factor/codes/",
        second_factor.Codes.as_view(),
        name="mfa_view_recovery_codes",
    ),
    path(
        "account/second-factor/codes/new/",
        second_factor.NewCodes.as_view(),
        name="mfa_generate_recovery_codes",
    ),
    path(
        "account/second-factor/code/", second_factor.CodeAgain.as_view(), name="mfa_reauthenticate"
    ),
    path(
        "account/password/again/",
        second_factor.PasswordAgain.as_view(),
        name="account_reauthenticate",
    ),
    path("audit/", views.audit_page, name="audit"),
]
