"""Tools with an effect, and turns that are kept: what is done again, what is not, and what nobody can know."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from pydantic import ValidationError

from muster_agent.budget import Limit, Meter
from muster_agent.loop import work
from muster_agent.models.port import NOTHING, Ask, Model, Reply, ToolCall, ToolOutput, Turn, WorkBrief
from muster_agent.models.scripted import Scripted
from muster_agent.team.schema import ModelRole
from muster_agent.tools.effects import Effects
from muster_agent.tools.tool import Effect, Tool, tool_of
from muster_agent.turns import EffectCall, Past, UnknownOutcome
from muster_protocol.errors import Invalid
from muster_protocol.messages import Usage

Function = Callable[..., Any]


@dataclass
class Kept:
    """Turns as a list of what was stored, in order."""

    stored: list[str] = field(default_factory=list[str])
    effects: dict[str, ToolOutput | None] = field(default_factory=dict[str, ToolOutput | None])
    before: Past = field(default_factory=lambda: Past(before=NOTHING))
    asked: list[Usage] = field(default_factory=list[Usage])

    @property
    def scope(self) -> str:
        return "r1.t"

    async def past(self, _ask: Ask, _model: Model, /) -> Past:
        return self.before

    async def begin(self) -> None:
        self.stored.append("claim")

    async def asking(self, most: Usage, /) -> None:
        self.asked.append(most)
        self.stored.append("asking")

    async def replied(self, reply: Reply, /) -> None:
        self.stored.append(f"reply {len(reply.tool_calls)}")

    async def unanswered(self) -> None:
        self.stored.append("unanswered")

    def ran(self, outputs: Sequence[ToolOutput], _tool_calls: Sequence[dict[str, Any]], /) -> None:
        self.stored.append(f"ran {len(outputs)}")

    def outcome_of(self, key: str, /) -> tuple[bool, ToolOutput | None]:
        return key in self.effects, self.effects.get(key)

    async def intend(self, effect: EffectCall, /) -> None:
        self.stored.append("intent")
        self.effects[effect.key] = None

    async def settle(self, effect: EffectCall, outcome: ToolOutput, /) -> None:
        self.stored.append("outcome")
        self.effects[effect.key] = outcome


@dataclass
class Shop:
    """A receiver that counts."""

    keys: list[str] = field(default_factory=list[str])
    fails: int = 0

    def tools(self, effect: Effect) -> Mapping[str, Tool]:
        async def buy(article: str, key: str) -> str:
            return self._got(f"{article} {key}", article)

        async def send(article: str) -> str:
            return self._got(article, article)

        tool = tool_of(buy if effect == "keyed" else send, effect=effect)
        return {tool.spec.name: tool}

    def _got(self, line: str, article: str) -> str:
        self.keys.append(line)
        if self.fails:
            self.fails -= 1
            raise ConnectionError("cut")
        return f"{article} is on its way"


def call_of(tools: Mapping[str, Tool], call_id: str = "c1", article: str = "a book") -> tuple[Tool, ToolCall]:
    (tool,) = tools.values()
    return tool, ToolCall(call_id, tool.spec.name, {"article": article})


@pytest.mark.parametrize("kind", ["keyed", True])
async def test_a_stored_outcome_is_returned_in_place_of_a_second_call(kind: Effect):
    kept, shop = Kept(), Shop()
    tools = shop.tools(kind)
    first = await Effects(kept, tools).call(*call_of(tools))
    again = await Effects(kept, tools).call(*call_of(tools, "c9"))

    assert (len(shop.keys), again) == (1, replace(first, call_id="c9"))


async def test_of_a_keyed_call_without_an_outcome_the_key_is_the_same_and_of_any_other_nobody_knows():
    kept, shop = Kept(), Shop()
    keyed, other = shop.tools("keyed"), shop.tools(True)
    for tools in (keyed, other):
        await Effects(kept, tools).call(*call_of(tools))
    kept.effects = dict.fromkeys(kept.effects)  # each worker died before its outcome was stored

    await Effects(kept, keyed).call(*call_of(keyed))
    with pytest.raises(UnknownOutcome, match="'send'"):
        await Effects(kept, other).call(*call_of(other))

    assert len(shop.keys) == 3
    assert shop.keys[0] == shop.keys[2]


async def test_equal_calls_that_succeed_are_two_effects_and_what_failed_keeps_its_key():
    kept, shop = Kept(), Shop(fails=1)
    tools = shop.tools("keyed")
    effects = Effects(kept, tools)
    with pytest.raises(ConnectionError):
        await effects.call(*call_of(tools))
    await effects.call(*call_of(tools))
    await effects.call(*call_of(tools))

    assert shop.keys[0] == shop.keys[1] != shop.keys[2]


async def test_a_worker_that_goes_on_counts_the_calls_of_the_turns_before():
    kept, shop = Kept(), Shop()
    tools = shop.tools("keyed")
    tool, call = call_of(tools)
    first = await Effects(kept, tools).call(tool, call)
    past = [Turn(Reply(tool_calls=(call,)), (first,))]
    failed = [Turn(Reply(tool_calls=(call,)), (replace(first, is_error=True),))]

    await Effects(kept, tools, failed).call(tool, call)
    assert len(shop.keys) == 1
    await Effects(kept, tools, past).call(tool, call)
    assert len(set(shop.keys)) == 2


async def test_what_cannot_be_called_has_no_effect_and_leaves_nothing():
    kept, shop = Kept(), Shop()
    tools = shop.tools("keyed")
    (tool,) = tools.values()
    with pytest.raises(ValidationError):
        await Effects(kept, tools).call(tool, ToolCall("c1", "buy", {}))

    assert (kept.stored, shop.keys) == ([], [])


def test_no_model_sees_the_key_and_a_keyed_function_takes_one():
    (tool,) = Shop().tools("keyed").values()
    assert list(tool.spec.schema["properties"]) == ["article"]

    def order(article: str) -> str:
        return article

    with pytest.raises(Invalid, match="order has no parameter 'key'"):
        tool_of(order, effect="keyed")


def test_functions_have_effects_and_built_in_tools_have_none():
    role = ModelRole.model_validate({"name": "r", "tools": [{"use": "shop:order", "effect": "keyed"}, "shop:look"]})
    assert [tool.effect for tool in role.tools] == ["keyed", False]
    with pytest.raises(ValidationError, match="calculate is built in and runs in the worker; leave out 'effect'"):
        ModelRole.model_validate({"name": "r", "tools": [{"use": "calculate", "effect": True}]})


def scripted(*replies: Reply) -> Scripted:
    return Scripted(replies)


def ignore(*_: object) -> None:
    """Publish nothing."""


COSTS = Usage(input_tokens=10, output_tokens=5, model_calls=1)


async def test_each_reply_is_stored_before_its_tools_run_and_the_outputs_before_the_next_call():
    kept, shop = Kept(), Shop()
    tools = shop.tools(True)
    _, call = call_of(tools)
    model = scripted(Reply(tool_calls=(call,), usage=COSTS), Reply("done", usage=COSTS))
    meter = Meter(turns=kept)

    assert await work(model, WorkBrief("buy"), tools, meter, ignore) == "done"
    assert kept.stored == ["asking", "reply 1", "intent", "outcome", "ran 1", "asking", "reply 0"]
    assert (meter.usage, meter.spent) == (COSTS + COSTS, COSTS + COSTS)


async def test_who_takes_a_task_over_goes_on_with_its_last_reply_and_what_was_spent_counts_against_the_limit():
    shop = Shop()
    tools = shop.tools(True)
    _, call = call_of(tools)
    spent = Usage(input_tokens=900, output_tokens=50, model_calls=1)
    kept = Kept(before=Past((), Reply(tool_calls=(call,)), usage=spent, before=COSTS))
    meter = Meter(Limit(tokens=100_000), turns=kept)

    assert await work(scripted(Reply("done", usage=COSTS)), WorkBrief("buy"), tools, meter, ignore) == "done"
    assert kept.stored == ["claim", "intent", "outcome", "ran 1", "asking", "reply 0"]
    assert (meter.usage, meter.spent) == (spent + COSTS, spent + COSTS + COSTS)


async def test_a_stored_answer_is_the_answer():
    kept = Kept(before=Past((), Reply("done"), usage=COSTS, before=NOTHING))
    tools = Shop().tools(True)

    assert await work(scripted(), WorkBrief("buy"), tools, Meter(turns=kept), ignore) == "done"
    assert kept.stored == []
