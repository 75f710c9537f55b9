"""Sessions that have ended are no longer kept."""

from datetime import timedelta
from typing import Any

from django.contrib.sessions.models import Session
from django.utils import timezone

from gpuplatform.common.tasks import forget_sessions


def test_only_sessions_that_have_ended_are_forgotten(db: Any) -> None:
    now = timezone.now()
    for key, days in (("old", -1), ("open", 1)):
        Session.objects.create(session_key=key, expire_date=now + timedelta(days=days))
    forget_sessions()
    assert list(Session.objects.values_list("session_key", flat=True)) == ["open"]
