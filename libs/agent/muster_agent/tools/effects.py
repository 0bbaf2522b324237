"""Calls tools with an effect on the outside world, so that a call is made once however often its worker dies.

Before the call its intent is stored, after it the outcome; a stored outcome is returned instead of a second call. With
an intent and no outcome nobody knows whether it has happened: a `keyed` tool is called again under the same key, by
which the receiver can tell; any other is not. The key is made of the task, the tool, its arguments, and how many such
calls came before: it is the same in every attempt.
"""

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Mapping

from muster_agent.isolation.errors import Cut
from muster_agent.models.port import ToolCall, ToolOutput, Turn
from muster_agent.tools.tool import KEYED, Tool, error_text
from muster_agent.turns import EffectCall, Turns, UnknownOutcome
from muster_protocol.errors import cause_of


class Effects:
    """The effects of one attempt."""

    def __init__(self, turns: Turns, tools: Mapping[str, Tool], past: Iterable[Turn] = ()) -> None:
        self._turns = turns
        self._counts: Counter[str] = Counter()
        self._failed: dict[str, list[int]] = {}  # of keyed calls: what failed may have happened, so its key is kept
        for turn in past:
            self._count(turn, tools)

    async def call(self, tool: Tool, call: ToolCall) -> ToolOutput:
        """The outcome of a call, made now or before. Raises what the tool raises, and UnknownOutcome."""
        tool.check(call.arguments)  # what cannot be called has no effect
        same = same_call(call)
        number = self._next(same)  # before anything is waited for: an equal call beside it is another one
        effect = EffectCall(self._key(same, number), call)
        is_begun, outcome = self._turns.outcome_of(effect.key)
        if outcome is not None and not (outcome.is_error and tool.effect == KEYED):
            return ToolOutput(call.id, outcome.text, outcome.is_error)
        if is_begun and outcome is None and tool.effect != KEYED:
            raise UnknownOutcome(_unknown(call, "its worker ended"))
        await self._turns.intend(effect)
        try:
            text = await tool.call(call.arguments, key=effect.key)
        except Exception as raised:
            if isinstance(raised, Cut) and raised.was_called and tool.effect != KEYED:
                raise UnknownOutcome(_unknown(call, f"its process was lost ({raised})")) from raised
            await self._turns.settle(effect, ToolOutput(call.id, error_text(cause_of(raised)), is_error=True))
            self._failed_once(tool, same, number)
            raise
        outcome = ToolOutput(call.id, text)
        await self._turns.settle(effect, outcome)
        return outcome

    def _next(self, same: str) -> int:
        """How many such calls came before; one that failed under a key comes again."""
        if failed := self._failed.get(same):
            return failed.pop(0)
        self._counts[same] += 1
        return self._counts[same] - 1

    def _failed_once(self, tool: Tool, same: str, number: int) -> None:
        if tool.effect == KEYED:
            self._failed.setdefault(same, []).append(number)

    def _count(self, turn: Turn, tools: Mapping[str, Tool]) -> None:
        """Count the calls of a turn that is over, as they were counted when it began."""
        calls = [call for call in turn.reply.tool_calls if call.name in tools and tools[call.name].effect is not None]
        numbers = [(call, self._next(same_call(call))) for call in calls]
        failed = {output.call_id for output in turn.outputs if output.is_error}
        for call, number in numbers:
            if call.id in failed:
                self._failed_once(tools[call.name], same_call(call), number)

    def _key(self, same: str, number: int) -> str:
        return hashlib.sha256(f"{self._turns.scope}\n{same}\n{number}".encode()).hexdigest()[:32]


def same_call(call: ToolCall) -> str:
    """A tool and its arguments, written so that equal calls are equal texts."""
    return f"{call.name}\n{json.dumps(dict(call.arguments), sort_keys=True, default=str)}"


def _unknown(call: ToolCall, why: str) -> str:
    return (
        f"the tool {call.name!r} was called, and {why} before it could say what came of it; look at its receiver "
        "whether it has happened; a tool that takes a key may be called again: effect: keyed"
    )
