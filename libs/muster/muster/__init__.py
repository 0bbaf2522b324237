"""Teams of LLM agents, from Python: `Team`, `Role`, `@role`, `@tool` and `Plan`, and what the functions of roles need.

`python -m muster` is the command `muster`.
"""

from muster.marks import Role, role, tool
from muster.plan import Plan
from muster.team import Team
from muster_agent.functions import Context
from muster_client import Client
from muster_protocol.errors import Invalid, Retryable, Terminal
from muster_protocol.messages import Answer, Task

__all__ = [
    "Answer",
    "Client",
    "Context",
    "Invalid",
    "Plan",
    "Retryable",
    "Role",
    "Task",
    "Team",
    "Terminal",
    "role",
    "tool",
]
