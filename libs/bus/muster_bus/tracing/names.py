"""Every span, attribute and event that Muster writes, and the convention that each of them follows.

A span's name begins with a verb of its convention and ends with a word of which there are few, such as a role or a
team: ids stand in attributes. Names of the conventions for messaging and for generative AI are copied here, since the
latter are still being developed and their Python constants are marked as moved. What they have no name for begins
with `muster.`. `SPANS` says which span may have which kind and which attributes it always has; the tests hold every
exported span to it.
"""

import re
from dataclasses import dataclass

from opentelemetry.trace import SpanKind

from muster_protocol.subjects import template_of

# what a span's name is, or begins with
INVOKE_WORKFLOW, PLAN = "invoke_workflow", "plan"  # followed by the team
INVOKE_AGENT, REFINE, TRY_AGAIN = "invoke_agent", "refine", "try again"  # followed by the role
EXECUTE_TOOL, CHAT, ANSWER = "execute_tool", "chat", "answer"  # followed by the tool, the model, the status
PUBLISH_TASKS, LINT, COMPOSE, TAKE_OVER = "publish tasks", "lint", "compose", "take over"
GROW = "grow"  # followed by what makes the plan grow
WAIT_FOR_PERSON = "wait for person"  # followed by what the question is about
CONFLICT = "conflict"  # the span of what was assigned, started or finished twice
# general
SERVICE = "service.name"
ERROR_TYPE = "error.type"
SERVER_ADDRESS, SERVER_PORT = "server.address", "server.port"
# messaging
SYSTEM = "messaging.system"
OPERATION_NAME, OPERATION_TYPE = "messaging.operation.name", "messaging.operation.type"
DESTINATION, DESTINATION_TEMPLATE = "messaging.destination.name", "messaging.destination.template"
MESSAGE_ID, CONVERSATION_ID = "messaging.message.id", "messaging.message.conversation_id"
BATCH_COUNT, CONSUMER_GROUP = "messaging.batch.message_count", "messaging.consumer.group.name"
# generative AI
OPERATION = "gen_ai.operation.name"
WORKFLOW, AGENT = "gen_ai.workflow.name", "gen_ai.agent.name"
PROVIDER, OUR_PROVIDER = "gen_ai.provider.name", "muster"  # the offline model and scripted ones
MODEL, MAX_TOKENS = "gen_ai.request.model", "gen_ai.request.max_tokens"
INPUT_TOKENS, OUTPUT_TOKENS = "gen_ai.usage.input_tokens", "gen_ai.usage.output_tokens"
FINISH_REASONS = "gen_ai.response.finish_reasons"
TOOL, TOOL_TYPE, TOOL_CALL_ID = "gen_ai.tool.name", "gen_ai.tool.type", "gen_ai.tool.call.id"
INPUT_MESSAGES, OUTPUT_MESSAGES = "gen_ai.input.messages", "gen_ai.output.messages"
TOOL_ARGUMENTS, TOOL_RESULT = "gen_ai.tool.call.arguments", "gen_ai.tool.call.result"
# ours
REQUEST_ID, DELIVERY, PREVIOUS_OWNER = "muster.request.id", "muster.delivery", "muster.previous_owner"
TASK_ID, ATTEMPT, DESCRIPTION, TAG = (
    "muster.task.id",
    "muster.task.attempt",
    "muster.task.description",
    "muster.task.tag",
)
DEPENDENCIES, WAITED_FOR = "muster.task.dependencies", "muster.task.waited_for"
TASKS, FINDINGS = "muster.plan.tasks", "muster.plan.findings"
CAUSE = "muster.growth.cause"
QUESTION, CHOICE = "muster.question", "muster.choice"  # and what counted in the end; none: the request ended first
STATUS, SECONDS, USD = "muster.status", "muster.seconds", "muster.cost.usd"
REASON = "muster.reason"
CONFIDENCE, CONTRADICTIONS, UNSUPPORTED = "muster.confidence", "muster.contradictions", "muster.unsupported"
CHOSEN = "muster.task.chosen"  # of the tasks of a batch: which role, of several that match, and why
CONFLICT_KINDS, WORKER, MESSAGE = "muster.conflict.kinds", "muster.worker", "muster.task.message"

CONTENT = (INPUT_MESSAGES, OUTPUT_MESSAGES, TOOL_ARGUMENTS, TOOL_RESULT)  # written with MUSTER_TRACE_CONTENT=1 alone

# span events: what a span waited for, or what happened to it
QUEUED = "queued"  # between the reservation of an attempt and its start
BACK_OFF = "back-off"  # before the next attempt
RETRY = "retry"  # a model was busy: the wait before the next call …
RATE_LIMIT = "rate limit"  # … and where it said that it is asked too often
BROKER_AWAY, BROKER_BACK = "broker away", "broker back"
REDELIVERED = "redelivered"
PAUSED = "paused"  # the process or its event loop stood still
LEASE_LOST = "lease lost"
HANDED_BACK, STOPPED = "handed back", "stopped"
CONFLICT_SIDE = "side of a conflict"  # one assignment of an attempt that was assigned twice
EVENTS = (
    *(QUEUED, BACK_OFF, RETRY, RATE_LIMIT, BROKER_AWAY, BROKER_BACK, REDELIVERED, PAUSED, LEASE_LOST),
    *(HANDED_BACK, STOPPED, CONFLICT_SIDE),
    "exception",  # OpenTelemetry's own
)


