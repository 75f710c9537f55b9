"""Who works here. Passwords of the demo are the names; the demo serves this machine only."""

from dataclasses import dataclass

from queues.choices import Role, TeamRole
from queues.models import Membership, PlatformRole, Team, User
from queues.services import save_team
from queues.specs import TeamSpec


@dataclass(frozen=True, slots=True)
class Person:
    """A login of the demo: what they are, and in which team."""

    username: str
    name: str
    role: Role | None = None
    team: str = ""
    team_role: TeamRole = TeamRole.MEMBER

    @property
    def password(self) -> str:
        """Return the demo's password."""
        return f"{self.username}-demo"


PEOPLE = (
    Person("ada", "Ada Moreno", role=Role.ADMIN),
    Person("fin", "Finn Aguado", role=Role.FINANCE),
    Person("aud", "Aude Laurent", role=Role.AUDITOR),
    Person("lea", "Lea Ortiz", team="datos", team_role=TeamRole.LEAD),
    Person("ian", "Ian Vidal", team="ia"),
    Person("vera", "Vera Lindt", team="vision", team_role=TeamRole.LEAD),
    Person("bo", "Bo Jansen", team="bio"),
)
TEAMS = (
    TeamSpec("datos", "Datos", "CC-1010", description="Language models for the data platform."),
    TeamSpec("ia", "IA", "CC-1020", description="Applied research."),
    TeamSpec("plataforma", "Plataforma", "CC-1030", description="Shared services."),
    TeamSpec("vision", "Vision", "CC-2010", "chargeback", "Image and video models."),
    TeamSpec("speech", "Speech", "CC-2020", "chargeback", "Recognition and synthesis."),
    TeamSpec("bio", "Bio", "CC-2030", description="Protein structure."),
    TeamSpec("search", "Search", "CC-3010", "chargeback", "Ranking and retrieval."),
    TeamSpec("recsys", "RecSys", "CC-3020", "chargeback", "Recommendations."),
    TeamSpec("robotics", "Robotics", "CC-4010", description="Simulation to robot."),
)


def hire() -> dict[str, User]:
    """Create teams and logins; return the users by name."""
    for spec in TEAMS:
        save_team(spec, actor=None, reason="Demo data")
    return {person.username: _login(person) for person in PEOPLE}


def _login(person: Person) -> User:
    first, last = person.name.split()
    user = User.objects.create_user(
        person.username, password=person.password, first_name=first, last_name=last
    )
    if person.role:
        PlatformRole.objects.create(user=user, role=person.role)
    if person.team:
        Membership.objects.create(
            user=user, team=Team.objects.get(name=person.team), role=person.team_role
        )
    return user
