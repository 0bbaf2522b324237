"""The outcome of an attempt as a value: done with an output, or failed with a reason that names its class."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from pydantic_core import from_json

from muster_agent.budget import Meter
from muster_agent.errors import LimitReached
from muster_agent.isolation.errors import RaisedInside
from muster_agent.models.port import NOTHING
from muster_agent.output_schema import output_mistakes
from muster_agent.stacks import own_frames, stack_of
from muster_bus.redact import KNOWN
from muster_protocol.errors import MusterError, Terminal, cause_of, error_class_of
from muster_protocol.messages import Failure, Output, ResultStatus, Usage
from muster_protocol.plan import TaskSpec

MAX_STACK = 2000
MAX_MESSAGE = 2000  # the answer repeats it once or twice for each of up to ten thousand tasks
MAX_PLAIN = 2**63
MESSAGE_DEPTH = 8  # levels of lists and objects around an output, in whichever message it travels
_PLAIN = (str, int, bool, type(None))  # types that cannot hold anything that JSON does not know


@dataclass(frozen=True, slots=True)
class Outcome:
    """What one attempt ended with, and what it used."""

    status: ResultStatus
    role: str
    output: Output = None
    error: Failure | None = None
    usage: Usage = NOTHING
    tool_calls: tuple[dict[str, Any], ...] = ()
    tasks: tuple[TaskSpec, ...] = ()  # that it adds
    spent: Usage | None = None  # of the whole task, if turns of it are stored
    model: str = ""  # that was asked, with its provider


def failed(role: str, error: Failure) -> Outcome:
    """The outcome of an attempt whose role did not run to its end."""
    return Outcome(ResultStatus.FAILED, role, error=error)


def stopped(role: str, reason: str, meter: Meter) -> Outcome:
    """The outcome of an attempt that was told to stop: what it had spent, and nothing else."""
    error, calls = failure("cancelled", reason), tuple(meter.tool_calls)
    return Outcome(ResultStatus.CANCELLED, role, None, error, meter.usage, calls, spent=meter.spent)


def failure(error_class: str, message: str, *, stack: str | None = None, is_final: bool = False) -> Failure:
    text = _encodable(KNOWN(message)[:MAX_MESSAGE])
    return Failure.model_validate({"class": error_class, "message": text, "stack": stack, "is_final": is_final})


def failure_of(raised: BaseException) -> Failure:
    """The failure that an exception of a role means; one that is not ours comes with its stack."""
    raised = cause_of(raised)
    error_class = error_class_of(raised)
    is_final = isinstance(raised, Terminal)
    if isinstance(raised, LimitReached):
        return failure(error_class, str(raised)).model_copy(update={"limited_until": round(raised.until, 3)})
    if isinstance(raised, RaisedInside):
        stack = None if raised.stack is None else _shown(raised.stack)
        return failure(error_class, str(raised), stack=stack, is_final=raised.is_final)
    if isinstance(raised, MusterError) and str(raised):
        stack = _shown(stack_of(raised)) if own_frames(raised) else None
        return failure(error_class, str(raised), stack=stack, is_final=is_final)
    text = f"{type(raised).__name__}: {raised}" if str(raised) else type(raised).__name__
    return failure(error_class, text, stack=_shown(stack_of(raised)), is_final=is_final)


def not_json(output: Output) -> Failure | None:
    """The failure of an output that no message can carry; plain texts and numbers need no trial."""
    if type(output) in _PLAIN and (output.isascii() if isinstance(output, str) else abs(output or 0) < MAX_PLAIN):
        return None
    try:
        text = json.dumps(output, ensure_ascii=False, allow_nan=False)
        from_json(f"{'[' * MESSAGE_DEPTH}{text}{']' * MESSAGE_DEPTH}".encode())  # nested as deep as in an answer
    except (TypeError, ValueError, RecursionError) as error:
        return failure("bad_output", f"the output of type {type(output).__name__} is not JSON: {error}")
    return None


def unfit(output: Output, expected: str | Mapping[str, Any] | None) -> Failure | None:
    """The failure of an output that does not fit the schema of its task, whether a model or a function gave it."""
    if not isinstance(expected, Mapping):
        return None
    mistakes = output_mistakes(output, expected)
    return failure("bad_output", f"the output does not fit its schema: {'; '.join(mistakes)}") if mistakes else None


def too_large(outcome: Outcome, reason: str) -> Outcome:
    """The failed outcome that replaces one too large for a message; a stopped one stays stopped, without its tools."""
    if outcome.status is ResultStatus.CANCELLED:  # a failure would count, and another goes on
        return replace(outcome, tool_calls=())
    error = failure("bad_output", reason, is_final=True)
    return replace(outcome, status=ResultStatus.FAILED, output=None, error=error, tool_calls=(), tasks=())


def _encodable(text: str) -> str:
    return text.encode(errors="backslashreplace").decode()  # the name of a file may not be Unicode


def _shown(stack: str) -> str:
    return _encodable(KNOWN(stack)[-MAX_STACK:])
