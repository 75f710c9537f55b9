"""Rules of a quota table: groups of resources, flavors in order, amounts (K2-K5)."""

from collections import Counter
from collections.abc import Iterator

from django.utils.translation import gettext as _

from gpuplatform.common.problems import Problem
from gpuplatform.common.reasons import describe_amount
from queues.rules.words import check_amount, check_count, check_label_key, check_name
from queues.specs import FlavorQuotasSpec, QuotaSpec, ResourceGroupSpec

Groups = tuple[ResourceGroupSpec, ...]
MOST_GROUPS = 16
MOST_IN_GROUP = 64
MOST_IN_TOTAL = 256
MOST_CELLS_IN_GROUP = 512


def check_groups(groups: Groups) -> Iterator[Problem]:
    """Yield what is wrong with the shape, the names and the amounts of a quota table."""
    yield from check_count(len(groups), MOST_GROUPS, "groups")
    yield from _check_totals(groups)
    resources = Counter(name for group in groups for name in group.resources)
    flavors = Counter(flavor.flavor for group in groups for flavor in group.flavors)
    for index, group in enumerate(groups):
        path = f"groups[{index}]"
        yield from _check_group_size(group, path)
        for position, name in enumerate(group.resources):
            yield from check_label_key(name, f"{path}.resources[{position}]")
            yield from _once(resources, name, f"{path}.resources[{position}]")
        for position, flavor in enumerate(group.flavors):
            yield from check_name(flavor.flavor, f"{path}.flavors[{position}].flavor")
            yield from _once(flavors, flavor.flavor, f"{path}.flavors[{position}].flavor")
            yield from _check_flavor_quotas(flavor, group, f"{path}.flavors[{position}]")


def check_limits_need(groups: Groups, code: str, message: str) -> Iterator[Problem]:
    """Yield a problem for each limit: there is nobody to borrow from or to lend to (K4, K5)."""
    for path, quota in _cells(groups):
        if quota.borrowing_limit is not None:
            yield Problem(f"{path}.borrowing_limit", code, message)
        if quota.lending_limit is not None:
            yield Problem(f"{path}.lending_limit", code, message)


def check_lending(groups: Groups) -> Iterator[Problem]:
    """Yield a problem for each queue's lending limit above its nominal quota (K5)."""
    for path, quota in _cells(groups):
        lending = quota.lending_limit
        if lending is not None and lending > quota.nominal >= 0:
            words = _("cannot lend {lending} of {nominal}").format(
                lending=describe_amount(quota.resource, lending),
                nominal=describe_amount(quota.resource, quota.nominal),
            )
            numbers: dict[str, str | int] = {
                "resource": quota.resource,
                "lending": lending,
                "nominal": quota.nominal,
            }
            yield Problem(f"{path}.lending_limit", "lending_above_nominal", words, numbers)


def _cells(groups: Groups) -> Iterator[tuple[str, QuotaSpec]]:
    for g, group in enumerate(groups):
        for f, flavor in enumerate(group.flavors):
            for q, quota in enumerate(flavor.quotas):
                yield f"groups[{g}].flavors[{f}].quotas[{q}]", quota


def _once(counts: Counter[str], name: str, path: str) -> Iterator[Problem]:
    if counts[name] > 1:
        words = _("{name} is listed more than once").format(name=name[:64])
        yield Problem(path, "duplicate", words)


def _check_totals(groups: Groups) -> Iterator[Problem]:
    flavors = sum(len(group.flavors) for group in groups)
    resources = sum(len(group.resources) for group in groups)
    for have, code in ((flavors, "too_many_flavors"), (resources, "too_many_resources")):
        if have > MOST_IN_TOTAL:
            words = _("{have} in total; at most {most} are allowed")
            numbers = {"have": have, "most": MOST_IN_TOTAL}
            yield Problem("groups", code, words.format(**numbers), numbers)


def _check_group_size(group: ResourceGroupSpec, path: str) -> Iterator[Problem]:
    yield from check_count(len(group.resources), MOST_IN_GROUP, f"{path}.resources", least=1)
    yield from check_count(len(group.flavors), MOST_IN_GROUP, f"{path}.flavors", least=1)
    cells = len(group.resources) * len(group.flavors)
    if cells > MOST_CELLS_IN_GROUP:
        words = _("{have} quotas; at most {most} are allowed in a group")
        numbers = {"have": cells, "most": MOST_CELLS_IN_GROUP}
        yield Problem(path, "too_many_cells", words.format(**numbers), numbers)


def _check_flavor_quotas(
    flavor: FlavorQuotasSpec, group: ResourceGroupSpec, path: str
) -> Iterator[Problem]:
    if tuple(quota.resource for quota in flavor.quotas) != group.resources:
        words = _("{flavor} must list {resources}, in this order").format(
            flavor=flavor.flavor[:64], resources=", ".join(name[:64] for name in group.resources)
        )
        yield Problem(f"{path}.quotas", "resources_differ", words)
    for index, quota in enumerate(flavor.quotas):
        where = f"{path}.quotas[{index}]"
        yield from check_amount(quota.nominal, f"{where}.nominal")
        yield from check_amount(quota.borrowing_limit, f"{where}.borrowing_limit")
        yield from check_amount(quota.lending_limit, f"{where}.lending_limit")
