"""Settings: one file, values from the environment (see ``.env.example``)."""

import os
import re
from datetime import timedelta
from decimal import Decimal
from pathlib import Path

import dj_database_url
from csp.constants import SELF, UNSAFE_INLINE
from django.core.exceptions import ImproperlyConfigured
from django.core.management.utils import get_random_secret_key
from kombu import Queue

from gpuplatform.environment import env, env_bool, tune

BASE_DIR = Path(__file__).resolve().parent.parent


def secret_key(home: Path) -> str:
    """Return the secret from the environment, else the one kept in the data folder."""
    if given := env("SECRET_KEY"):
        return given
    path = home / "secret_key"
    try:
        path.touch(mode=0o600, exist_ok=False)
        path.write_text(get_random_secret_key())
    except FileExistsError:
        pass
    return path.read_text()


# ---- where we live ---------------------------------------------------------------------------
HOME = Path(env("GPUPLATFORM_HOME", str(BASE_DIR / ".gpuplatform")))
HOME.mkdir(mode=0o700, parents=True, exist_ok=True)
SECRET_KEY = secret_key(HOME)
# Corpora and traces that benches read; they are no part of a release.
SHARED_DATA = Path(env("GPUPLATFORM_SHARED", str(BASE_DIR.parent / "shared"))) / "data"
DEBUG = env_bool("DEBUG")
ALLOWED_HOSTS = env("ALLOWED_HOSTS", "localhost,127.0.0.1,[::1],testserver").split(",")
CSRF_TRUSTED_ORIGINS = [origin for origin in env("CSRF_TRUSTED_ORIGINS").split(",") if origin]
if env_bool("BEHIND_TLS_PROXY"):
    SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")
    SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = True
    SECURE_HSTS_SECONDS = 31_536_000

# ---- applications ----------------------------------------------------------------------------
INSTALLED_APPS = [
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "whitenoise.runserver_nostatic",
    "django.contrib.staticfiles",
    "django.forms",  # its widgets, found through TEMPLATES
    "rest_framework",
    "knox",
    "drf_spectacular",
    "drf_spectacular_sidecar",
    "django_filters",
    "django_tables2",
    "django_htmx",
    "csp",
    "allauth",
    "allauth.account",
    "allauth.mfa",
    "allauth.socialaccount",
    "gpuplatform.common",
    "gpuplatform.doors",
    "queues",
    "scheduling",
    "finops",
]
MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "gpuplatform.common.middleware.RequestIdMiddleware",
    "gpuplatform.common.unchanged.UnchangedMiddleware",
    "gpuplatform.common.threshold.ThresholdMiddleware",
    "csp.middleware.CSPMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "gpuplatform.common.language.LanguageMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
    "allauth.account.middleware.AccountMiddleware",
]
ROOT_URLCONF = "gpuplatform.urls"
WSGI_APPLICATION = "gpuplatform.wsgi.application"
ASGI_APPLICATION = "gpuplatform.asgi.application"
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.template.context_processors.i18n",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
                "gpuplatform.common.context.shell",
            ],
        },
    },
]
AUTHENTICATION_BACKENDS = ["queues.known.People"]
FORM_RENDERER = "django.forms.renderers.TemplatesSetting"

# ---- database and broker: the embedded pair unless told otherwise -----------------------------
DATABASES = {
    "default": dj_database_url.parse(env("DATABASE_URL", f"sqlite:///{HOME / 'db.sqlite3'}"))
}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
tune(DATABASES["default"], env("DATABASE_POOL"))

# Counts attempts to sign in, for all web processes of this machine.
CACHES = {
    "default": {
        "BACKEND": "django.core.cache.backends.filebased.FileBasedCache",
        "LOCATION": str(HOME / "cache"),
        "OPTIONS": {"MAX_ENTRIES": 10_000},
    }
}

CELERY_BROKER_URL = env("CELERY_BROKER_URL", "filesystem://localhost")
if CELERY_BROKER_URL.startswith("filesystem"):
    _queue = HOME / "broker"
    for _name in ("messages", "control"):
        (_queue / _name).mkdir(mode=0o700, parents=True, exist_ok=True)
    CELERY_BROKER_TRANSPORT_OPTIONS = {
        "data_folder_in": str(_queue / "messages"),
        "data_folder_out": str(_queue / "messages"),
        "control_folder": str(_queue / "control"),
        "polling_interval": 0.1,
    }
