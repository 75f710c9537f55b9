"""Every setting that the environment makes: its name, what it means, its unit and its default.

``docs/production.md`` explains the same set at length; a test holds the two, this installation's
``settings.py`` and ``.env.example`` together.
"""

from dataclasses import dataclass

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

PLACE, MONEY, DECIDING = _("Where it lives"), _("Money"), _("Deciding")
KEPT, DOORS, MAIL = _("What is kept"), _("Doors"), _("Mail")
SIGN_IN = _("Signing in")


@dataclass(frozen=True, slots=True)
class Setting:
    """A variable of the environment; ``secret``: its value is shown nowhere.

    ``default`` is in words where it depends on something, else as one would write it.
    """

    name: str
    group: str | Promise
    default: str
    meaning: str | Promise
    unit: str = ""
    secret: bool = False


SETTINGS = (
    Setting(
        "GPUPLATFORM_HOME",
        PLACE,
        ".gpuplatform in the source folder",
        _("folder of the embedded database, the broker's messages and the secret"),
    ),
    Setting(
        "GPUPLATFORM_SHARED",
        PLACE,
        "shared beside the source folder",
        _("corpora and traces that benches read"),
    ),
    Setting(
        "SECRET_KEY", PLACE, "made once, kept in the data folder", _("signs sessions"), secret=True
    ),
    Setting("DEBUG", PLACE, "no", _("stack traces in the browser; never in production")),
    Setting(
        "ALLOWED_HOSTS",
        PLACE,
        "localhost,127.0.0.1,[::1],testserver",
        _("host names that are answered"),
    ),
    Setting(
        "CSRF_TRUSTED_ORIGINS",
        PLACE,
        "none",
        _("origins that may post forms, such as https://gpu.example.org"),
    ),
    Setting("BEHIND_TLS_PROXY", PLACE, "no", _("yes: what a proxy says about https is believed")),
    Setting(
        "DATABASE_POOL", PLACE, "20", _("connections to PostgreSQL that one web process keeps")
    ),
    Setting(
        "DATABASE_URL", PLACE, "SQLite in the data folder", _("where the database is"), secret=True
    ),
    Setting(
        "CELERY_BROKER_URL",
        PLACE,
        "a folder in the data folder",
        _("where messages between the processes wait"),
        secret=True,
    ),
    Setting(
        "STATIC_ROOT",
        PLACE,
        "unset",
        _("folder of collected scripts and styles; unset: straight from the source"),
    ),
    Setting("SITE_URL", PLACE, "none", _("where people reach the platform: for links in mail")),
    Setting("LOG_LEVEL", PLACE, "INFO", _("level of the log lines, which go to standard error")),
    Setting(
        "CURRENCY", MONEY, "EUR", _("currency of all amounts. Choose it before the first price")
    ),
    Setting("BILLING_TIME_ZONE", MONEY, "UTC", _("where a month begins and ends")),
    Setting(
        "INVOICE_PREFIX", MONEY, "GPU", _("how the numbers of invoices begin: GPU-2026-000001")
    ),
    Setting(
        "PLATFORM_COST_CENTER",
        MONEY,
        "platform",
        _("the cost centre that postings of a closed month credit"),
    ),
    Setting(
        "ADJUSTMENT_THRESHOLD",
        MONEY,
        "0.50",
        _("what late data must change on a line of a closed month before it is booked"),
    ),
    Setting(
        "CLUSTER_NAME",
        MONEY,
        "the one that OpenCost tells about",
        _("what the cluster that is scheduled here is called where others count its cost"),
    ),
    Setting(
        "SOURCE_HOSTS", MONEY, "none", _("the only hosts that sources of cost and usage may be on")
    ),
    Setting(
        "ACCEPT_IMPOSSIBLE_WORKLOADS",
        DECIDING,
        "no",
        _("yes: what can never run is accepted as blocked instead of refused"),
    ),
    Setting(
        "OWN_PRIORITY_LIMIT",
        DECIDING,
        "100",
        _("the highest number of priority that leads and members may give"),
    ),
    Setting(
        "RESOURCE_TRANSFORMATIONS",
        DECIDING,
        "[]",
        _("what quota charges for a request, as Kueue writes it"),
    ),
    Setting(
        "KEEP_CPU_FOR_GPUS",
        DECIDING,
        "no",
        _("yes: pods without GPUs never take what goes with a free GPU"),
    ),
    Setting(
        "STARVATION_TIMEOUT_S",
        DECIDING,
        "3600",
        _("how long a gang waits before nodes that empty are held for it; negative: never"),
        unit="s",
    ),
    Setting(
        "RESERVATION_MIN_GPUS",
        DECIDING,
        "2",
        _("the smallest gang for which room is reserved"),
        unit="GPUs",
    ),
    Setting(
        "CONSOLIDATION_GPU_HOURS",
        DECIDING,
        "unset",
        _("progress that may be lost where gangs move for a blocked one; unset: nobody moves"),
        unit="GPU-hours",
    ),
    Setting(
        "GANG_GRACE_S",
        DECIDING,
        "60",
        _("how long a gang that lost pods with a node keeps its place; negative: for ever"),
        unit="s",
    ),
    Setting(
        "PODS_READY_TIMEOUT_S",
        DECIDING,
        "1800",
        _("how long all pods of a gang may take to be ready; 0 or less: for ever"),
        unit="s",
    ),
    Setting(
        "PODS_READY_RECOVERY_S",
        DECIDING,
        "as PODS_READY_TIMEOUT_S",
        _("the same for a gang that was ready and has lost a pod"),
        unit="s",
    ),
    Setting(
        "REQUEUE_BASE_S",
        DECIDING,
        "60",
        _("the first rest of a gang that was not ready; each further one is twice as long"),
        unit="s",
    ),
    Setting("REQUEUE_MAX_S", DECIDING, "3600", _("its longest rest"), unit="s"),
    Setting(
        "REQUEUE_LIMIT",
        DECIDING,
        "unset",
        _("after so many rests it is deactivated; unset: never"),
        unit="rests",
    ),
    Setting(
        "REQUEUE_TIMESTAMP",
        DECIDING,
        "Eviction",
        _("whether a place in line is as old as the eviction or (Creation) as the submission"),
    ),
    Setting(
        "CYCLE_LEASE_S",
        DECIDING,
        "10",
        _("for how long a cycle worker takes the right to decide"),
        unit="s",
    ),
    Setting(
        "CYCLE_STUCK_S",
        DECIDING,
        "60",
        _("after how long PostgreSQL ends the transaction of a paused cycle worker"),
        unit="s",
    ),
    Setting(
        "CLUSTER_BACKEND",
        DECIDING,
        "simulated",
        _("external: admitted work runs on the machines of agents"),
    ),
    Setting(
        "AGENT_SILENT_AFTER_S",
        DECIDING,
        "60",
        _("an agent of which nothing is heard for so long counts as away"),
        unit="s",
    ),
    Setting(
        "AGENT_POLL_S",
        DECIDING,
        "2",
        _("how often an agent is told to ask what it should run"),
        unit="s",
    ),
    Setting(
        "FINISHED_KEPT_DAYS",
        KEPT,
        "unset",
        _("how long finished work is kept; unset: for ever. What bills rest on stays"),
        unit="days",
    ),
    Setting(
        "EVENTS_KEPT_DAYS",
        KEPT,
        "unset",
        _("how long timelines of finished work are kept; unset: as long as the work"),
        unit="days",
    ),
    Setting(
        "REPLAY_MOST_WORKLOADS",
        KEPT,
        "20000",
        _("how many workloads a replay under other quotas plays at most"),
        unit="workloads",
    ),
    Setting(
        "API_BURST",
        DOORS,
        "1000",
        _("how many requests a token may make at once"),
        unit="requests",
    ),
    Setting(
        "API_PER_S",
        DOORS,
        "200",
        _("how many it may make in the long run; 0: no limit"),
        unit="requests a second",
    ),
    Setting(
        "BODY_MAX_BYTES",
        DOORS,
        "4194304",
        _("larger bodies are refused before they are taken in"),
        unit="bytes",
    ),
    Setting(
        "BODY_TIMEOUT_S", DOORS, "30", _("a body that takes longer to come is refused"), unit="s"
    ),
    Setting(
        "WATCHES_MAX",
        DOORS,
        "200",
        _("how many streams of workloads one web process keeps open"),
        unit="streams",
    ),
    Setting("WATCHES_MAX_OF_ONE", DOORS, "10", _("how many of one person"), unit="streams"),
    Setting("METRICS_TOKEN", DOORS, "none", _("who has it may read /metrics"), secret=True),
    Setting("METRICS_ALLOW", DOORS, "none", _("networks that may read /metrics")),
    Setting(
        "WEBHOOK_NETWORKS",
        DOORS,
        "none",
        _("networks that webhooks may call although they are not public"),
    ),
    Setting("WEBHOOK_HOSTS", DOORS, "none", _("the only hosts that webhooks may call")),
    Setting(
        "OIDC_ISSUER", SIGN_IN, "none", _("the company's identity provider, as its tokens call it")
    ),
    Setting("OIDC_CLIENT_ID", SIGN_IN, "none", _("as whom the platform is known there")),
    Setting("OIDC_CLIENT_SECRET", SIGN_IN, "none", _("how it proves that"), secret=True),
    Setting("OIDC_NAME", SIGN_IN, "single sign-on", _("what the button of the door says")),
    Setting("OIDC_SCOPES", SIGN_IN, "openid profile email", _("what the provider is asked for")),
    Setting("OIDC_GROUPS_CLAIM", SIGN_IN, "groups", _("where a token has the groups")),
    Setting(
        "OIDC_WITHOUT_GROUP", SIGN_IN, "no", _("yes: who has no place here comes in all the same")
    ),
    Setting(
        "OIDC_ASK", SIGN_IN, "a platform admin", _("whom those without a place are told to ask")
    ),
    Setting(
        "OIDC_LINK_BY_EMAIL",
        SIGN_IN,
        "yes",
        _("no: who comes for the first time is taken for nobody who is there"),
    ),
    Setting("OIDC_SESSION_HOURS", SIGN_IN, "12", _("how long such a sign-in lasts"), unit="h"),
    Setting(
        "OIDC_IS_SECOND_FACTOR",
        SIGN_IN,
        "no",
        _("yes: the provider asks for a second factor itself"),
    ),
    Setting(
        "LOCAL_SIGN_IN_ONLY", SIGN_IN, "none", _("the one admin whose password is still taken")
    ),
    Setting("MFA_REQUIRED_ROLES", SIGN_IN, "none", _("who needs a second factor in a browser")),
    Setting(
        "MFA_ISSUER", SIGN_IN, "gpuplatform", _("what an authenticator app calls the platform")
    ),
    Setting(
        "EMAIL_HOST",
        MAIL,
        "none",
        _("the server through which alerts are mailed; none: nothing is sent"),
    ),
    Setting("EMAIL_PORT", MAIL, "25", _("port of the mail server")),
    Setting("EMAIL_HOST_USER", MAIL, "none", _("as whom to sign in at the mail server")),
    Setting("EMAIL_HOST_PASSWORD", MAIL, "none", _("the password there"), secret=True),
    Setting("EMAIL_USE_TLS", MAIL, "no", _("yes: mail goes with STARTTLS")),
    Setting("EMAIL_USE_SSL", MAIL, "no", _("yes: mail goes with TLS from the beginning")),
    Setting(
        "EMAIL_BACKEND",
        MAIL,
        "Django's SMTP backend; its console backend without EMAIL_HOST",
        _("what sends mail"),
    ),
    Setting("DEFAULT_FROM_EMAIL", MAIL, "gpuplatform@localhost", _("whom the mail is from")),
    Setting("ALERT_MAIL", MAIL, "yes where EMAIL_HOST is set", _("no: no mail about alerts")),
)
