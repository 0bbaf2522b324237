"""Every key of a team file stands in docs/extending.md, with its default, and no other does."""

import re
from collections.abc import Container

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from muster_agent.models.port import Price
from muster_agent.team.files import FilesSpec
from muster_agent.team.schema import (
    CallbackSpec,
    FunctionRole,
    Limits,
    ModelRole,
    Priorities,
    RetrySpec,
    SupervisorSpec,
    Team,
)
from muster_agent.team.tool_spec import ToolUse
from muster_agent.team.web import SearchSpec, WebSpec
from tests.harness import ROOT

WITHIN = {"roles.retry.": [RetrySpec], "roles.tools.": [ToolUse], "web.search.": [SearchSpec]}


def test_every_key_of_a_team_file_is_documented_with_its_default_and_no_other():
    page = (ROOT / "docs" / "extending.md").read_text(encoding="utf-8")
    documented = re.findall(r"^\| `([\w.<>]+)` \| (?:`([^`]+)`|(needed|–)) \|", page, re.MULTILINE)
    parts: dict[str, list[type[BaseModel]]] = {
        "supervisor.": [SupervisorSpec],
        "roles.": [ModelRole, FunctionRole],
        "limits.": [Limits],
        "priorities.": [Priorities],
        "retry.": [RetrySpec],
        "callbacks.": [CallbackSpec],
        "files.": [FilesSpec],
        "web.": [WebSpec],
        "prices.<model>.": [Price],
    }
    within = {"folder", "search", *(prefix.partition(".")[0] for prefix in parts)}  # what has keys of its own
    known = defaults(Team, leave_out=within)
    for prefix, models in (parts | WITHIN).items():
        found = [pair for model in models for pair in defaults(model, leave_out=within).items()]
        known |= {f"{prefix}{name}": default for name, default in found}
    assert {key: default or word for key, default, word in documented} == known


def defaults(model: type[BaseModel], leave_out: Container[str] = ()) -> dict[str, str]:
    """The keys of a part of the team file, each with its default as the page writes it."""
    return {name: shown(field) for name, field in model.model_fields.items() if name not in leave_out}


def shown(field: FieldInfo) -> str:
    if field.is_required():
        return "needed"
    default = field.get_default(call_default_factory=True, validated_data={})
    if isinstance(default, int | float):
        return str(default).lower() if isinstance(default, bool) else f"{default:g}"
    return default or "–"