else:
    # A broker that hangs holds nobody up for long, and a page least of all: who wakes tries once.
    CELERY_BROKER_TRANSPORT_OPTIONS = {
        "visibility_timeout": 300,
        "socket_timeout": 2,
        "socket_connect_timeout": 2,
        "max_retries": 0,
    }
CELERY_TASK_IGNORE_RESULT = True
CELERY_TASK_DEFAULT_QUEUE = "cost"
# A worker that is told nothing listens to all of them.
CELERY_TASK_QUEUES = [Queue("cycle"), Queue("cost"), Queue("mail")]
CELERY_TASK_SOFT_TIME_LIMIT = 100
CELERY_TASK_TIME_LIMIT = 120
CELERY_WORKER_HIJACK_ROOT_LOGGER = False
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
CELERY_TASK_PUBLISH_RETRY = False  # a lost wake-up costs one beat tick, a hanging request more
CELERY_TIMEZONE = "UTC"
CELERY_BEAT_SCHEDULER = "gpuplatform.common.timetable:SteadyScheduler"

# ---- people ----------------------------------------------------------------------------------
AUTH_USER_MODEL = "queues.User"
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": "django.contrib.auth.password_validation.MinimumLengthValidator"},
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
]
LOGIN_URL = "login"
LOGIN_REDIRECT_URL = "overview"
LOGOUT_REDIRECT_URL = "login"
# allauth takes a sign-in through its steps. Wrong guesses are counted by queues.patience alone.
ACCOUNT_ADAPTER = "queues.sign_in.adapters.AccountAdapter"
ACCOUNT_EMAIL_VERIFICATION = "none"
ACCOUNT_RATE_LIMITS = False
# Who of platform admins, finance, auditors and team leads needs a second factor in a browser.
MFA_REQUIRED_ROLES = frozenset(env("MFA_REQUIRED_ROLES").replace(",", " ").split())
if unknown := MFA_REQUIRED_ROLES - {"admin", "finance", "auditor", "lead"}:
    raise ImproperlyConfigured(f"MFA_REQUIRED_ROLES: there is no role {min(unknown)!r}")
MFA_ADAPTER = "queues.sign_in.adapters.FactorAdapter"
MFA_TOTP_ISSUER = env("MFA_ISSUER", "gpuplatform")
MFA_TOTP_TOLERANCE = 1  # clocks of phones are off
MFA_RECOVERY_CODES_SHOW_ONCE = True
# The company's identity provider (OpenID Connect): where it is, and as whom we ask it.
SOCIALACCOUNT_ADAPTER = "queues.sign_in.provider.SocialAdapter"
OIDC_ISSUER = env("OIDC_ISSUER").rstrip("/")
OIDC_CLIENT_ID, OIDC_CLIENT_SECRET = env("OIDC_CLIENT_ID"), env("OIDC_CLIENT_SECRET")
_is_safe = re.match(r"https://|http://(localhost|127\.0\.0\.1)[:/]", OIDC_ISSUER)
if OIDC_ISSUER and not (_is_safe and OIDC_CLIENT_ID):
    raise ImproperlyConfigured("OIDC_ISSUER must be an https address, and needs OIDC_CLIENT_ID")
OIDC_SCOPES = env("OIDC_SCOPES", "openid profile email").split()
OIDC_NAME = env("OIDC_NAME", "single sign-on")
OIDC_GROUPS_CLAIM = env("OIDC_GROUPS_CLAIM", "groups")  # realm_access.roles: one in another
OIDC_WITHOUT_GROUP = env_bool("OIDC_WITHOUT_GROUP")  # who has no place here comes in all the same
OIDC_ASK = env("OIDC_ASK", "a platform admin")  # and whom the others are told to ask
OIDC_LINK_BY_EMAIL = env_bool("OIDC_LINK_BY_EMAIL", True)  # one that the provider has verified
OIDC_SESSION_HOURS = float(env("OIDC_SESSION_HOURS", "12"))  # then groups are asked for again
OIDC_IS_SECOND_FACTOR = env_bool("OIDC_IS_SECOND_FACTOR")
# The one admin who may use a password, where all others come through the provider; empty: all may.
LOCAL_SIGN_IN_ONLY = env("LOCAL_SIGN_IN_ONLY")

