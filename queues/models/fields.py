"""Columns that several tables share."""

from typing import TYPE_CHECKING, Any

from django.db import models

from gpuplatform.common import clock

if TYPE_CHECKING:  # the class is generic for the type checker only
    from django.db.models.expressions import Combinable

    _CharField = models.CharField[str | Combinable, str]
else:
    _CharField = models.CharField

NAME_LENGTH = 253  # a DNS subdomain, as Kubernetes allows for names


class NameField(_CharField):
    """The name of an object or of another object, as Kubernetes spells names."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        kwargs.setdefault("max_length", NAME_LENGTH)
        super().__init__(*args, **kwargs)


class Versioned(models.Model):
    """A row that people edit: ``version`` grows with each edit, so that a stale one is noticed."""

    version = models.PositiveIntegerField(default=1)
    created_at = models.DateTimeField(default=clock.now, editable=False)
    updated_at = models.DateTimeField(default=clock.now, editable=False)  # set by each edit

    class Meta:
        abstract = True
