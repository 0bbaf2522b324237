"""How the spans of a request are named, and the attributes that say which attempt a span is about."""

REQUEST = "invoke_workflow"  # followed by the team
PLAN = "plan"  # followed by the team
ATTEMPT = "invoke_agent"  # followed by the role
ANSWER = "answer"  # followed by the status
TOOL = "execute_tool"  # followed by the tool's name

TASK_ID = "muster.task.id"
ATTEMPT_NUMBER = "muster.task.attempt"
DELIVERY = "muster.delivery"
REQUEST_ID = "muster.request.id"
SERVICE = "service.name"
