"""The loop of a working role: ask the model, run the tools it calls, and ask again until it has an answer."""

import asyncio
import json
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from math import ceil

from muster_agent.budget import Meter, most_of, within_budget
from muster_agent.compaction import compacted
from muster_agent.errors import CannotDo, Unfinished
from muster_agent.isolation.errors import RaisedInside
from muster_agent.models.port import (
    CONTEXT_TOKENS,
    MAX_TOKENS,
    MAX_TURNS,
    NOTHING,
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
from muster_agent.stacks import place_of
from muster_agent.team.schema import CANNOT_DO
from muster_agent.tools.add_task import add_again
from muster_agent.tools.cached import Reused
from muster_agent.tools.effects import Effects
from muster_agent.tools.tool import KEYED, Tool, error_text
from muster_agent.turns import UNSTORED, Moved, Overtaken, Turns, UnknownOutcome
from muster_bus.redact import KNOWN
from muster_protocol.errors import MusterError, cause_of, error_class_of

MAX_CONTENT = 2000  # characters of a call's arguments, and of its output, that the result records
MAX_WITH_CONTENT = 100  # calls that are recorded with both; of further ones only what happened
NOTE_SECONDS = 1.0  # for whoever stops to say that nobody was asked
ToolUsed = Callable[[str, float, str | None, str | None], None]  # tool, seconds, error, its class


@dataclass(frozen=True, slots=True)
class Bounds:
    """The most of each: tokens of a reply, replies for a task, its seconds, and tokens that the model can read."""

    max_tokens: int = MAX_TOKENS
    max_turns: int = MAX_TURNS
    seconds: float | None = None
    context_tokens: int = CONTEXT_TOKENS

    def left(self, turn: int, meter: Meter) -> Left:
        """What is left when this turn begins."""
        tokens = None if meter.limit.tokens is None else max(0, meter.limit.tokens - meter.usage.tokens)
        seconds = None if self.seconds is None else max(0, ceil(self.seconds - (time.monotonic() - meter.began)))
        return Left(self.max_turns - turn + 1, tokens, seconds)


USUAL = Bounds()


@dataclass(frozen=True, slots=True)
class _Resources:
    """What the calls of one attempt use."""

    tools: Mapping[str, Tool]
    meter: Meter
    tool_used: ToolUsed
    turns: Turns
    again: list[ToolCall] = field(default_factory=list[ToolCall])  # calls of turns before that were made here too

    @property
    def acting(self) -> frozenset[str]:
        """The tools that must not be called again just to see what they said."""
        return frozenset(name for name, tool in self.tools.items() if tool.effect is not None)


async def work(
    model: Model,
    brief: WorkBrief,
    tools: Mapping[str, Tool],
    meter: Meter,
    tool_used: ToolUsed,
    bounds: Bounds = USUAL,
) -> str:
    """The model's answer. The meter has what it cost, also when this raises.

    What is paid for, or has an effect, is stored as the meter says, and what is stored already is not done again.
    """
    ask = Ask(brief, tools=tuple(tool.spec for tool in tools.values()), max_tokens=bounds.max_tokens)
    is_stored = model.is_llm or any(tool.effect is not None for tool in tools.values())
    resources = _Resources(tools, meter, tool_used, meter.turns if is_stored else UNSTORED)
    while True:
        try:
            return await _work(model, ask, resources, bounds)
        except Moved:  # somebody had the task before us: go on there
            continue


async def _work(model: Model, ask: Ask, resources: _Resources, bounds: Bounds) -> str:
    meter, turns = resources.meter, resources.turns
    past = await turns.past(ask, model)
    if past.before is not None:
        meter.usage, meter.before, meter.tool_calls = past.usage, past.before, [*past.tool_calls]
    ask, reply = replace(ask, transcript=past.turns), past.reply
    effects = Effects(turns, resources.tools, past.turns)
    await add_again(past.turns, resources.tools, resources.again)
    if reply is not None and reply.tool_calls:
        await turns.begin()
    for turn in range(len(past.turns) + 1, bounds.max_turns + 1):
        ask = replace(ask, is_last=turn == bounds.max_turns, left=bounds.left(turn, meter))
        reply = reply or await _asked(model, compacted(ask, bounds.context_tokens, resources.acting), meter, turns)
        if not require_complete(reply).tool_calls:
            return reply.text
        if not ask.is_last:
            ask = ask.after(await _turn(reply, resources, effects))
        reply = None
    raise Unfinished(
        f"no answer after {bounds.max_turns} turns of tool calls; raise the role's max_turns, or split the task"
    )


async def _asked(model: Model, ask: Ask, meter: Meter, turns: Turns) -> Reply:
    """The model's reply, which is stored before anything is done with it."""
    limited = within_budget(ask, model, meter.usage, meter.limit)
    most = most_of(limited, model, meter.limit)
    await turns.asking(most)
    meter.asking = model.provider
    try:
        reply = await ask_with_retry(model, limited)
    except asyncio.CancelledError:
        if meter.asking or not model.provider:  # else the call still waited for its turn
            meter.usage += most  # the provider goes on writing what nobody waits for
        elif most != NOTHING:
            await _unasked(turns)
        raise
    except Exception:
        if most != NOTHING:
            await turns.unanswered()
        raise
    meter.asking = ""
    meter.usage += reply.usage
    await turns.replied(reply)
    return reply


async def _unasked(turns: Turns) -> None:
    """Nobody was asked yet: whoever takes the task next is not to count what the call might have cost."""
    with suppress(MusterError, TimeoutError):
        async with asyncio.timeout(NOTE_SECONDS):
            await turns.unanswered()


async def _turn(reply: Reply, resources: _Resources, effects: Effects) -> Turn:
    """Run all tool calls of one reply at the same time; their outputs have the order of the calls.

    What ends the task comes first: beside it others would be cut off, and nobody knew what came of their effects.
    """
    before = len(resources.meter.tool_calls)
    calls = dict(enumerate(reply.tool_calls))
    outputs = {n: await _use(call, resources, effects) for n, call in calls.items() if call.name == CANNOT_DO}
    async with asyncio.TaskGroup() as group:
        running = {n: group.create_task(_use(calls[n], resources, effects)) for n in calls if n not in outputs}
    outputs |= {n: task.result() for n, task in running.items()}
    turn = Turn(reply, tuple(outputs[n] for n in calls))
    resources.turns.ran(turn.outputs, resources.meter.tool_calls[before:])
    return turn


async def _use(call: ToolCall, resources: _Resources, effects: Effects) -> ToolOutput:
    """Run one tool call; an error becomes its output, so that the model can try something else."""
    started = time.monotonic()
    error: str | None = None
    place = ""
    error_class: str | None = None
    with execute_tool(call) as span:
        try:
            text, error = await _called(call, resources, effects)
            error_class = None if error is None else "logic"
        except (CannotDo, Overtaken, UnknownOutcome):
            raise  # no model can do anything about it
        except Exception as raised:  # noqa: BLE001 - a tool may raise anything, and the model gets the error
            cause = cause_of(raised)
            error_class, error = error_class_of(cause), KNOWN(error_text(cause))
            text, place = error, cause.place if isinstance(cause, RaisedInside) else place_of(cause)
        used(span, text, error_class)
    seconds = time.monotonic() - started
    # The place is for people; the model has no use for it.
    seen = None if error is None else f"{error[: MAX_CONTENT - len(place)]}{place}"
    _record(call, text, seen, error_class, (started, seconds), resources.meter)
    resources.tool_used(call.name, seconds, seen, error_class)
    return ToolOutput(call.id, text, is_error=error is not None)


async def _called(call: ToolCall, resources: _Resources, effects: Effects) -> tuple[str, str | None]:
    """What a call gives, and the same once more if it is an error."""
    tools = resources.tools
    if (tool := tools.get(call.name)) is None:
        text = f"unknown tool {call.name!r}; your tools: {', '.join(tools) or 'none'}"
        return text, text
    if tool.effect is None:
        return await tool.call(call.arguments), None
    with resources.meter.acting(is_known_again=tool.effect == KEYED):
        outcome = await effects.call(tool, call)
    return outcome.text, outcome.text if outcome.is_error else None


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
