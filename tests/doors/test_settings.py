"""The page of settings: what is set, where it comes from, how the parts are; no secret on it."""

import re
from datetime import timedelta
from pathlib import Path

import pytest
import yaml

from finops.models import BillingPeriod, Source
from gpuplatform.common import clock
from gpuplatform.common.failures import note_failure
from gpuplatform.common.models import AuditEntry
from gpuplatform.common.sealing import seal
from gpuplatform.doors.installation import parts
from gpuplatform.doors.installation.table import SETTINGS
from gpuplatform.doors.installation.values import setting_values, words
from scheduling.cycle import run_cycle
from scheduling.models import Alert, Letter

pytestmark = pytest.mark.django_db
ROOT = Path(__file__).resolve().parents[2]
PATH, REST = "/settings/", "/api/v1/settings/"
SECRETS = {
    "SECRET_KEY": "swordfish-1",
    "METRICS_TOKEN": "swordfish-2",
    "EMAIL_HOST_PASSWORD": "swordfish-3",
    "CELERY_BROKER_URL": "redis://:swordfish-4@localhost:6379/0",
    "SOURCE_SECRETS": {"SOURCE_OPENCOST_TOKEN": "swordfish-5"},
    "OIDC_CLIENT_SECRET": "swordfish-6",
}


def in_production():
    """Return the default of every variable that docs/production.md explains, without marks."""
    text = (ROOT / "docs/production.md").read_text().split("Read by others than the settings")[0]
    rows = re.findall(r"^\| `([A-Z_]+)` \| (.*?) \|", text, re.MULTILINE)
    return {name: default.replace("`", "") for name, default in rows}


def shown_of(browser):
    """Return the rows of settings that the page shows: name, value, origin, default."""
    text = browser.get(PATH).text
    rows = re.findall(r'<tr><th scope="row"><code>([A-Z_]+)</code></th>(.*?)</tr>', text)
    return {
        name: [re.sub("<[^>]+>", "", cell) for cell in re.findall(r"<td[^>]*>(.*?)</td>", cells)]
        for name, cells in rows
    }


# ---- one set of settings -----------------------------------------------------------------------
def test_page_production_guide_and_example_environment_name_the_same_set(ada, signed_in):
    table = {setting.name: setting.default for setting in SETTINGS}
    assert table == in_production()
    assert list(shown_of(signed_in(ada))) == list(table)
    example = (ROOT / ".env.example").read_text()
    offered = set(re.findall(r"^#? ?([A-Z_]+)=", example, re.MULTILINE))
    assert set(table) - offered == {"DEBUG", "STATIC_ROOT"}  # of developers, and of the image


def test_every_setting_can_be_read_and_what_is_not_set_is_its_default(monkeypatch):
    for setting in SETTINGS:
        monkeypatch.delenv(setting.name, raising=False)
    values = {value.setting.name: value for value in setting_values()}
    assert len(values) == len(SETTINGS)
    assert {value.origin for value in values.values()} == {"default"}
    # Where the default is written as one would set it, it is what is in force.
    plain = ["CURRENCY", "API_BURST", "GANG_GRACE_S", "ADJUSTMENT_THRESHOLD", "KEEP_CPU_FOR_GPUS"]
    plain += ["FINISHED_KEPT_DAYS", "SOURCE_HOSTS", "LOG_LEVEL", "BODY_MAX_BYTES"]
    written = {n: values[n].setting.default.replace("none", "unset") for n in plain}
    assert {n: values[n].text for n in plain} == written


def test_a_value_says_whether_the_environment_made_it(monkeypatch, settings, ada, signed_in):
    monkeypatch.setenv("CURRENCY", "CHF")
    settings.CURRENCY = "CHF"
    browser = signed_in(ada)
    assert shown_of(browser)["CURRENCY"][:3] == ["CHF", "environment", "EUR"]
    rows = {row["name"]: row for row in browser.get(REST).json()["settings"]}
    assert (rows["CURRENCY"]["value"], rows["CURRENCY"]["origin"]) == ("CHF", "environment")
    assert rows["FINISHED_KEPT_DAYS"]["value"] == "unset"


