"""How the spans of a request are named, and the attributes that say which attempt a span is about."""

from muster_bus.tracing.names import ATTEMPT as ATTEMPT_NUMBER
from muster_bus.tracing.names import DELIVERY, REQUEST_ID, TASK_ID

REQUEST = "invoke_workflow"  # followed by the team
PLAN = "plan"  # followed by the team
ATTEMPT = "invoke_agent"  # followed by the role
ANSWER = "answer"  # followed by the status
TOOL = "execute_tool"  # followed by the tool's name
SERVICE = "service.name"

__all__ = [
    "ANSWER",
    "ATTEMPT",
    "ATTEMPT_NUMBER",
    "DELIVERY",
    "PLAN",
    "REQUEST",
    "REQUEST_ID",
    "SERVICE",
    "TASK_ID",
    "TOOL",
]
