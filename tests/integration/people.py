"""Run inside ``manage.py shell``: the articles' three teams, and a token for each person."""

import json

from queues.models import Team
from queues.services import (
    create_person,
    issue_token,
    save_namespace,
    save_team,
    set_membership,
    set_platform_role,
)
from queues.specs import NamespaceSpec, TeamSpec

ada = create_person("ada", actor=None)
set_platform_role(ada, "admin", True, actor=None)
_, secret = issue_token(
    ada, "test", ["admin", "quota:write", "read", "workloads:submit"], actor=ada
)
tokens = {"ada": secret}
for person, team in (("lea", "datos"), ("ian", "ia"), ("pia", "plataforma")):
    save_team(TeamSpec(name=team, display_name=team.title()), actor=ada)
    save_namespace(NamespaceSpec(name=f"ns-{team}", team=team), actor=ada)
    user = create_person(person, actor=ada)
    set_membership(Team.objects.get(name=team), user, "lead", ada)
    _, tokens[person] = issue_token(user, "test", ["read", "workloads:submit"], actor=ada)
print(json.dumps(tokens))  # noqa: T201
