"""Forms of people: who they are, how they first sign in, their passwords and tokens."""

import json
from typing import TYPE_CHECKING, Any

from django import forms
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from gpuplatform.common.decimals import WholeField
from queues.choices import Role, TeamRole
from queues.forms.edits import Choices, EditForm, choose
from queues.specs import PersonSpec

TEAM_ROWS = 3
GENERATED, TYPED, NONE = "generated", "typed", "none"
YES, NO = "yes", "no"
MOST_DAYS = 366


class PersonForm(EditForm):
    """Somebody who may sign in. ``username`` is asked for a new one only."""

    username = forms.CharField(
        label=_("User name"),
        help_text=_("Letters, digits and @ . + - _; it never changes."),
        widget=forms.TextInput(attrs={"autocomplete": "off"}),
    )
    first_name = forms.CharField(label=_("First name"), required=False)
    last_name = forms.CharField(label=_("Last name"), required=False)
    email = forms.CharField(label=_("E-mail"), required=False)
    roles = forms.MultipleChoiceField(
        label=_("Roles on the whole platform"),
        choices=Role.choices,
        required=False,
        widget=forms.CheckboxSelectMultiple,
        help_text=_("Who only works in teams needs none."),
    )
    is_active = forms.ChoiceField(
        label=_("Access"),
        choices=[(YES, _("may sign in")), (NO, _("shut out: no password, no token works"))],
        initial=YES,
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        del self.fields["version"]
        del self.fields["is_active" if self.is_new else "username"]

    @staticmethod
    def initial_of(spec: PersonSpec) -> dict[str, Any]:
        """Return what the form shows first."""
        return {
            "first_name": spec.first_name,
            "last_name": spec.last_name,
            "email": spec.email,
            "roles": list(spec.roles),
            "is_active": YES if spec.is_active else NO,
        }

    def to_spec(self, username: str = "") -> PersonSpec:
        """Return what was asked for."""
        data = self.cleaned_data
        return PersonSpec(
            username=username or data["username"],
            first_name=data["first_name"],
            last_name=data["last_name"],
            email=data["email"],
            is_active=data.get("is_active", YES) == YES,
            roles=tuple(sorted(data["roles"])),
        )

    def seen_state(self) -> dict[str, Any] | None:
        """Return the person as they were when the form was opened; None where it does not say."""
        try:
            found = json.loads(self.cleaned_data["seen"] or "null")
        except ValueError:
            found = {}
        return found if found is None or isinstance(found, dict) else {}


class PasswordFields(forms.Form):
    """A password that an admin gives to somebody: typed twice, or made by the platform."""

    sign_in = forms.ChoiceField(label=_("Password"))
    password = forms.CharField(
        label=_("Password typed here"),
        required=False,
        strip=False,
        widget=forms.PasswordInput(attrs={"autocomplete": "new-password"}),
        help_text=_("At least 8 characters, and no common word."),
    )
    password_again = forms.CharField(
        label=_("The same again"),
        required=False,
        strip=False,
        widget=forms.PasswordInput(attrs={"autocomplete": "new-password"}),
    )

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        choices = [(GENERATED, _("generated, shown once")), (TYPED, _("typed here"))]
        choose(self, "sign_in", [*choices, *self.more_choices()])

    def more_choices(self) -> Choices:
        """Return further ways to sign in."""
        return ()

    def clean(self) -> dict[str, Any]:
        """Compare the two, and do not lose one that was typed beside another choice."""
        data = dict(super().clean() or {})
        typed, again = data.get("password", ""), data.get("password_again", "")
        if data.get("sign_in") == TYPED:
            if not typed:
                self.add_error("password", gettext("type a password"))
            elif typed != again:
                self.add_error("password_again", gettext("the two passwords differ"))
        elif typed or again:
            self.add_error("sign_in", gettext("choose that the password is typed, or empty it"))
        return data


class FirstPasswordForm(PasswordFields):
    """How somebody new signs in at first."""

    def more_choices(self) -> Choices:
        """Return that a program needs no password."""
        return [(NONE, _("none: a service account that only has tokens"))]


class NewPasswordForm(PasswordFields):
    """Another password for somebody who lost theirs, with the reason."""

    reason = EditForm.base_fields["reason"]


class FactorForm(forms.Form):
    """Why somebody's second factor is taken off."""

    reason = EditForm.base_fields["reason"]


class GroupGrantForm(forms.Form):
    """A group at the identity provider; what it ``gives`` is ``team:role`` or a role."""

    group = forms.CharField(
        label=_("Group"),
        max_length=255,
        help_text=_("As the provider spells it; capitals count."),
        widget=forms.TextInput(attrs={"autocomplete": "off"}),
    )
    gives = forms.ChoiceField(label=_("Its members are"))

    def __init__(self, *args: Any, teams: Choices = (), **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        places = [(str(shown), _places(name, shown)) for name, shown in teams]
        roles = (gettext("On the whole platform"), Role.choices)
        choose(self, "gives", [("", gettext("choose")), *places, roles])  # nobody is admin unasked

    def wanted(self) -> tuple[str, str]:
        """Return the team's name, or "", and the role."""
        team, _colon, role = self.cleaned_data["gives"].rpartition(":")
        return team, role


def _places(team: str, shown: str) -> Choices:
    roles = (TeamRole.MEMBER, TeamRole.LEAD)
    return [(f"{team}:{role}", f"{role.label}, {shown}") for role in roles]


class TeamPlaceForm(forms.Form):
    """One team of somebody new, and the role in it."""

    team = forms.ChoiceField(label=_("Team"), required=False)
    role = forms.ChoiceField(label=_("Role"), choices=TeamRole.choices, initial=TeamRole.MEMBER)

    def __init__(self, *args: Any, teams: Choices = (), **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        choose(self, "team", [("", "-"), *teams])
        for field in self.fields.values():
            field.widget.attrs["aria-label"] = field.label


if TYPE_CHECKING:  # generic for the type checker only
    _PlaceSet = forms.BaseFormSet[TeamPlaceForm]
else:
    _PlaceSet = forms.BaseFormSet


class TeamPlaces(_PlaceSet):
    """The teams of somebody new."""

    def wanted(self) -> dict[str, str]:
        """Return the role in each team that was named."""
        rows = (form.cleaned_data for form in self.forms)
        return {row["team"]: row["role"] for row in rows if row.get("team")}


def team_places(teams: Choices, data: Any = None, *, lead_of: str = "") -> TeamPlaces:
    """Return the rows in which teams are named; ``lead_of`` stands in the first one."""
    factory = forms.formset_factory(
        TeamPlaceForm, formset=TeamPlaces, extra=TEAM_ROWS, max_num=TEAM_ROWS, absolute_max=50
    )
    made: Any = factory(data, prefix="teams", form_kwargs={"teams": list(teams)})
    rows: TeamPlaces = made
    if lead_of and data is None:  # what is sent unchanged would else count as empty
        rows.forms[0].initial = {"team": lead_of, "role": TeamRole.LEAD}
    return rows


class TokenForm(forms.Form):
    """A new token of one's own."""

    name = forms.CharField(
        label=_("Name"), max_length=64, help_text=_("Where it is used: laptop, ci, airflow.")
    )
    scopes = forms.MultipleChoiceField(
        label=_("Scopes"),
        widget=forms.CheckboxSelectMultiple,
        help_text=_("It never allows more than you may do yourself."),
    )
    team = forms.ChoiceField(label=_("Limited to"), required=False)
    days = WholeField(label=_("Expires after, days"), min_value=1, max_value=MOST_DAYS, initial=90)

    def __init__(
        self, *args: Any, scopes: Choices = (), teams: Choices = (), **kwargs: Any
    ) -> None:
        super().__init__(*args, **kwargs)
        offered = self.fields["scopes"]
        assert isinstance(offered, forms.MultipleChoiceField)
        offered.choices = scopes
        choose(self, "team", [("", _("all that I may see")), *teams])
