"""The loop of a working role: ask the model, run the tools it calls, and ask again until it has an answer."""

import asyncio
import json
import time
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from math import ceil
from pathlib import PurePath

from muster_agent.budget import Meter, within_budget
from muster_agent.errors import Unfinished
from muster_agent.models.port import (
    MAX_TOKENS,
    MAX_TURNS,
    Ask,
    Left,
    Model,
    Reply,
    ToolCall,
    ToolOutput,
    Turn,
    WorkBrief,
    require_complete,
)
from muster_agent.models.retry import ask_with_retry
from muster_agent.spans import execute_tool, used
from muster_agent.tools.cached import Reused
from muster_agent.tools.tool import Tool, error_text
from muster_bus.redact import KNOWN
from muster_protocol.errors import cause_of, error_class_of
from muster_protocol.status import is_own_code

MAX_CONTENT = 2000  # characters of a call's arguments, and of its output, that the result records
MAX_WITH_CONTENT = 100  # calls that are recorded with both; of further ones only what happened
ToolUsed = Callable[[str, float, str | None, str | None], None]  # tool, seconds, error, its class


@dataclass(frozen=True, slots=True)
class Bounds:
    """The most tokens of one reply, the most replies for one task, and the seconds that it may take."""

    max_tokens: int = MAX_TOKENS
    max_turns: int = MAX_TURNS
    seconds: float | None = None

    def left(self, turn: int, meter: Meter) -> Left:
        """What is left when this turn begins."""
        tokens = None if meter.limit.tokens is None else max(0, meter.limit.tokens - meter.usage.tokens)
        seconds = None if self.seconds is None else max(0, ceil(self.seconds - (time.monotonic() - meter.began)))
        return Left(self.max_turns - turn + 1, tokens, seconds)


USUAL = Bounds()


async def work(
    model: Model,
    brief: WorkBrief,
    tools: Mapping[str, Tool],
    meter: Meter,
    tool_used: ToolUsed,
    bounds: Bounds = USUAL,
) -> str:
    """The model's answer. The meter has what it cost, also when this raises."""
    ask = Ask(brief, tools=tuple(tool.spec for tool in tools.values()), max_tokens=bounds.max_tokens)
    for turn in range(1, bounds.max_turns + 1):
        ask = replace(ask, is_last=turn == bounds.max_turns, left=bounds.left(turn, meter))
        limited = within_budget(ask, model, meter.usage, meter.limit)
        meter.asking = model.provider
        reply = await ask_with_retry(model, limited)
        meter.asking = ""
        meter.usage += reply.usage
        if not require_complete(reply).tool_calls:
            return reply.text
        if not ask.is_last:
            ask = ask.after(await _turn(reply, tools, meter, tool_used))
    raise Unfinished(
        f"no answer after {bounds.max_turns} turns of tool calls; raise the role's max_turns, or split the task"
    )


async def _turn(reply: Reply, tools: Mapping[str, Tool], meter: Meter, tool_used: ToolUsed) -> Turn:
    """Run all tool calls of one reply at the same time; their outputs have the order of the calls."""
    async with asyncio.TaskGroup() as group:
        running = [group.create_task(_use(call, tools, meter, tool_used)) for call in reply.tool_calls]
    return Turn(reply, tuple(task.result() for task in running))


async def _use(call: ToolCall, tools: Mapping[str, Tool], meter: Meter, tool_used: ToolUsed) -> ToolOutput:
    """Run one tool call; an error becomes its output, so that the model can try something else."""
    started = time.monotonic()
    error: str | None = None
    place = ""
    error_class: str | None = None
    with execute_tool(call) as span:
        try:
            if tool := tools.get(call.name):
                text = await tool.call(call.arguments)
            else:
                error_class, error = "logic", f"unknown tool {call.name!r}; your tools: {', '.join(tools) or 'none'}"
                text = error
        except Exception as raised:  # noqa: BLE001 - a tool may raise anything, and the model gets the error
            cause = cause_of(raised)
            error_class, error = error_class_of(cause), KNOWN(error_text(cause))
            text, place = error, _place_of(cause)
        used(span, text, error_class)
    seconds = time.monotonic() - started
    # The place is for people; the model has no use for it.
    seen = None if error is None else f"{error[: MAX_CONTENT - len(place)]}{place}"
    _record(call, text, seen, error_class, (started, seconds), meter)
    tool_used(call.name, seconds, seen, error_class)
    return ToolOutput(call.id, text, is_error=error is not None)


def _place_of(raised: BaseException) -> str:
    """The last line of the team's own code below which a tool failed, as ` (tools.py:12)`."""
    frames = traceback.extract_tb(raised.__traceback__)
    own = [frame for frame in frames if is_own_code(frame.filename)]
    return f" ({PurePath(own[-1].filename).name}:{own[-1].lineno})" if own else ""


def _record(
    call: ToolCall, output: str, error: str | None, error_class: str | None, when: tuple[float, float], meter: Meter
) -> None:
    """Note a call for the result: what was called and when, and its content as far as there is room."""
    started, seconds = when
    recorded: dict[str, object] = {
        "tool": _encodable(call.name),
        "at": round(max(0.0, started - meter.began), 4),
        "seconds": round(seconds, 4),
        "error": None if error is None else _encodable(error[:MAX_CONTENT]),
    }
    if error_class is not None:
        recorded["error_class"] = error_class
    if isinstance(output, Reused):
        recorded["reused"] = True
    if len(meter.tool_calls) < MAX_WITH_CONTENT:
        output = KNOWN(output)  # before it is cut: half a secret would not be known
        arguments = KNOWN(json.dumps(dict(call.arguments), ensure_ascii=False, default=str))
        recorded["arguments"] = _encodable(arguments[:MAX_CONTENT])
        recorded["output"] = None if error is not None else _encodable(output[:MAX_CONTENT])
        recorded["cut"] = max(len(arguments), len(output)) > MAX_CONTENT
    meter.tool_calls.append(recorded)


def _encodable(text: str) -> str:
    return text.encode(errors="backslashreplace").decode()  # a tool may read what is not Unicode
