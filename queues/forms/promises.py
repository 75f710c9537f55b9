"""Forms of cluster queues and cohorts, without their quota tables."""

from collections.abc import Mapping
from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _

from queues.choices import (
    BorrowWithinCohort,
    QueueingStrategy,
    QuotaSource,
    ReclaimWithinCohort,
    StopPolicy,
    WithinClusterQueue,
)
from queues.forms.edits import Choices, EditForm, choose
from queues.specs import ClusterQueueSpec, CohortSpec, PreemptionSpec, ResourceGroupSpec

_NAMESPACE = "kubernetes.io/metadata.name"
ALL, NONE, NAMED, KEPT = "all", "none", "named", "kept"


class QueueForm(EditForm):
    """A cluster queue without its quota table."""

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
        label=_("Evict others while borrowing"), choices=BorrowWithinCohort.choices
    )
    admits = forms.ChoiceField(label=_("Namespaces admitted"))
    namespaces = forms.CharField(
        label=_("Names"),
        required=False,
        help_text=_("Where only some are admitted: their names, with spaces between."),
    )

    def __init__(
        self, *args: Any, teams: Choices = (), cohorts: Choices = (), **kwargs: Any
    ) -> None:
        super().__init__(*args, **kwargs)
        choose(self, "team", [("", _("nobody")), *teams])
        choose(self, "cohort", [("", _("no cohort: it neither borrows nor lends")), *cohorts])
        admits = [(ALL, _("all")), (NAMED, _("only those named")), (NONE, _("none"))]
        if self.initial.get("admits") == KEPT:
            admits.append((KEPT, _("as selected by labels (unchanged)")))
        choose(self, "admits", admits)

    @staticmethod
    def initial_of(spec: ClusterQueueSpec | None) -> dict[str, Any]:
        """Return what the form shows first; without a spec the recommended defaults."""
        if spec is None:
            return {
                "queueing_strategy": QueueingStrategy.BEST_EFFORT_FIFO,
                "stop_policy": StopPolicy.NONE,
                "reclaim_within_cohort": ReclaimWithinCohort.ANY,
                "within_cluster_queue": WithinClusterQueue.LOWER_PRIORITY,
                "borrow_within_cohort": BorrowWithinCohort.NEVER,
                "admits": ALL,
            }
        admits, names = _admission_of(spec.namespace_selector)
        return {
            "name": spec.name,
            "team": spec.team or "",
            "cohort": spec.cohort or "",
            "queueing_strategy": spec.queueing_strategy,
            "stop_policy": spec.stop_policy,
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
            queueing_strategy=data["queueing_strategy"],
            stop_policy=data["stop_policy"],
            fair_weight=kept.fair_weight,
            namespace_selector=self._selector(kept.namespace_selector),
            preemption=PreemptionSpec(
                within_cluster_queue=data["within_cluster_queue"],
                reclaim_within_cohort=data["reclaim_within_cohort"],
                borrow_within_cohort=data["borrow_within_cohort"],
                max_priority_threshold=kept.preemption.max_priority_threshold,
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

    name = forms.CharField(
        label=_("Name"), help_text=_("As Kubernetes spells names; it never changes.")
    )
    parent = forms.ChoiceField(label=_("Inside"), required=False)
    quota_source = forms.ChoiceField(label=_("Own quota"), choices=QuotaSource.choices)

    def __init__(self, *args: Any, cohorts: Choices = (), **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        choose(self, "parent", [("", _("nothing: it is the top of its tree")), *cohorts])

    @staticmethod
    def initial_of(spec: CohortSpec | None) -> dict[str, Any]:
        """Return what the form shows first."""
        shown = spec or CohortSpec("")
        return {
            "name": shown.name,
            "parent": shown.parent or "",
            "quota_source": shown.quota_source,
        }

    def to_spec(
        self, groups: tuple[ResourceGroupSpec, ...], current: CohortSpec | None
    ) -> CohortSpec:
        """Return what was asked for; what the form does not show stays as it is."""
        data = self.cleaned_data
        kept = current or CohortSpec(data["name"])
        return CohortSpec(
            name=kept.name,
            parent=data["parent"] or None,
            groups=groups,
            fair_weight=kept.fair_weight,
            fairness=kept.fairness,
            quota_source=data["quota_source"],
        )
