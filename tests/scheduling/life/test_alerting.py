"""Each kind of alert has one owner, and readers of its own."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest

from gpuplatform.common import reasons
from gpuplatform.common.diagnostics import Diagnostic
from queues.access import actor_for
from scheduling import alerting, watch
from scheduling.alerting import Audience, Concern, Kind
from scheduling.models import Alert, Node
from scheduling.selectors.alerts import alert_lines, cleared_lines
from tests.scheduling.loop.world import NOON, nodes, queue

pytestmark = pytest.mark.django_db
SPENT = Kind("BUDGET", {Audience.FINANCE, Audience.LEADS}, scope="cost:read")


@pytest.fixture(autouse=True)
def budgets(monkeypatch: pytest.MonkeyPatch, clock: Any) -> Iterator[None]:
    """A second owner beside the one of this room."""
    monkeypatch.setattr(alerting, "KINDS", dict(alerting.KINDS))
    alerting.register("budgets", [SPENT])
    return


def spent(team: Any, percent: int = 90, key: str = "") -> Concern:
    finding = Diagnostic("BUDGET", f"Budget/{team.name}", "", {"percent": percent})
    return Concern(finding, key, team.pk)


def standing() -> list[tuple[str, str, str]]:
    rows = Alert.objects.filter(cleared_at=None).order_by("code", "subject", "key")
    return list(rows.values_list("code", "subject", "key"))


def test_one_owner_clears_nothing_of_another(datos: Any) -> None:
    nodes(1)
    queue("ia", 4)
    Node.objects.update(ready=False)
    own = watch.watch()
    assert own > 0
    assert alerting.follow("budgets", [spent(datos)], NOON) == 1
    assert watch.watch() == 0
    Node.objects.update(ready=True)
    assert watch.watch() == own
    assert standing() == [("BUDGET", "Budget/datos", "")]
    assert alerting.follow("budgets", [], NOON + timedelta(hours=1)) == 1
    assert Alert.objects.get(code="BUDGET").cleared_at == NOON + timedelta(hours=1)


def test_what_is_said_twice_is_raised_once_and_keys_tell_apart(datos: Any) -> None:
    both = [spent(datos, key="2026-06"), spent(datos, key="2026-07")]
    assert alerting.follow("budgets", both) == 2
    assert alerting.follow("budgets", [spent(datos, 95, "2026-06"), both[1]]) == 0
    assert [row.facts["percent"] for row in Alert.objects.order_by("key")] == [95, 90]
    assert alerting.follow("budgets", both[:1]) == 1
    assert standing() == [("BUDGET", "Budget/datos", "2026-06")]


def test_nobody_raises_or_takes_what_belongs_to_another() -> None:
    with pytest.raises(ValueError, match="budgets has not registered alerts DRIFT"):
        alerting.follow("budgets", [Concern(Diagnostic("DRIFT", "ResourceFlavor/a"))])
    with pytest.raises(ValueError, match="DRIFT belong to scheduling, not to budgets"):
        alerting.register("budgets", [Kind("DRIFT", ())])
    assert not Alert.objects.exists()


def test_an_alert_of_a_team_is_read_by_its_leads_and_by_readers_of_everything(cast: Any) -> None:
    alerting.follow("budgets", [spent(cast.lea.memberships.get().team)])
    for seen in (lambda actor: alert_lines([], actor), cleared_lines):
        read = {
            name: [line.finding.code for line in seen(actor_for(user))]
            for name, user in vars(cast).items()
        }
        assert read == {
            name: ["BUDGET"] if name in {"ada", "lea", "fin", "aud"} else [] for name in read
        }
        alerting.follow("budgets", [])


def test_a_token_without_the_scope_of_money_does_not_read_of_it(datos: Any, ada: Any) -> None:
    from queues.models import ApiToken  # noqa: PLC0415

    alerting.follow("budgets", [spent(datos)])
    for scopes, found in ((["read"], 0), (["read", "cost:read"], 1)):
        token, _secret = ApiToken.objects.create(user=ada, name="t", scopes=scopes)
        assert len(alert_lines([], actor_for(ada, token))) == found


def test_every_kind_has_a_sentence_and_an_audience() -> None:
    kinds = alerting.registered()
    del kinds["BUDGET"]
    assert [code for code in kinds if code not in reasons.REGISTRY] == []
    assert [code for code, kind in kinds.items() if not kind.audience] == []
