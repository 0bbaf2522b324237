"""The tool by which a model says that it cannot do its task; every role that uses a model has it."""

from typing import Annotated, NoReturn

from pydantic import Field

from muster_agent.errors import CannotDo
from muster_agent.team.schema import CANNOT_DO
from muster_agent.tools.tool import tool_of


def cannot_do(reason: Annotated[str, Field(min_length=1)]) -> NoReturn:
    """Say that the task cannot be done at all with what you have, and end it.

    The reason names what is missing: whoever leads describes the task anew, or gives it to somebody else. Where a
    part can be done, do that part and name the gap instead.
    """
    raise CannotDo(f"the worker says that it cannot do this: {reason}")


assert cannot_do.__name__ == CANNOT_DO
CANNOT_DO_TOOL = tool_of(cannot_do)
