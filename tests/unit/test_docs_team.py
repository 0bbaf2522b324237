"""The page about team files lists every key that there is, with its default."""

import re
from collections.abc import Container
from pathlib import Path

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from muster_agent.models.port import Price
from muster_agent.team.files import FilesSpec
from muster_agent.team.providers import Capabilities, ProviderSpec
from muster_agent.team.rate_limits import RateLimits
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

PAGE = Path(__file__).parents[2] / "docs" / "extending.md"


def test_every_key_of_a_team_file_is_documented_with_its_default_and_no_other():
    page = PAGE.read_text(encoding="utf-8")
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
        "providers.<name>.": [ProviderSpec],
        "rate_limits.<provider>.": [RateLimits],
    }
    within = {
        "folder",
        "fallbacks",
        "capabilities",
        "search",
        *(prefix.partition(".")[0] for prefix in parts),
    }  # what has keys of its own
    known = defaults(Team, leave_out=within)
    for prefix, models in (
        parts
        | {
            "roles.retry.": [RetrySpec],
            "providers.<name>.capabilities.": [Capabilities],
            "roles.tools.": [ToolUse],
            "web.search.": [SearchSpec],
        }
    ).items():
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
