"""Columns that several tables share."""

from typing import Any

from django.db import models

NAME_LENGTH = 253  # a DNS subdomain, as Kubernetes allows for names


class NameField(models.CharField):  # type: ignore[type-arg]
    """The name of an object or of another object, as Kubernetes spells names."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        kwargs.setdefault("max_length", NAME_LENGTH)
        super().__init__(*args, **kwargs)


class Versioned(models.Model):
    """A row that people edit: ``version`` grows with each edit, so that a stale one is noticed."""

    version = models.PositiveIntegerField(default=1)
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        abstract = True
