"""Loads the tools that a role names in the team file."""

from collections.abc import Mapping
from types import MappingProxyType

from muster_agent.functions import load_function
from muster_agent.isolation.pool import Pool
from muster_agent.isolation.process import Kind
from muster_agent.isolation.tool import IsolatedTool
from muster_agent.team.schema import ADD_TASK, CANNOT_DO, ModelRole, Team
from muster_agent.team.tool_spec import ToolUse
from muster_agent.tools.builtin import built_in
from muster_agent.tools.cached import cached
from muster_agent.tools.tool import Tool, tool_of
from muster_protocol.errors import Invalid

NO_KEYS: Mapping[str, str] = MappingProxyType({})


def tools_for(
    role: ModelRole, team: Team, pool: Pool | None = None, keys: Mapping[str, str] = NO_KEYS
) -> dict[str, Tool]:
    """The role's own tools, by name, and no others; without a pool no function has a process of its own.

    `keys` are those of services, by the names of their variables.
    """
    tools: dict[str, Tool] = {}
    taken = {CANNOT_DO, ADD_TASK} if role.spawns else {CANNOT_DO}  # by tools that come by themselves
    for said in role.tools:
        tool = _own_tool(said, team) if ":" in said.use else built_in(said.use, team, keys)
        if tool.spec.name in tools.keys() | taken:
            raise Invalid(f"a second tool named {tool.spec.name!r}", f"roles.{role.name}.tools")
        own = _isolated(tool, said, role, team, pool) if pool and said.is_isolated else tool
        named = " ".join((said.use, *sorted(said.env)))  # with another account it may give another output
        tools[tool.spec.name] = cached(own, named) if said.cache else own
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