# ---- pages -----------------------------------------------------------------------------------
LANGUAGE_CODE = "en"
LANGUAGES = [("en", "English"), ("de", "Deutsch"), ("es", "Español")]
LOCALE_PATHS = [BASE_DIR / "locale"]
USE_I18N = True
USE_TZ = True
TIME_ZONE = "UTC"
STATIC_URL = "static/"
STATIC_ROOT = Path(env("STATIC_ROOT", str(HOME / "static")))
STATIC_ROOT.mkdir(parents=True, exist_ok=True)  # whitenoise warns about a missing folder
STATICFILES_DIRS = [BASE_DIR / "static"]
STATICFILES_FINDERS = [
    "django.contrib.staticfiles.finders.FileSystemFinder",
    "django.contrib.staticfiles.finders.AppDirectoriesFinder",
    "gpuplatform.common.static.PlotlyFinder",
]
# Where files were collected and compressed (the image), only those are served.
WHITENOISE_USE_FINDERS = not env("STATIC_ROOT")
# Files of the source tree may change under a running server (git pull): look again each time.
WHITENOISE_AUTOREFRESH = WHITENOISE_USE_FINDERS
WHITENOISE_SKIP_COMPRESS_EXTENSIONS = ["map", "js", "css"] if DEBUG else ["map"]
DJANGO_TABLES2_TEMPLATE = "components/table.html"
CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": [SELF],
        "img-src": [SELF, "data:", "blob:"],
        # Plotly writes style attributes; scripts stay strict.
        "style-src": [SELF, UNSAFE_INLINE],
        "frame-ancestors": ["'none'"],
        "form-action": [SELF],
        "base-uri": ["'none'"],
    },
}
X_FRAME_OPTIONS = "DENY"
SECURE_REFERRER_POLICY = "same-origin"
SECURE_CROSS_ORIGIN_OPENER_POLICY = "same-origin"

# ---- REST ------------------------------------------------------------------------------------
DATA_UPLOAD_MAX_MEMORY_SIZE = 1024 * 1024
# What the server takes in at all, of any kind, and how long a body may take to come.
BODY_MAX_BYTES = int(env("BODY_MAX_BYTES", str(4 * 1024 * 1024)))
BODY_TIMEOUT_S = float(env("BODY_TIMEOUT_S", "30"))
# How many requests a token may make at once, and a second in the long run; 0 a second: any.
API_BURST = int(env("API_BURST", "1000"))
API_PER_S = float(env("API_PER_S", "200"))
REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": [
        "queues.tokens.BearerAuthentication",
        "rest_framework.authentication.SessionAuthentication",
    ],
    "DEFAULT_PERMISSION_CLASSES": ["rest_framework.permissions.IsAuthenticated"],
    "DEFAULT_THROTTLE_CLASSES": ["queues.throttling.PerToken", "queues.throttling.PerUser"],
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "DEFAULT_PARSER_CLASSES": ["gpuplatform.common.parsers.StrictJSONParser"],
    "DEFAULT_SCHEMA_CLASS": "gpuplatform.doors.schema.Schema",
    "EXCEPTION_HANDLER": "gpuplatform.common.http.handle_exception",
}
SPECTACULAR_SETTINGS = {
    "TITLE": "gpuplatform",
    "VERSION": "1",
    "OAS_VERSION": "3.1.0",
    "SERVE_INCLUDE_SCHEMA": False,
    "POSTPROCESSING_HOOKS": [
        "drf_spectacular.hooks.postprocess_schema_enums",
        "gpuplatform.doors.schema.anything",
        "gpuplatform.doors.schema.add_problem",
        "gpuplatform.doors.schema.name_shapes",
        "gpuplatform.doors.schema.loosen_rows",
    ],
    "SWAGGER_UI_DIST": "SIDECAR",
    "SWAGGER_UI_FAVICON_HREF": "SIDECAR",
    "ENUM_NAME_OVERRIDES": {
        "TopologyMode": "scheduling.workload_body.MODES",
        "FlavorSearch": "queues.choices.FlavorSearch",
    },
    "REDOC_DIST": "SIDECAR",
}

