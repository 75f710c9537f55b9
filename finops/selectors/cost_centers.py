"""Which cost centre a team is charged to in a month: the dated mapping, else the team's own."""

from django.db.models import Q

from finops.models import BillingPeriod, Mapping
from finops.models.mappings import MappingKind
from queues.models import Team


def cost_centers(period: BillingPeriod) -> dict[int, str]:
    """Return the cost centre of each team, by its id, as it was last in force in the month."""
    found = dict(Team.objects.exclude(cost_center="").values_list("id", "cost_center"))
    dated = Mapping.objects.filter(
        Q(valid_to=None) | Q(valid_to__gt=period.starts_at),
        kind=MappingKind.COST_CENTER,
        valid_from__lt=period.ends_at,
    ).order_by("valid_from")
    return found | dict(dated.values_list("team", "value"))
