"""The tool by which a model adds tasks; roles with `spawns: true` have it."""

from typing import Annotated

from pydantic import Field

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

    def add_task(
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
