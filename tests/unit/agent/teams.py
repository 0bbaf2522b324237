"""Teams and tasks for the tests."""

from pathlib import Path
from typing import Any

from muster_agent.team.file import load_team, team_of
from muster_agent.team.schema import Team
from muster_protocol.messages import Task

ROOT = Path(__file__).parents[3]
CLOUD = ROOT / "examples" / "cloud" / "team.yaml"
FUNCTIONS = ROOT / "examples" / "functions" / "team.yaml"


def cloud() -> Team:
    """The example without its pauses."""
    team = load_team(CLOUD)
    roles = tuple(role.model_copy(update={"offline_seconds": 0.0}) for role in team.roles)
    return team.model_copy(update={"roles": roles})


def team(*roles: dict[str, Any], folder: Path = Path(), **keys: Any) -> Team:
    return team_of({"team": "t", "roles": list(roles), **keys}, folder)


def task(tag: str, description: str = "do it well", **fields: Any) -> Task:
    given = {"request_id": "r", "task_id": "t", "attempt": 1, "team": "t", "timeout_seconds": 5, "deadline": 0}
    return Task.model_validate(
        {**given, "tag": tag, "description": description, "reserved_at": 0, "reserved_sequence": 1, **fields}
    )
