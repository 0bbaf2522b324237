"""What has to hold where turns are kept and something else happens: tasks are added, calls wait, nobody can go on."""

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from muster_agent.budget import Limit, Meter
from muster_agent.errors import CannotDo
from muster_agent.loop import Bounds, work
from muster_agent.models.port import NOTHING, Ask, Price, Reply, ToolCall, ToolOutput, Turn, WorkBrief
from muster_agent.models.scripted import Scripted
from muster_agent.tools.add_task import add_task_tool
from muster_agent.tools.cannot_do import CANNOT_DO_TOOL
from muster_agent.tools.tool import Effect, tool_of
from muster_agent.turns import Past, fits_of
from muster_protocol.errors import cause_of
from tests.guards import guards
from tests.unit.agent.teams import team
from tests.unit.agent.test_effects import Kept, Shop, call_of, ignore

LOOP = "libs/agent/muster_agent/loop.py"
BRIEF = WorkBrief("do it")


def called(*calls: ToolCall) -> Reply:
    return Reply(tool_calls=calls, stop="tools")


def adding(number: int) -> ToolCall:
    return ToolCall(f"c{number}", "add_task", {"description": f"part {number}", "tag": "writer"})


@guards(LOOP, "    await add_again(past.turns, resources.tools, resources.again)\n", rule="I9")
async def test_who_takes_a_task_over_adds_the_tasks_that_were_added_before():
    added: list[str] = []

    def spawn(description: str, **_: Any) -> str:
        added.append(description)
        return f"t-s{len(added)}"

    outputs = (ToolOutput("c1", "added as t-s1"), ToolOutput("c2", "bad arguments", is_error=True))
    kept = Kept(before=Past((Turn(called(adding(1), adding(2)), outputs),), before=NOTHING))
    tools = {"add_task": add_task_tool(spawn, team({"name": "writer"}))}
    model = Scripted([called(adding(3)), Reply("done")])

    assert await work(model, BRIEF, tools, Meter(turns=kept), ignore) == "done"
    assert added == ["part 1", "part 3"]
    assert model.asked[1].transcript[1].outputs[0].text == "added as t-s2"


async def test_tasks_that_one_reply_adds_have_ids_in_the_order_of_its_calls():
    added: list[str] = []

    def spawn(description: str, **_: Any) -> str:
        added.append(description)
        return f"t-s{len(added)}"

    tools = {"add_task": add_task_tool(spawn, team({"name": "writer"}))}
    await work(Scripted([called(*map(adding, range(9))), Reply("done")]), BRIEF, tools, Meter(), ignore)

    assert added == [f"part {number}" for number in range(9)]


class Waiting:
    """A model whose call waits for its turn: nobody is asked yet."""

    name, notice, is_llm, provider, price = "claude", "", True, "anthropic", Price(input=1, output=1)

    def __init__(self, meter: Meter) -> None:
        self._meter = meter
        self.waits = asyncio.Event()

    async def ask(self, ask: Ask) -> Reply:
        self._meter.asking = ""
        self.waits.set()
        await asyncio.Event().wait()
        raise AssertionError(ask)


@guards(LOOP, "            await _unasked(turns)\n", rule="I9", replace="            pass\n")
async def test_a_call_that_is_stopped_while_it_waits_for_its_turn_is_charged_to_nobody():
    kept = Kept()
    meter = Meter(Limit(tokens=50_000), turns=kept)
    model = Waiting(meter)
    working = asyncio.create_task(work(model, BRIEF, {}, meter, ignore))
    await model.waits.wait()
    working.cancel()
    with pytest.raises(asyncio.CancelledError):
        await working

    assert kept.stored == ["asking", "unanswered"]
    assert kept.asked[0].tokens > 0
    assert meter.usage == NOTHING


@guards(LOOP, " if call.name == CANNOT_DO}", rule="I9", replace=" if call.name == ''}")
async def test_who_cannot_do_a_task_has_no_effect_on_the_way_out():
    kept, shop = Kept(), Shop()
    tools = {**shop.tools(True), "cannot_do": CANNOT_DO_TOOL}
    _, send = call_of(shop.tools(True))
    model = Scripted([called(send, ToolCall("c2", "cannot_do", {"reason": "no page"}))])

    with pytest.raises((CannotDo, BaseExceptionGroup)) as ended:
        await work(model, BRIEF, tools, Meter(turns=kept), ignore)

    assert isinstance(cause_of(ended.value), CannotDo)
    assert (shop.keys, kept.effects) == ([], {})


async def test_a_wrong_call_of_cannot_do_ends_nothing_and_its_output_has_its_place():
    tools = {**Shop().tools(True), "cannot_do": CANNOT_DO_TOOL}
    _, send = call_of(Shop().tools(True))
    model = Scripted([called(send, ToolCall("c2", "cannot_do", {})), Reply("done")])

    assert await work(model, BRIEF, tools, Meter(turns=Kept()), ignore) == "done"
    assert [(given.call_id, given.is_error) for given in model.asked[1].transcript[0].outputs] == [
        ("c1", False),
        ("c2", True),
    ]


@pytest.mark.parametrize(("effect", "must_go_on"), [(True, True), ("keyed", False)])
async def test_an_attempt_does_not_give_way_in_the_middle_of_an_effect_that_could_not_be_repeated(
    effect: Effect, must_go_on: bool
):
    meter, seen = Meter(turns=Kept()), list[bool]()

    async def send(article: str) -> str:
        seen.append(meter.must_go_on)
        return article

    async def buy(article: str, key: str) -> str:
        return await send(article + key)

    tool = tool_of(buy if effect == "keyed" else send, effect=effect)
    call = ToolCall("c1", tool.spec.name, {"article": "a book"})
    await work(Scripted([called(call), Reply("done")]), BRIEF, {tool.spec.name: tool}, meter, ignore)

    assert (seen, meter.must_go_on) == ([must_go_on], False)


async def test_room_in_a_full_context_is_no_reason_to_have_an_effect_again():
    async def send(article: str) -> str:
        return article * 6_000

    async def read(article: str) -> str:
        return article * 6_000

    tools = {"send": tool_of(send, effect=True), "read": tool_of(read)}
    both = called(*(ToolCall(name, name, {"article": "x"}) for name in tools))
    model = Scripted([both, both, Reply("done")])
    await work(model, BRIEF, tools, Meter(turns=Kept()), ignore, Bounds(max_tokens=500, context_tokens=8_000))

    sent, was_read = (output.text for output in model.asked[-1].transcript[0].outputs)
    assert "its effect is there; do not call it again" in sent
    assert "call the tool again if you need them" in was_read


def test_another_model_goes_on_and_rules_do_not():
    ask = Ask(BRIEF)
    fits = fits_of(ask, Scripted([], name="a"))
    rules = Scripted([], name="a")
    rules.is_llm = False

    assert fits_of(ask, Scripted([], name="b")) == fits
    assert fits_of(ask, rules) != fits
    assert fits_of(replace(ask, brief=WorkBrief("do something else")), Scripted([], name="a")) != fits
