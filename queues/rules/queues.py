"""Rules of cohorts (K6), cluster queues (K2-K5, K9, K39, K43) and local queues (K8)."""

from collections.abc import Collection, Iterator, Mapping

from django.utils.translation import gettext as _

from gpuplatform.common.problems import Problem
from queues.choices import (
    AdmissionOrder,
    BorrowWithinCohort,
    Fairness,
    FlavorPreference,
    FlavorSearch,
    QueueingStrategy,
    QuotaSource,
    ReclaimTo,
    ReclaimWithinCohort,
    StopPolicy,
    Undeclared,
    WithinClusterQueue,
)
from queues.rules.quotas import check_groups, check_lending, check_limits_need
from queues.rules.teams import check_known_team
from queues.rules.words import (
    check_choice,
    check_int32,
    check_name,
    check_reserved,
    check_seconds,
    check_selector,
    check_short_name,
    check_weight,
)
from queues.specs import (
    ClusterQueueSpec,
    CohortSpec,
    FungibilitySpec,
    LocalQueueSpec,
    PreemptionSpec,
)


def check_cohort(spec: CohortSpec, parents: Mapping[str, str | None]) -> Iterator[Problem]:
    """Yield every problem of a cohort in the tree that ``parents`` (by name) describes."""
    yield from check_name(spec.name)
    yield from check_reserved(spec.name)
    yield from check_weight(spec.fair_weight)
    yield from check_choice(spec.fairness, Fairness.values, "fairness")
    yield from check_choice(spec.reclaim_to, ReclaimTo.values, "reclaim_to")
    yield from check_choice(spec.quota_source, QuotaSource.values, "quota_source")
    yield from check_groups(spec.groups)
    if spec.parent is None:
        words = _("a cohort without parent has nobody to borrow from or to lend to")
        yield from check_limits_need(spec.groups, "no_parent", words)
    else:
        yield from check_name(spec.parent, "parent")
        yield from check_reserved(spec.parent, "parent")
        yield from _check_cycle(spec.name, spec.parent, parents)
        if spec.fairness != Fairness.NONE:
            words = _("fairness is set at the top of a tree of cohorts, not below {parent}")
            yield Problem("fairness", "not_at_the_top", words.format(parent=spec.parent[:64]))
    if spec.reclaim_to == ReclaimTo.FAIR_SHARE and spec.fairness == Fairness.NONE:
        words = _("there is a fair share only at the top of a tree that shares; choose a fairness")
        yield Problem("reclaim_to", "no_fair_share", words)
    if spec.quota_source == QuotaSource.RESIDUAL and spec.groups:
        words = _("the quota of this cohort is computed; it cannot be declared as well")
        yield Problem("groups", "residual_has_no_quota", words)


def _check_cycle(
    name: str, parent: str | None, parents: Mapping[str, str | None]
) -> Iterator[Problem]:
    path = [name]
    while parent is not None and parent not in path:
        path.append(parent)
        parent = parents.get(parent)
    if parent == name:
        chain = " > ".join([*path, name])
        words = _("cohorts cannot contain themselves: {chain}").format(chain=chain)
        yield Problem("parent", "cycle", words, {"chain": chain})


def check_cluster_queue(spec: ClusterQueueSpec, teams: Collection[str]) -> Iterator[Problem]:
    """Yield every problem of a cluster queue. Flavors and cohort may be declared later."""
    yield from check_name(spec.name)
    yield from check_reserved(spec.name)
    yield from check_known_team(spec.team, teams, "team")
    yield from check_weight(spec.fair_weight)
    yield from check_choice(spec.queueing_strategy, QueueingStrategy.values, "queueing_strategy")
    yield from check_choice(spec.stop_policy, StopPolicy.values, "stop_policy")
    yield from check_choice(spec.undeclared, Undeclared.values, "undeclared")
    yield from check_selector(spec.namespace_selector, "namespace_selector")
    yield from _check_preemption(spec.preemption)
    yield from _check_fungibility(spec.fungibility)
    yield from check_seconds(spec.minimum_runtime_s, "minimum_runtime_s")
    yield from check_choice(spec.admission_order, AdmissionOrder.values, "admission_order")
    yield from check_groups(spec.groups)
    yield from check_lending(spec.groups)
    if spec.cohort is None:
        words = _("a queue without cohort has nobody to borrow from or to lend to")
        yield from check_limits_need(spec.groups, "no_cohort", words)
    else:
        yield from check_name(spec.cohort, "cohort")
        yield from check_reserved(spec.cohort, "cohort")


def _check_preemption(spec: PreemptionSpec) -> Iterator[Problem]:
    for path, value, choices in (
        ("within_cluster_queue", spec.within_cluster_queue, WithinClusterQueue.values),
        ("reclaim_within_cohort", spec.reclaim_within_cohort, ReclaimWithinCohort.values),
        ("borrow_within_cohort", spec.borrow_within_cohort, BorrowWithinCohort.values),
    ):
        yield from check_choice(value, choices, f"preemption.{path}")
    if (
        spec.borrow_within_cohort != BorrowWithinCohort.NEVER
        and spec.reclaim_within_cohort == ReclaimWithinCohort.NEVER
    ):
        words = _("who may evict while borrowing must also be allowed to reclaim")
        yield Problem("preemption.borrow_within_cohort", "needs_reclaim", words)
    if spec.max_priority_threshold is not None:
        yield from check_int32(spec.max_priority_threshold, "preemption.max_priority_threshold")


def _check_fungibility(spec: FungibilitySpec) -> Iterator[Problem]:
    for path, value, choices in (
        ("when_can_borrow", spec.when_can_borrow, FlavorSearch.values),
        ("when_can_preempt", spec.when_can_preempt, FlavorSearch.values),
        ("preference", spec.preference, FlavorPreference.values),
    ):
        yield from check_choice(value, choices, f"fungibility.{path}")
    searches = {spec.when_can_borrow, spec.when_can_preempt}
    if (
        spec.preference == FlavorPreference.PREEMPTION_OVER_BORROWING
        and FlavorSearch.MAY_STOP_SEARCH in searches
    ):
        words = _("evicting can only be preferred where every flavor is looked at, both times")
        yield Problem("fungibility.preference", "needs_whole_search", words)


def check_local_queue(
    spec: LocalQueueSpec, current: LocalQueueSpec | None = None
) -> Iterator[Problem]:
    """Yield every problem of a local queue. Its target may be declared later, never changed."""
    yield from check_short_name(spec.namespace, "namespace")
    yield from check_name(spec.name)
    yield from check_name(spec.cluster_queue, "cluster_queue")
    yield from check_weight(spec.fair_weight)
    yield from check_choice(spec.stop_policy, StopPolicy.values, "stop_policy")
    if current and spec.cluster_queue != current.cluster_queue:
        words = _("a local queue keeps its target, which is {target}; make a new one instead")
        yield Problem("cluster_queue", "immutable", words.format(target=current.cluster_queue))
