"""Loads the tools that a role names in the team file."""

from muster_agent.functions import load_function
from muster_agent.isolation.pool import Pool
from muster_agent.isolation.process import Kind
from muster_agent.isolation.tool import IsolatedTool
from muster_agent.team.schema import ADD_TASK, ModelRole, Team
from muster_agent.team.tool_spec import ToolUse
from muster_agent.tools.builtin import built_in
from muster_agent.tools.tool import Tool, tool_of
from muster_protocol.errors import Invalid


def tools_for(role: ModelRole, team: Team, pool: Pool | None = None) -> dict[str, Tool]:
    """The role's own tools, by name, and no others; without a pool no function has a process of its own."""
    tools: dict[str, Tool] = {}
    taken = {ADD_TASK} if role.spawns else set[str]()  # by a tool that is made for each attempt
    for said in role.tools:
        tool = _own_tool(said, team) if ":" in said.use else built_in(said.use, team)
        if tool.spec.name in tools.keys() | taken:
            raise Invalid(f"a second tool named {tool.spec.name!r}", f"roles.{role.name}.tools")
        tools[tool.spec.name] = _isolated(tool, said, role, team, pool) if pool and said.is_isolated else tool
    return tools


def _own_tool(said: ToolUse, team: Team) -> Tool:
    return tool_of(load_function(said.use, team.folder), effect=said.effect or None)


def _isolated(tool: Tool, said: ToolUse, role: ModelRole, team: Team, pool: Pool) -> Tool:
    kind = Kind(role.name, said.memory_mb, said.env)
    return IsolatedTool(
        tool.spec,
        tool.arguments,
        tool.function,
        tool.effect,
        pool=pool,
        kind=kind,
        path=said.use,
        folder=team.folder,
        seconds=said.timeout_seconds,
    )
