"""Forms of cluster queues and cohorts, without their quota tables."""

from collections.abc import Mapping
from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _

from gpuplatform.common.decimals import WholeField
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
    WithinClusterQueue,
)
from queues.forms.edits import (
    Choices,
    EditForm,
    Part,
    choose,
    tell_part,
    weight_field,
    weight_text,
)
from queues.specs import (
    ClusterQueueSpec,
    CohortSpec,
    FungibilitySpec,
    PreemptionSpec,
    ResourceGroupSpec,
)

_NAMESPACE = "kubernetes.io/metadata.name"
# Columns of the spec that the form shows under the same name.
_SAME = "queueing_strategy stop_policy minimum_runtime_s yields_to_own admission_order"
_SAME_COLUMNS = (*_SAME.split(), "priority_first")
ALL, NONE, NAMED, KEPT = "all", "none", "named", "kept"
# What a new queue is like unless somebody says otherwise.
RECOMMENDED_QUEUE = ClusterQueueSpec(
    "",
    namespace_selector={},
    preemption=PreemptionSpec(
        within_cluster_queue=WithinClusterQueue.LOWER_PRIORITY.value,
        reclaim_within_cohort=ReclaimWithinCohort.ANY.value,
    ),
)


class QueueForm(EditForm):
    """A cluster queue without its quota table."""

    costs_work = True

    name = forms.CharField(
        label=_("Name"), help_text=_("As Kubernetes spells names; it never changes.")
    )
    team = forms.ChoiceField(label=_("Team"), required=False)
    cohort = forms.ChoiceField(
        label=_("Cohort"), required=False, help_text=_("Queues of a cohort lend to each other.")
    )
    queueing_strategy = forms.ChoiceField(label=_("Strategy"), choices=QueueingStrategy.choices)
    stop_policy = forms.ChoiceField(label=_("Stop policy"), choices=StopPolicy.choices)
    reclaim_within_cohort = forms.ChoiceField(
        label=_("Take lent quota back from"), choices=ReclaimWithinCohort.choices
    )
    within_cluster_queue = forms.ChoiceField(
        label=_("Evict in the queue itself"), choices=WithinClusterQueue.choices
    )
    borrow_within_cohort = forms.ChoiceField(
        label=_("Evict others while borrowing"),
        choices=BorrowWithinCohort.choices,
        help_text=_(
            "Only where the tree shares by nothing: where its top cohort says share or history,"
            " evicting goes by share and this is not looked at."
        ),
    )
    fair_weight = weight_field(
        _(
            "Next to its sisters in the cohort: with 2 it may hold, or have held, twice as much"
            " as with 1 before others come first. With 0 it borrows last."
        )
    )
    admission_order = forms.ChoiceField(
        label=_("Order inside the queue"),
        choices=AdmissionOrder.choices,
        help_text=_("By usage: who used least GPU-hours of late, by weight of the local queue."),
    )
    priority_first = forms.BooleanField(
        label=_("By usage, but higher priority still goes first"), required=False
    )
    minimum_runtime_s = WholeField(
        label=_("Safe from eviction for, seconds"),
        min_value=0,
        help_text=_("From its start; 3600 is an hour, 0 is not at all."),
    )
    yields_to_own = forms.BooleanField(
        label=_("Even then it yields to higher priority of its own queue"), required=False
    )
    when_can_borrow = forms.ChoiceField(
        label=_("A flavor that fits only by borrowing"), choices=FlavorSearch.choices
    )
    when_can_preempt = forms.ChoiceField(
        label=_("A flavor that fits only by evicting"), choices=FlavorSearch.choices
    )
    flavor_preference = forms.ChoiceField(
        label=_("Where each flavor is looked at"), choices=FlavorPreference.choices
    )
    admits = forms.ChoiceField(label=_("Namespaces admitted"))
    namespaces = forms.CharField(
        label=_("Names"),
        required=False,
        help_text=_("Where only some are admitted: their names, with spaces between."),
    )

    def __init__(
        self,
        *args: Any,
        teams: Choices = (),
        cohorts: Choices = (),
        part: Part | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(*args, **kwargs)
        tell_part(self, part)
        choose(self, "team", [("", _("nobody")), *teams])
        choose(self, "cohort", [("", _("no cohort: it neither borrows nor lends")), *cohorts])
        admits = [(ALL, _("all")), (NAMED, _("only those named")), (NONE, _("none"))]
        if self.initial.get("admits") == KEPT:
            admits.append((KEPT, _("as selected by labels (unchanged)")))
        choose(self, "admits", admits)

    @staticmethod
    def initial_of(spec: ClusterQueueSpec | None) -> dict[str, Any]:
        """Return what the form shows first; without a spec the recommended defaults."""
        spec = spec or RECOMMENDED_QUEUE
        admits, names = _admission_of(spec.namespace_selector)
        return {
            "name": spec.name,
            "team": spec.team or "",
            "cohort": spec.cohort or "",
            **_search_and_order(spec),
            "reclaim_within_cohort": spec.preemption.reclaim_within_cohort,
            "within_cluster_queue": spec.preemption.within_cluster_queue,
            "borrow_within_cohort": spec.preemption.borrow_within_cohort,
            "admits": admits,
            "namespaces": names,
        }

    def to_spec(
        self, groups: tuple[ResourceGroupSpec, ...], current: ClusterQueueSpec | None
    ) -> ClusterQueueSpec:
        """Return what was asked for; what the form does not show stays as it is."""
        data = self.cleaned_data
        kept = current or ClusterQueueSpec(name=data.get("name", ""))
        return ClusterQueueSpec(
            name=kept.name,
            groups=groups,
            team=data["team"],
            cohort=data["cohort"] or None,
            **{name: data[name] for name in _SAME_COLUMNS},
            fair_weight=data["fair_weight"],
            namespace_selector=self._selector(kept.namespace_selector),
            preemption=PreemptionSpec(
                within_cluster_queue=data["within_cluster_queue"],
                reclaim_within_cohort=data["reclaim_within_cohort"],
                borrow_within_cohort=data["borrow_within_cohort"],
                max_priority_threshold=kept.preemption.max_priority_threshold,
            ),
            fungibility=FungibilitySpec(
                when_can_borrow=data["when_can_borrow"],
                when_can_preempt=data["when_can_preempt"],
                preference=data["flavor_preference"],
            ),
            reclaimable=kept.reclaimable,
            undeclared=kept.undeclared,
            carried=kept.carried,
        )

    def _selector(self, kept: Mapping[str, object] | None) -> Mapping[str, object] | None:
        names = self.cleaned_data["namespaces"].replace(",", " ").split()
        admits = self.cleaned_data["admits"]
        if _admission_of(kept) == (admits, " ".join(names) if admits == NAMED else ""):
            return kept  # however it is spelled: an untouched form changes nothing
        match admits:
            case "all":
                return {}
            case "none":
                return None
            case "named":
                wanted = {"key": _NAMESPACE, "operator": "In", "values": names}
                return {"matchExpressions": [wanted]}
            case _:
                return kept


def _search_and_order(spec: ClusterQueueSpec) -> dict[str, Any]:
    """Return what the form shows of weight, order, safety and the search of flavors."""
    return {
        **{name: getattr(spec, name) for name in _SAME_COLUMNS},
        "fair_weight": weight_text(spec.fair_weight),
        "when_can_borrow": spec.fungibility.when_can_borrow,
        "when_can_preempt": spec.fungibility.when_can_preempt,
        "flavor_preference": spec.fungibility.preference,
    }


def _admission_of(selector: Mapping[str, Any] | None) -> tuple[str, str]:
    """Return how the form shows a selector: its kind, and the names where it lists names."""
    if selector is None:
        return NONE, ""
    if not selector:
        return ALL, ""
    match dict(selector):
        case {"matchExpressions": [{"key": key, "operator": "In", "values": values}], **rest} if (
            key == _NAMESPACE and not rest
        ):
            return NAMED, " ".join(values)
        case {"matchLabels": {**labels}, **rest} if set(labels) == {_NAMESPACE} and not rest:
            return NAMED, str(labels[_NAMESPACE])
    return KEPT, ""


class CohortForm(EditForm):
    """A cohort without its own quota table."""

    costs_work = True

    name = forms.CharField(
        label=_("Name"), help_text=_("As Kubernetes spells names; it never changes.")
    )
    parent = forms.ChoiceField(label=_("Inside"), required=False)
    quota_source = forms.ChoiceField(label=_("Own quota"), choices=QuotaSource.choices)
    fairness = forms.ChoiceField(
        label=_("What is lent goes to"),
        choices=Fairness.choices,
        help_text=_(
            "For the whole tree below, so it counts at the top only; inside another cohort that"
            " one decides. History fades: a GPU-hour counts half after a week."
        ),
    )
    reclaim_to = forms.ChoiceField(
        label=_("Running gangs take back up to"),
        required=False,
        choices=ReclaimTo.choices,
        help_text=_(
            "Pods of others above their minimum. At the top only, and where something is shared."
        ),
    )
    fair_weight = weight_field(
        _("Inside another cohort, next to its sisters there: 2 counts twice as much as 1.")
    )

    def __init__(
        self, *args: Any, cohorts: Choices = (), part: Part | None = None, **kwargs: Any
    ) -> None:
        super().__init__(*args, **kwargs)
        tell_part(self, part)
        choose(self, "parent", [("", _("nothing: it is the top of its tree")), *cohorts])

    @staticmethod
    def initial_of(spec: CohortSpec | None) -> dict[str, Any]:
        """Return what the form shows first."""
        shown = spec or CohortSpec("", fairness=Fairness.HISTORY.value)
        return {
            "name": shown.name,
            "parent": shown.parent or "",
            "quota_source": shown.quota_source,
            "fairness": shown.fairness,
            "reclaim_to": shown.reclaim_to,
            "fair_weight": weight_text(shown.fair_weight),
        }

    def to_spec(
        self, groups: tuple[ResourceGroupSpec, ...], current: CohortSpec | None
    ) -> CohortSpec:
        """Return what was asked for; inside another cohort what was offered is not said."""
        data = self.cleaned_data
        shown = current.fairness if current else Fairness.HISTORY.value
        offered = data["fairness"] == shown
        kept = current or CohortSpec(data["name"])
        return CohortSpec(
            name=kept.name,
            parent=data["parent"] or None,
            groups=groups,
            fair_weight=data["fair_weight"],
            fairness=Fairness.NONE.value if data["parent"] and offered else data["fairness"],
            reclaim_to=data["reclaim_to"] or kept.reclaim_to,
            quota_source=data["quota_source"],
        )
