"""Keeps the turns of one attempt in the stream TURNS, each written by compare-and-set on the subject's last sequence.

Whoever has the last claim writes. A task that nobody had before is claimed without a look: if somebody had it after
all, the claim is refused, and what there is is read. A turn that is refused means that somebody else has the task by
now. An acknowledgement that does not say whether it was us who wrote is settled by reading, too.
"""

import asyncio
from collections.abc import Sequence
from typing import Any

from muster_agent.models.port import NOTHING, Ask, Model, Reply, ToolOutput
from muster_agent.turns import EffectCall, Moved, Overtaken, Past, fits_of
from muster_bus.connection import Bus
from muster_bus.lease import Delivery
from muster_bus.turns import TurnsOfTask
from muster_protocol.messages import Claim, Effect, ModelTurn, Task, ToolOutputs, TurnBody, Usage
from muster_protocol.messages.turns import StoredOutput
from muster_protocol.turns.fold import TaskTurns
from muster_worker.turns.convert import output_of, reply_of, stored_outputs, stored_reply, turn_of

Stash = tuple[tuple[StoredOutput, ...], tuple[dict[str, Any], ...]]


class StoredTurns:
    """The turns of one attempt, as the loop of its model keeps them."""

    def __init__(self, bus: Bus, task: Task, delivery: Delivery) -> None:
        self._stored = TurnsOfTask(bus, task.request_id, task.task_id, delivery.headers)
        self._task = task
        self._known = TaskTurns()
        self._is_read = task.attempt == 1 and delivery.number == 1  # nobody had it before
        self._claim = Claim(
            task_id=task.task_id,
            attempt=task.attempt,
            worker=bus.sender.instance,
            delivery=delivery.number,
            task_sequence=delivery.sequence,
            resumes=task.resumes,
        )
        self._claimed = self._last = 0  # the sequences of our claim, and of what we stored last
        self._ran: Stash | None = None  # outputs that are not stored yet
        self._writing = asyncio.Lock()  # tools with effects run side by side

    @property
    def scope(self) -> str:
        return f"{self._task.request_id}.{self._task.task_id}"

    async def past(self, ask: Ask, model: Model) -> Past:
        """What whoever had the task before has left, as far as it is of use for what is asked now."""
        self._claim = self._claim.model_copy(update={"fits": fits_of(ask, model)})
        if not self._is_read:
            self._known, self._is_read = await self._stored.read(), True
        known, attempt = self._known, self._claim.attempt
        if known.is_overtaken(self._claim):
            raise Overtaken("somebody who got the task later has claimed it")
        usage = known.spent_by(attempt)
        before = known.spent.beyond(usage)
        if not known.goes_on(self._claim):
            return Past(usage=usage, before=before)
        over = [step for step in known.steps if step.outputs is not None]
        last = known.steps[-1] if known.steps and known.steps[-1].outputs is None else None
        called = tuple(call for step in over for call in step.tool_calls)
        return Past(tuple(turn_of(step) for step in over), last and reply_of(last.reply), called, usage, before)

    async def begin(self) -> None:
        await self._make_claim(NOTHING)

    async def asking(self, most: Usage) -> None:
        """Store that a call is about to be made: with the claim, or with the outputs that it is to answer to."""
        if not self._claimed:
            await self._make_claim(most)
        elif self._ran is not None:
            outputs, tool_calls = self._ran
            await self._store(
                ToolOutputs(
                    task_id=self._task.task_id,
                    claim=self._claimed,
                    outputs=outputs,
                    tool_calls=tool_calls,
                    asking=most,
                )
            )
            self._ran = None

    async def replied(self, reply: Reply) -> None:
        turn = ModelTurn(task_id=self._task.task_id, claim=self._claimed, reply=stored_reply(reply), usage=reply.usage)
        try:
            await self._store(turn)
        except Overtaken as lost:
            if self._task.tokens is not None or self._task.usd is not None:
                raise  # who claimed the task has charged what this call might have cost
            raise Overtaken(str(lost), reply.usage) from None

    async def unanswered(self) -> None:
        await self._store(ModelTurn(task_id=self._task.task_id, claim=self._claimed))

    def ran(self, outputs: Sequence[ToolOutput], tool_calls: Sequence[dict[str, Any]]) -> None:
        self._ran = stored_outputs(outputs), tuple(tool_calls)

    def outcome_of(self, key: str) -> tuple[bool, ToolOutput | None]:
        outcome = self._known.effects.get(key)
        return key in self._known.effects, None if outcome is None else output_of(outcome)

    async def intend(self, effect: EffectCall) -> None:
        await self._store(self._effect(effect))

    async def settle(self, effect: EffectCall, outcome: ToolOutput) -> None:
        (stored,) = stored_outputs([outcome])
        self._known.effects[effect.key] = stored
        await self._store(self._effect(effect).model_copy(update={"outcome": stored}))

    def _effect(self, effect: EffectCall) -> Effect:
        return Effect(
            task_id=self._task.task_id,
            claim=self._claimed,
            key=effect.key,
            tool=effect.call.name,
            arguments=dict(effect.call.arguments),
        )

    async def _make_claim(self, most: Usage) -> None:
        claim = self._claim.model_copy(update={"asking": most})
        sequence = await self._stored.append(claim, self._known.last_sequence)
        if sequence is None:
            self._is_read = False
            raise Moved("somebody has claimed the task meanwhile")
        self._claimed = self._last = sequence

    async def _store(self, body: TurnBody) -> None:
        async with self._writing:
            sequence = await self._stored.append(body, self._last)
            if sequence is None:
                raise Overtaken("somebody else has claimed the task")
            self._last = sequence
