"""The real `openai` package against a strict server on this machine."""

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from muster_agent.budget import Meter
from muster_agent.errors import BadOutput, KeyRefused, ModelAway, RateLimited, Refused
from muster_agent.loop import Bounds, work
from muster_agent.models.choose import choose_model
from muster_agent.models.port import Ask, Model, PlanBrief, Price, RefineBrief, Style, WorkBrief
from muster_agent.team.providers import ProviderSpec
from muster_agent.tools.tool import tool_of
from muster_protocol.errors import Terminal
from muster_protocol.workers.role_card import RoleCard
from muster_testing.chat_server import CannedReply, ChatServer, call, chat_refusal, completion, running_chat_server
from tests.guards import guards

ROLES = (RoleCard(name="researcher", tags=("researcher",)),)
ADDRESS: dict[str, Any] = {
    "type": "object",
    "properties": {"city": {"type": "string", "minLength": 1}, "zip": {"type": "integer"}},
    "required": ["city", "zip"],
}


@asynccontextmanager
async def local(
    *script: CannedReply, price: Price | None = None, **capabilities: bool
) -> AsyncGenerator[tuple[Model, ChatServer]]:
    async with running_chat_server(*script) as server:
        fields = {"kind": "openai", "base_url": server.base_url, "capabilities": capabilities}
        prices = {"local/some/model": price} if price else {}
        providers = {"local": ProviderSpec.model_validate(fields)}
        yield choose_model("local/some/model", {}, prices, providers=providers), server


def ignore(*_: object) -> None:
    """Publish nothing."""


def double(number: int) -> int:
    """Twice a number."""
    return 2 * number


def refine() -> Ask:
    return Ask(RefineBrief("find x", "there are two x"))


async def test_a_task_is_done_with_tools_by_a_server_of_one_s_own_without_a_key():
    calls = (call("c1", "double", number=4), call("c2", "double", number="many"))
    meter = Meter()
    async with local(completion(None, *calls), completion("eight"), price=Price(input=1, output=2)) as (model, server):
        answer = await work(model, WorkBrief("double it"), {"double": tool_of(double)}, meter, ignore)

    assert (answer, model.provider, model.name) == ("eight", "local", "some/model")
    outputs = server.requests[1]["messages"][3:]
    assert [output["tool_call_id"] for output in outputs] == ["c1", "c2"]
    assert "8" in outputs[0]["content"]
    assert "bad arguments: number" in outputs[1]["content"]
    assert meter.usage.model_calls == 2
    assert meter.usage.usd == pytest.approx((200 * 1 + 40 * 2) / 1e6)


async def test_the_last_turn_gets_no_tools_and_is_told_so():
    async with local(completion(None, call("c1", "double", number=4)), completion("8")) as (model, server):
        await work(model, WorkBrief("x"), {"double": tool_of(double)}, Meter(), ignore, Bounds(max_turns=2))

    assert "tool_choice" not in server.requests[0]
    assert server.requests[1]["tool_choice"] == "none"
    assert "This is your last turn" in server.requests[1]["messages"][-1]["content"]


async def test_broken_arguments_of_a_call_are_told_to_the_model():
    broken = {"id": "c1", "type": "function", "function": {"name": "double", "arguments": '{"number": 4'}}
    async with local(completion(None, broken), completion("sorry")) as (model, server):
        answer = await work(model, WorkBrief("double it"), {"double": tool_of(double)}, Meter(), ignore)

    assert answer == "sorry"
    assert "bad arguments" in server.requests[1]["messages"][-1]["content"]


async def test_a_plan_and_an_output_with_a_schema_are_bound_to_it():
    async with local(completion("{}"), completion("{}")) as (model, server):
        await model.ask(Ask(PlanBrief("find x", ROLES)))
        await model.ask(Ask(WorkBrief("where?", expected_output=ADDRESS)))

    plan, output = (request["response_format"]["json_schema"] for request in server.requests)
    assert (plan["name"], plan["strict"], output["strict"]) == ("PlanDraft", True, True)
    assert output["schema"]["properties"]["city"] == {"type": "string"}


async def test_a_server_that_binds_nothing_is_told_the_schema():
    async with local(completion("{}"), structured_output=False) as (model, server):
        await model.ask(Ask(PlanBrief("find x", ROLES)))

    assert "response_format" not in server.requests[0]
    assert '"final_instruction"' in server.requests[0]["messages"][0]["content"]


