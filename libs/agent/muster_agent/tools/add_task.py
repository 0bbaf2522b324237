"""The tool by which a model adds tasks; roles with `spawns: true` have it."""

from collections.abc import Iterable, Mapping
from typing import Annotated

from pydantic import Field

from muster_agent.models.port import ToolCall, Turn
from muster_agent.spawning import Spawn
from muster_agent.team.schema import ADD_TASK, Team
from muster_agent.tools.tool import Tool, tool_of

_ABOUT = """\
Ask for one more task that your own work has shown to be needed, and that you cannot do within it. It is given to \
somebody else after you have answered: you never see its output, but whoever reads yours does. Say in the description \
all that one needs who sees nothing of your work. Roles, each with its tags:
{roles}"""


def add_task_tool(spawn: Spawn, team: Team) -> Tool:
    """The tool for one attempt: what it adds goes with that attempt's result."""

    async def add_task(  # calls of one reply are made in their order: the ids count
        description: Annotated[str, Field(min_length=1)],
        tag: Annotated[str, Field(description="of the role that is to do it")],
        depends_on: Annotated[list[str], Field(description="ids of tasks that it needs the outputs of")] = [],  # noqa: B006
        expected_output: str = "",
    ) -> str:
        known = team.role_tags
        if tag not in known:
            return f"not added: nobody has the tag {tag!r}; tags: {', '.join(known)}"
        task_id = spawn(description, tag=tag, dependencies=tuple(depends_on), expected_output=expected_output or None)
        return f"added as {task_id}"

    assert add_task.__name__ == ADD_TASK
    roles = "\n".join(f"- {role.name} ({', '.join(role.tags)}): {role.description}" for role in team.roles)
    return tool_of(add_task, _ABOUT.format(roles=roles))


async def add_again(turns: Iterable[Turn], tools: Mapping[str, Tool], added: list[ToolCall]) -> None:
    """Add what the turns before have added, for it goes with the result of whoever ends the task.

    `added` are the calls that were made again before, and gets the others.
    """
    if (tool := tools.get(ADD_TASK)) is None:
        return
    calls = [call for turn in turns for call in _done(turn) if call.name == ADD_TASK]
    for call in calls[len(added) :]:
        await tool.call(call.arguments)
        added.append(call)


def _done(turn: Turn) -> list[ToolCall]:
    """The calls of a turn that came to something."""
    failed = {output.call_id for output in turn.outputs if output.is_error}
    return [call for call in turn.reply.tool_calls if call.id not in failed]