@dataclass(frozen=True, slots=True)
class SpanRule:
    """How spans of one kind of work look."""

    name: str  # a pattern
    kinds: tuple[SpanKind, ...]
    required: tuple[str, ...]
    convention: str

    def fits(self, name: str) -> bool:
        return re.fullmatch(self.name, name) is not None


_MESSAGE = (SYSTEM, OPERATION_NAME, OPERATION_TYPE, DESTINATION_TEMPLATE, CONVERSATION_ID, SERVER_ADDRESS, SERVER_PORT)
_TAKEN = (*_MESSAGE, DESTINATION, CONSUMER_GROUP, REQUEST_ID)
GEN_AI = "https://github.com/open-telemetry/semantic-conventions-genai"
MESSAGING = "https://opentelemetry.io/docs/specs/semconv/messaging/messaging-spans/"
HTTP = "https://opentelemetry.io/docs/specs/semconv/http/http-spans/"
INTERNAL, CONSUMER, PRODUCER, CLIENT = SpanKind.INTERNAL, SpanKind.CONSUMER, SpanKind.PRODUCER, SpanKind.CLIENT

SPANS = (
    # What takes a message is a consumer also where it is a workflow or an agent, which by themselves would be internal.
    SpanRule(
        rf"{INVOKE_WORKFLOW} \S+",
        (CONSUMER,),
        (OPERATION, WORKFLOW, *_TAKEN, MESSAGE_ID),
        f"{GEN_AI} and {MESSAGING}",
    ),
    SpanRule(
        rf"{INVOKE_AGENT} \S+",
        (CONSUMER,),
        (OPERATION, AGENT, *_TAKEN, MESSAGE_ID, TASK_ID, ATTEMPT, DELIVERY, DESCRIPTION, TAG),
        f"{GEN_AI} and {MESSAGING}",
    ),
    SpanRule(r"publish requests\.\{team\}", (PRODUCER,), (*_MESSAGE, DESTINATION, REQUEST_ID, MESSAGE_ID), MESSAGING),
    SpanRule(PUBLISH_TASKS, (PRODUCER,), (*_MESSAGE, BATCH_COUNT, REQUEST_ID), MESSAGING),
    SpanRule(rf"{PLAN} \S+", (INTERNAL,), (OPERATION, AGENT, REQUEST_ID), GEN_AI),
    SpanRule(rf"{CHAT} .+", (CLIENT, INTERNAL), (OPERATION, PROVIDER, MODEL, MAX_TOKENS), GEN_AI),
    SpanRule(rf"{EXECUTE_TOOL} \S+", (INTERNAL,), (OPERATION, TOOL, TOOL_TYPE, TOOL_CALL_ID), GEN_AI),
    SpanRule(LINT, (INTERNAL,), (FINDINGS,), "ours"),
    SpanRule(rf"({REFINE}|{TRY_AGAIN}) \S+", (INTERNAL,), (REQUEST_ID, TASK_ID, ATTEMPT), "ours"),
    SpanRule(rf"{GROW} \S+", (INTERNAL,), (REQUEST_ID, CAUSE), "ours"),
    SpanRule(rf"{WAIT_FOR_PERSON} (plan|task)", (INTERNAL,), (REQUEST_ID, QUESTION), "ours"),
    SpanRule(COMPOSE, (INTERNAL,), (REQUEST_ID,), "ours"),
    SpanRule(CONFLICT, (INTERNAL,), (REQUEST_ID, TASK_ID, ATTEMPT, CONFLICT_KINDS, REASON), "ours"),
    SpanRule(TAKE_OVER, (INTERNAL,), (REQUEST_ID, DELIVERY, PREVIOUS_OWNER), "ours"),
    SpanRule(
        rf"{ANSWER} (done|partial|failed|cancelled)",
        (INTERNAL,),
        (REQUEST_ID, STATUS, SECONDS, INPUT_TOKENS, OUTPUT_TOKENS, USD),
        "ours",
    ),
    SpanRule(r"(GET|POST) /\S*", (SpanKind.SERVER,), ("http.request.method",), HTTP),
)


def publish_name(subject: str) -> str:
    """The name of a span that publishes one message, such as `publish requests.{team}`."""
    return f"publish {template_of(subject)}"


def messaging(operation: str, subject: str, request_id: str) -> dict[str, str]:
    """What every span about messages says, whatever the message."""
    return {
        SYSTEM: "nats",
        OPERATION_NAME: operation,
        OPERATION_TYPE: "send" if operation == "publish" else "process",
        DESTINATION_TEMPLATE: template_of(subject),
        CONVERSATION_ID: request_id,
        REQUEST_ID: request_id,
    }
