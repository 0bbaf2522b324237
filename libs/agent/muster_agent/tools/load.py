"""Loads the tools that a role names in the team file."""

from collections.abc import Mapping
from types import MappingProxyType

from muster_agent.functions import load_function
from muster_agent.team.schema import ADD_TASK, ModelRole, Team
from muster_agent.tools.builtin import built_in
from muster_agent.tools.cached import cached
from muster_agent.tools.tool import Tool, tool_of
from muster_protocol.errors import Invalid

NO_KEYS: Mapping[str, str] = MappingProxyType({})


def tools_for(role: ModelRole, team: Team, keys: Mapping[str, str] = NO_KEYS) -> dict[str, Tool]:
    """The role's own tools, by name, and no others. `keys` are those of services, by the names of their variables."""
    tools: dict[str, Tool] = {}
    taken = {ADD_TASK} if role.spawns else set[str]()  # by a tool that is made for each attempt
    for said in role.tools:
        name = said.use
        tool = tool_of(load_function(name, team.folder)) if ":" in name else built_in(name, team, keys)
        if tool.spec.name in tools.keys() | taken:
            raise Invalid(f"a second tool named {tool.spec.name!r}", f"roles.{role.name}.tools")
        tools[tool.spec.name] = cached(tool, name) if said.cache else tool
    return tools
