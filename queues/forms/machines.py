"""Forms of kinds of nodes and of topologies: lists are typed one entry a line."""

from collections.abc import Iterable
from typing import Any

from django import forms
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from queues.choices import PlacementPolicy
from queues.forms.edits import Choices, EditForm, choose
from queues.specs import FlavorSpec, TaintSpec, TopologySpec


def _lines_field(label: Any, help_text: Any, *, required: bool = False) -> forms.CharField:
    area = forms.Textarea(attrs={"rows": 3, "spellcheck": "false"})
    return forms.CharField(label=label, help_text=help_text, required=required, widget=area)


class FlavorForm(EditForm):
    """A kind of node. Its tolerations are kept as they are."""

    costs_work = True

    name = forms.CharField(
        label=_("Name"), help_text=_("As Kubernetes spells names; it never changes.")
    )
    node_labels = _lines_field(
        _("Labels of its nodes"),
        _("One a line, as accelerator=h100-sxm. A node belongs to it if it carries all of them."),
    )
    node_taints = _lines_field(
        _("Taints of its nodes"),
        _("One a line, as dedicated=llm:NoSchedule. Pods without the toleration stay away."),
    )
    topology = forms.ChoiceField(
        label=_("Topology"),
        required=False,
        help_text=_("How near its nodes are to one another. Once set, it never changes."),
    )
    policy = forms.ChoiceField(
        label=_("Of the nodes that fit, a pod takes"),
        choices=PlacementPolicy.choices,
        help_text=_(
            "The first is right for most: free GPUs stay in pieces that others can use. The"
            " fullest first keeps whole nodes empty, to switch them off or for gangs of whole"
            " nodes. The emptiest first gives each pod the most room, and breaks up whole nodes."
        ),
    )

    def __init__(self, *args: Any, topologies: Choices = (), **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        choose(self, "topology", [("", _("none: all its nodes are equally near")), *topologies])

    @staticmethod
    def initial_of(spec: FlavorSpec | None) -> dict[str, Any]:
        """Return what the form shows first."""
        shown = spec or FlavorSpec("")
        return {
            "name": shown.name,
            "node_labels": "\n".join(f"{key}={value}" for key, value in shown.node_labels.items()),
            "node_taints": "\n".join(map(taint_text, shown.node_taints)),
            "topology": shown.topology,
            "policy": shown.policy,
        }

    def clean_node_labels(self) -> dict[str, str]:
        """Return the labels that were typed."""
        return _pairs(self.cleaned_data["node_labels"])

    def clean_node_taints(self) -> tuple[TaintSpec, ...]:
        """Return the taints that were typed."""
        return tuple(_taint(line) for line in _lines(self.cleaned_data["node_taints"]))

    def to_spec(self, current: FlavorSpec | None) -> FlavorSpec:
        """Return what was asked for; tolerations stay as they are."""
        data = self.cleaned_data
        kept = current or FlavorSpec(data["name"])
        return FlavorSpec(
            name=kept.name,
            node_labels=data["node_labels"],
            node_taints=data["node_taints"],
            tolerations=kept.tolerations,
            topology=data["topology"],
            policy=data["policy"],
        )


class TopologyForm(EditForm):
    """Levels of nearness."""

    costs_work = True

    name = forms.CharField(
        label=_("Name"), help_text=_("As Kubernetes spells names; it never changes.")
    )
    levels = _lines_field(
        _("Levels"),
        _("Labels of nodes, one a line, the widest first: block, rack, host."),
        required=True,
    )

    @staticmethod
    def initial_of(spec: TopologySpec | None) -> dict[str, Any]:
        """Return what the form shows first."""
        shown = spec or TopologySpec("", ())
        return {"name": shown.name, "levels": "\n".join(shown.levels)}

    def to_spec(self, current: TopologySpec | None) -> TopologySpec:
        """Return what was asked for."""
        name = current.name if current else self.cleaned_data["name"]
        return TopologySpec(name, tuple(_lines(self.cleaned_data["levels"])))


def taint_text(taint: TaintSpec) -> str:
    """Return a taint in kubectl's notation."""
    value = f"={taint.value}" if taint.value else ""
    return f"{taint.key}{value}:{taint.effect}"


def _lines(text: str) -> Iterable[str]:
    return filter(None, (line.strip() for line in text.splitlines()))


def _pairs(text: str) -> dict[str, str]:
    """Return lines ``key=value`` as a mapping.

    Raises:
        ValidationError: a line has no ``=``, or two lines name one key.
    """
    found: dict[str, str] = {}
    for line in _lines(text):
        key, is_pair, value = (part.strip() for part in line.partition("="))
        if not is_pair:
            words = gettext("%(line)s is no label; write key=value") % {"line": line[:64]}
            raise forms.ValidationError(words, code="BAD_VALUE")
        if key in found:
            words = gettext("%(key)s is listed twice") % {"key": key[:64]}
            raise forms.ValidationError(words, code="duplicate")
        found[key] = value
    return found


def _taint(line: str) -> TaintSpec:
    """Return a taint written as ``key=value:Effect``; the value may be missing.

    Raises:
        ValidationError: the effect is missing.
    """
    mark, has_effect, effect = line.rpartition(":")
    if not has_effect:
        words = gettext("%(line)s is no taint; write key=value:NoSchedule") % {"line": line[:64]}
        raise forms.ValidationError(words, code="BAD_VALUE")
    key, _equals, value = mark.partition("=")
    return TaintSpec(key.strip(), value.strip(), effect.strip())