# ---- the product's own knobs -----------------------------------------------------------------
CURRENCY = env("CURRENCY", "EUR")
BILLING_TIME_ZONE = env("BILLING_TIME_ZONE", "UTC")
INVOICE_PREFIX = env("INVOICE_PREFIX", "GPU")  # of the numbers: GPU-2026-000001
PLATFORM_COST_CENTER = env("PLATFORM_COST_CENTER", "platform")  # what postings credit
# What late data must change on some line of a closed month before it is booked.
ADJUSTMENT_THRESHOLD = Decimal(env("ADJUSTMENT_THRESHOLD", "0.50"))
# What the cluster that we schedule is called where others count its cost.
CLUSTER_NAME = env("CLUSTER_NAME", "")
# Refuse what can never run at submit time, or accept it as blocked with the same reasons.
ACCEPT_IMPOSSIBLE_WORKLOADS = env_bool("ACCEPT_IMPOSSIBLE_WORKLOADS")
# How high a number of priority may be that leads and members give; named classes may be higher.
OWN_PRIORITY_LIMIT = int(env("OWN_PRIORITY_LIMIT", "100"))
# Kueue's resource transformations as a JSON list: what quota charges for a request.
RESOURCE_TRANSFORMATIONS = env("RESOURCE_TRANSFORMATIONS", "[]")
# How long a gang that lost pods with a node keeps its place; 0: not at all, negative: for ever.
GANG_GRACE_S = float(env("GANG_GRACE_S", "60"))
# How long all pods of a gang may take to be ready, and to be so again; 0 or less: for ever. Who is
# not rests 60 s, 120 s, 240 s ... and is tried again; after so many times it is deactivated
# (empty: never). Its place among its equals is then as old as the eviction, or as the submission.
PODS_READY_TIMEOUT_S = float(env("PODS_READY_TIMEOUT_S", "1800"))
PODS_READY_RECOVERY_S = float(env("PODS_READY_RECOVERY_S", str(PODS_READY_TIMEOUT_S)))
REQUEUE_BASE_S = float(env("REQUEUE_BASE_S", "60"))
REQUEUE_MAX_S = float(env("REQUEUE_MAX_S", "3600"))
REQUEUE_LIMIT = int(env("REQUEUE_LIMIT")) if env("REQUEUE_LIMIT") else None
REQUEUE_TIMESTAMP = env("REQUEUE_TIMESTAMP", "Eviction")  # or Creation
# Pods without GPUs never take what goes with free GPUs, or only come to GPU nodes last.
KEEP_CPU_FOR_GPUS = env_bool("KEEP_CPU_FOR_GPUS")
# How long a gang waits before nodes that empty are held for it, in seconds; negative: for ever.
# How large it is at least, in GPUs (in pods where it asks for none).
STARVATION_TIMEOUT_S = env("STARVATION_TIMEOUT_S", "3600")
RESERVATION_MIN_GPUS = env("RESERVATION_MIN_GPUS", "2")
# Whether running gangs are moved so that a blocked one fits, and how many GPU-hours of progress
# each such move may throw away in all; unset: nobody moves, negative: any.
CONSOLIDATION_GPU_HOURS = env("CONSOLIDATION_GPU_HOURS")
# Hosts (with the port, where one is written) that sources of cost and usage may be on. No other
# host is ever called, whatever address somebody enters.
SOURCE_HOSTS = [host.strip().lower() for host in env("SOURCE_HOSTS").split(",") if host.strip()]
# Networks (10.0.0.0/8) that webhooks may call although they are not public, and if any are named,
# the only hosts (hooks.example.org, *.example.org) that they may call.
WEBHOOK_NETWORKS = [part.strip() for part in env("WEBHOOK_NETWORKS").split(",") if part.strip()]
WEBHOOK_HOSTS = [host.strip().lower() for host in env("WEBHOOK_HOSTS").split(",") if host.strip()]
# SOURCE_<NAME>_TOKEN, _USER, _PASSWORD, _DSN: kept nowhere else, shown nowhere.
SOURCE_SECRETS = {
    name: value
    for name, value in os.environ.items()
    if re.fullmatch(r"SOURCE_[A-Z0-9_]+_(TOKEN|USER|PASSWORD|DSN)", name) and value
}
# Who may read /metrics: the holder of this token, and these networks (10.0.0.0/8,::1/128).
METRICS_TOKEN = env("METRICS_TOKEN")
METRICS_ALLOW = [part.strip() for part in env("METRICS_ALLOW").split(",") if part.strip()]
# Where admitted work runs: nowhere (simulated), or on the machines of agents (external).
CLUSTER_BACKEND = env("CLUSTER_BACKEND", "simulated")
# The nodes of an agent of which nothing was heard for so long count as not ready; how often an
# agent is told to ask what it should run.
AGENT_SILENT_AFTER_S = float(env("AGENT_SILENT_AFTER_S", "60"))
AGENT_POLL_S = float(env("AGENT_POLL_S", "2"))
# How long a cycle worker that died may keep the right to decide; how often an idle one says so.
CYCLE_LEASE_S = int(env("CYCLE_LEASE_S", "10"))
# PostgreSQL ends the transaction of a decider that says nothing for so long (paused, cut off), so
# that its locks keep nobody else from going on.
CYCLE_STUCK_S = float(env("CYCLE_STUCK_S", "60"))
# How many programs may follow workloads (?watch=1) at one web process, and how many of one person.
WATCHES_MAX = int(env("WATCHES_MAX", "200"))
WATCHES_MAX_OF_ONE = int(env("WATCHES_MAX_OF_ONE", "10"))
# Written by `manage.py demo`: beat then submits a short job now and then.
DEMO = (HOME / "demo.json").exists()
CYCLES_KEPT = 2_000
# Whether a process keeps what new work is judged against until a version changes; tests, which
# write rows behind the services' backs, do not.
WORLD_KEPT = True
# How much past work a replay under other quotas plays at most (finops/replaying).
REPLAY_MOST_WORKLOADS = int(env("REPLAY_MOST_WORKLOADS", "20000"))
# For how many days finished work, and lines of its story, are kept; empty: for ever.
FINISHED_KEPT_DAYS = float(env("FINISHED_KEPT_DAYS")) if env("FINISHED_KEPT_DAYS") else None
EVENTS_KEPT_DAYS = float(env("EVENTS_KEPT_DAYS")) if env("EVENTS_KEPT_DAYS") else None

