"""The values of settings as this web process has read them; secrets only as set or not set."""

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from django.conf import settings
from django.utils.translation import gettext_lazy as _

from gpuplatform.common.money import digits
from gpuplatform.doors.installation.table import SETTINGS, Setting
from gpuplatform.environment import env

SET, NOT_SET, UNSET, YES, NO = "set", "not set", "unset", "yes", "no"
ENVIRONMENT, DEFAULT = "environment", "default"
ORIGINS = {ENVIRONMENT: _("environment"), DEFAULT: _("default")}
# Where the settings keep a value under another name than its variable's.
ELSEWHERE: Mapping[str, Callable[[], Any]] = {
    "GPUPLATFORM_HOME": lambda: settings.HOME,
    "GPUPLATFORM_SHARED": lambda: settings.SHARED_DATA.parent,
    "BEHIND_TLS_PROXY": lambda: settings.SECURE_PROXY_SSL_HEADER is not None,
    "DATABASE_POOL": lambda: env("DATABASE_POOL", "20"),
    "DATABASE_URL": lambda: settings.DATABASES["default"]["NAME"],
    "OIDC_SCOPES": lambda: " ".join(settings.OIDC_SCOPES),
    "MFA_REQUIRED_ROLES": lambda: sorted(settings.MFA_REQUIRED_ROLES),
    "MFA_ISSUER": lambda: settings.MFA_TOTP_ISSUER,
    "LOG_LEVEL": lambda: settings.LOGGING["root"]["level"],  # type: ignore[index]  # a dict
}


@dataclass(frozen=True, slots=True)
class Value:
    """A setting as it is in force; ``origin`` is one of ``ORIGINS``."""

    setting: Setting
    text: str
    origin: str

    @property
    def is_default(self) -> bool:
        """Return whether the environment says nothing."""
        return self.origin == DEFAULT


def setting_values() -> list[Value]:
    """Return every setting with its value, in the order of the table."""
    return [_value(setting) for setting in SETTINGS]


def source_secrets() -> list[str]:
    """Return the variables of sources that are set; their values are shown nowhere."""
    return sorted(settings.SOURCE_SECRETS)


def _value(setting: Setting) -> Value:
    origin = ENVIRONMENT if os.environ.get(setting.name) else DEFAULT
    read = ELSEWHERE.get(setting.name) or (lambda: getattr(settings, setting.name))
    found = read()
    if setting.secret:
        return Value(setting, SET if found else NOT_SET, origin)
    return Value(setting, words(found), origin)


def words(found: Any) -> str:
    """Return a value as one would write it in the environment, and nothing as ``unset``."""
    if found is None or found in ("", []):
        return UNSET
    if isinstance(found, bool):
        return YES if found else NO
    if isinstance(found, list | tuple):
        return ",".join(map(str, found))
    if isinstance(found, float):
        return f"{Decimal(repr(found)).normalize():f}"
    return digits(found) if isinstance(found, Decimal) else str(found)
