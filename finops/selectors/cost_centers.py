"""Which cost centre a team is charged to in a month: the dated mapping, else the team's own."""

from collections.abc import Iterable

from django.db.models import Q

from finops.models import BillingPeriod, Mapping
from finops.models.mappings import MappingKind
from queues.models import Team


def cost_centers(period: BillingPeriod, teams: Iterable[Team]) -> dict[int, str]:
    """Return the cost centre of each team, by its id, as it was last in force in the month."""
    found = {team.pk: team.cost_center for team in teams}
    dated = Mapping.objects.filter(
        Q(valid_to=None) | Q(valid_to__gt=period.starts_at),
        kind=MappingKind.COST_CENTER,
        valid_from__lt=period.ends_at,
        team__in=found,
    ).order_by("valid_from")
    return found | dict(dated.values_list("team", "value"))