# ---- mail and logs ---------------------------------------------------------------------------
# Alerts are mailed where there is a server to send them through.
EMAIL_HOST = env("EMAIL_HOST")
ALERT_MAIL = env_bool("ALERT_MAIL", bool(EMAIL_HOST))
EMAIL_BACKEND = env(
    "EMAIL_BACKEND",
    f"django.core.mail.backends.{'smtp' if EMAIL_HOST else 'console'}.EmailBackend",
)
EMAIL_PORT = int(env("EMAIL_PORT", "25"))
EMAIL_HOST_USER = env("EMAIL_HOST_USER")
EMAIL_HOST_PASSWORD = env("EMAIL_HOST_PASSWORD")
EMAIL_USE_TLS = env_bool("EMAIL_USE_TLS")
EMAIL_USE_SSL = env_bool("EMAIL_USE_SSL")
EMAIL_TIMEOUT = 10  # seconds for each answer of the server
DEFAULT_FROM_EMAIL = env("DEFAULT_FROM_EMAIL", "gpuplatform@localhost")
# Where people reach the platform, for links in letters: https://gpu.example.org
SITE_URL = env("SITE_URL").rstrip("/")
LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"line": {"format": "%(asctime)s %(levelname)s %(name)s %(message)s"}},
    "handlers": {"console": {"class": "logging.StreamHandler", "formatter": "line"}},
    "root": {"handlers": ["console"], "level": env("LOG_LEVEL", "INFO")},
    "loggers": {
        "celery": {"level": "WARNING"},
        "django.request": {"level": "ERROR"},
        "httpx": {"level": "WARNING"},
    },
}

# ---- tokens ----------------------------------------------------------------------------------
KNOX_TOKEN_MODEL = "queues.ApiToken"
# Its own token table is not ours: unmigrated, and swapped away, it is never made. With it, a
# PostgreSQL test database cannot be emptied (its foreign key is unknown to Django).
MIGRATION_MODULES = {"knox": None}
REST_KNOX = {
    "TOKEN_MODEL": "queues.ApiToken",
    "AUTH_HEADER_PREFIX": "Bearer",
    "TOKEN_TTL": timedelta(days=90),
}
