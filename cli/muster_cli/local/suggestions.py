"""What a person could ask the team that is up, as a command line and as the body of a request. Pure."""

import json
import shlex
from typing import Any, NamedTuple

from muster_agent.team.schema import ModelRole, Team

GENERAL = "What can this team do?"


class Suggestion(NamedTuple):
    """What follows `muster`, what stands before it, and the same as the fields of a request."""

    words: str
    before: str
    fields: dict[str, Any]

    def line(self, muster: str) -> str:
        return f"{self.before}{muster} {self.words}"


def suggestion(team: Team) -> Suggestion:
    """The team's first example; of functions alone a plan, because nobody there reads a question."""
    if not team.examples and not any(isinstance(role, ModelRole) for role in team.roles):
        role = team.roles[0].name
        fields = {"plan": {"tasks": [{"id": "one", "tag": role, "description": f"something for {role}"}]}}
        return Suggestion("submit --plan -", f"echo {shlex.quote(json.dumps(fields['plan']))} | ", fields)
    text = team.examples[0] if team.examples else GENERAL
    return Suggestion(f"ask {shlex.quote(text)}", "", {"text": text})
