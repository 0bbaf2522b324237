"""Loads the tools that a role names in the team file."""

from muster_agent.functions import load_function
from muster_agent.team.schema import ADD_TASK, ModelRole, Team
from muster_agent.tools.builtin import built_in
from muster_agent.tools.tool import Tool, tool_of
from muster_protocol.errors import Invalid


def tools_for(role: ModelRole, team: Team) -> dict[str, Tool]:
    """The role's own tools, by name, and no others."""
    tools: dict[str, Tool] = {}
    taken = {ADD_TASK} if role.spawns else set[str]()  # by a tool that is made for each attempt
    for name in role.tools:
        tool = _own_tool(name, role, team) if ":" in name else built_in(name, team)
        if tool.spec.name in tools.keys() | taken:
            raise Invalid(f"a second tool named {tool.spec.name!r}", f"roles.{role.name}.tools")
        tools[tool.spec.name] = tool
    return tools


def _own_tool(path: str, role: ModelRole, team: Team) -> Tool:
    return tool_of(load_function(path, team.folder), effect=role.effects.get(path.rpartition(":")[2]))