async def test_a_stream_gives_its_text_in_parts_and_the_same_reply():
    calls = (call("c1", "double", number=4), call("c2", "double", number=5))
    parts: list[str] = []
    async with local(completion("a text in many parts", *calls), completion("whole")) as (model, server):
        reply = await model.ask(Ask(WorkBrief("x"), style=Style(wrote=parts.append)))
        await model.ask(Ask(WorkBrief("x")))

    assert "".join(parts) == reply.text == "a text in many parts"
    assert len(parts) > 1
    assert [dict(each.arguments) for each in reply.tool_calls] == [{"number": 4}, {"number": 5}]
    assert (reply.stop, reply.usage.tokens) == ("tools", 120)
    assert [request.get("stream") for request in server.requests] == [True, None]
    assert json.loads(json.dumps(reply.native)) == reply.native


async def test_capabilities_that_are_missing_are_not_asked_for():
    async with local(completion("x"), streaming=False, parallel_tool_calls=False) as (model, server):
        ask = Ask(WorkBrief("x"), tools=(tool_of(double).spec,), style=Style("high", wrote=ignore))
        await model.ask(ask)

    sent = server.requests[0]
    assert "stream" not in sent
    assert (sent["parallel_tool_calls"], sent["reasoning_effort"]) == (False, "high")


@guards("libs/agent/muster_agent/models/openai.py", "if gathered.finish is None:", rule="I10")
async def test_a_stream_that_ends_early_is_a_retryable_error():
    async with local(CannedReply(completion("a long text, of which half comes").body, is_cut=True)) as (model, _):
        with pytest.raises(ModelAway):
            await model.ask(Ask(WorkBrief("x"), style=Style(wrote=ignore)))
    chunk = {"id": "1", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    begun = {**chunk, "choices": [{"index": 0, "delta": {"content": "half"}, "finish_reason": None}]}
    page = CannedReply(f"data: {json.dumps(begun)}\n\ndata: [DONE]\n\n", headers={"content-type": "text/event-stream"})
    async with local(page) as (model, _):
        with pytest.raises(ModelAway, match="ended in the middle"):
            await model.ask(Ask(WorkBrief("x"), style=Style(wrote=ignore)))


@pytest.mark.parametrize(
    ("canned", "error"),
    [
        (chat_refusal(429, "slow down", retry_after="7"), RateLimited),
        (chat_refusal(429, "no money", "insufficient_quota"), Terminal),
        (chat_refusal(503, "busy"), ModelAway),
        (chat_refusal(401, "no"), KeyRefused),
        (chat_refusal(404, "no such model"), Terminal),
        (chat_refusal(400, "too long"), Terminal),
        (CannedReply(completion("ok").body, is_cut=True), ModelAway),
        (CannedReply("<html>proxy</html>"), ModelAway),
        (CannedReply("{broken", headers={"content-type": "application/json"}), ModelAway),
        (CannedReply({"error": "none"}), ModelAway),
    ],
)
async def test_what_goes_wrong_is_the_error_that_it_means(canned: CannedReply, error: type[Exception]):
    async with local(canned) as (model, _):
        with pytest.raises(error) as caught:
            await model.ask(refine())

    assert isinstance(caught.value, ModelAway) == issubclass(error, ModelAway)


@pytest.mark.parametrize(
    ("finish", "error"), [("length", BadOutput), ("content_filter", Refused), ("new_reason", BadOutput)]
)
async def test_an_incomplete_reply_is_an_error_and_is_charged(finish: str, error: type[Exception]):
    meter = Meter()
    async with local(completion("half a sent", finish=finish)) as (model, _):
        with pytest.raises(error):
            await work(model, WorkBrief("write"), {}, meter, ignore)

    assert meter.usage.tokens == 120


async def test_a_server_that_says_nothing_of_usage_is_charged_by_an_estimate():
    whole = completion("a reply").body
    assert isinstance(whole, dict)
    body = {name: value for name, value in whole.items() if name != "usage"}
    async with local(CannedReply(body)) as (model, _):
        reply = await model.ask(refine())

    assert reply.usage.input_tokens > 100
    assert reply.usage.output_tokens > 2


async def test_the_strict_server_refuses_what_others_refuse():
    async with running_chat_server(key="k") as server:
        good = {"model": "m", "max_tokens": 5, "messages": [{"role": "user", "content": "hi"}]}
        refused = await server.answer("/v1/chat/completions", {}, good)
        assert refused.status == 401
        key = {"authorization": "Bearer k"}
        wrong: tuple[dict[str, object], ...] = (
            {"max_tokens": 0},
            {"tool_choice": "none"},
            {"messages": []},
            {"tools": []},
            {"stream_options": 1},
        )
        answers = [await server.answer("/v1/chat/completions", key, {**good, **bad}) for bad in wrong]
        assert [answer.status for answer in answers] == [400] * len(wrong)
