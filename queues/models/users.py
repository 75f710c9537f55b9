"""People who sign in, and service accounts that only hold tokens."""

from django.contrib.auth.models import AbstractUser
from django.db import models


class User(AbstractUser):  # type: ignore[django-manager-missing]  # knox is untyped
    """A person or a service account. What they may do stands in roles and memberships.

    ``alert_mail``: whether they want to be told of alerts that concern them. ``language``: of the
    pages; "" leaves it to their browser.
    """

    alert_mail = models.BooleanField(default=True)
    language = models.CharField(max_length=8, blank=True, default="")