@pytest.mark.parametrize(
    ("found", "text"),
    [(True, "yes"), (False, "no"), (0, "0"), (1800.0, "1800"), (0.5, "0.5"), (None, "unset")],
)
def test_values_are_written_as_in_the_environment(found, text):
    assert words(found) == text


def test_no_secret_is_shown_anywhere(settings, ada, signed_in):
    for name, value in SECRETS.items():
        setattr(settings, name, value)
    browser = signed_in(ada)
    page, file, rest = (
        browser.get(PATH).text,
        browser.get(f"{PATH}?format=yaml"),
        browser.get(REST),
    )
    for text in (page, file.content.decode(), rest.text):
        assert "swordfish" not in text
        assert "SOURCE_OPENCOST_TOKEN" in text
    [document] = yaml.safe_load_all(file.content)
    values = {row["name"]: row["value"] for row in document["settings"] if row["is_secret"]}
    assert values == {
        "SECRET_KEY": "set",
        "DATABASE_URL": "set",
        "CELERY_BROKER_URL": "set",
        "METRICS_TOKEN": "set",
        "EMAIL_HOST_PASSWORD": "set",
        "OIDC_CLIENT_SECRET": "set",
    }


def test_file_and_rest_say_the_same(ada, signed_in):
    browser = signed_in(ada)
    [document] = yaml.safe_load_all(browser.get(f"{PATH}?format=yaml").content)
    answer = browser.get(REST).json()
    assert {key: document[key] for key in document if key != "parts"} == {
        key: answer[key] for key in answer if key != "parts"
    }
    assert [part["name"] for part in answer["parts"]] == [p["name"] for p in document["parts"]]


def test_only_admins_see_it(cast, signed_in):
    codes = {n: signed_in(p).get(PATH).status_code for n, p in vars(cast).items()}
    assert {name for name, code in codes.items() if code == 200} == {"ada"}
    codes = {n: signed_in(p).get(REST).status_code for n, p in vars(cast).items()}
    assert {name for name, code in codes.items() if code == 200} == {"ada"}


# ---- what is edited elsewhere ------------------------------------------------------------------
def test_sources_and_the_idle_policy_of_the_running_month_are_summed_up(ada, signed_in):
    now = clock.now()
    Source.objects.create(
        name="opencost", kind="opencost", currency="USD", time_zone="UTC", first_day=now.date()
    )
    BillingPeriod.objects.create(
        name=f"{now:%Y-%m}", starts_at=now, ends_at=now + timedelta(days=1), idle_policy="separate"
    )
    browser = signed_in(ada)
    text = browser.get(PATH).text
    assert 'action="/sources/opencost/test/"' in text
    assert f'href="/bills/{now:%Y-%m}/rules/"' in text
    assert browser.get(REST).json()["sources"][0]["last_success_at"] is None


# ---- health of the parts -----------------------------------------------------------------------
def states():
    return {part.name: part.state for part in parts.parts(clock.now())}


def test_a_platform_that_never_decided_says_so_and_one_that_did_is_well():
    assert states()["worker"] == "bad"
    run_cycle("test")
    found = states()
    assert found == dict.fromkeys(found, "good")


def test_what_is_wrong_with_a_part_is_told(ada, settings):
    settings.ALERT_MAIL = True
    run_cycle("test")
    long_ago = clock.now() - timedelta(hours=1)
    alert = Alert.objects.create(code="DRIFT", key="k", subject="x")
    Letter.objects.create(alert=alert, user=ada, due_at=long_ago, tries=2)
    note_failure("finops.close_up", ValueError("no"))
    AuditEntry.objects.create(action="x.y", subject_kind="X", subject="x", at=long_ago)
    found = states()
    assert {name for name, state in found.items() if state == "warn"} == {"mail", "tasks", "audit"}
    seal()
    assert states()["audit"] == "good"


def test_a_broker_that_cannot_be_reached_is_away(monkeypatch, settings):
    monkeypatch.setattr(parts.app.conf, "broker_url", "redis://127.0.0.1:1/0")
    settings.CELERY_BROKER_URL = "redis://127.0.0.1:1/0"
    monkeypatch.setattr(parts, "BROKER_S", 0.2)
    assert states()["broker"] == "bad"
