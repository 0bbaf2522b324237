"""The real `anthropic` package against a strict server on this machine."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from muster_agent.budget import Limit, Meter
from muster_agent.errors import BadOutput, KeyRefused, ModelAway, OutOfBudget, RateLimited, Refused, Unfinished
from muster_agent.functions import Context
from muster_agent.loop import Bounds, work
from muster_agent.models.choose import choose_model
from muster_agent.models.claude import Claude
from muster_agent.models.port import (
    Ask,
    ComposeBrief,
    JudgeBrief,
    PlanBrief,
    Price,
    ReduceBrief,
    RefineBrief,
    WorkBrief,
    require_complete,
)
from muster_agent.tools.tool import tool_of
from muster_protocol.errors import Terminal
from muster_protocol.plan import Plan
from muster_protocol.workers.role_card import RoleCard
from muster_testing.messages_server import (
    CannedReply,
    MessagesServer,
    message,
    refusal,
    running_messages_server,
    text,
    thinking,
    tool_use,
)
from muster_worker.executor import Executor
from tests.guards import guards
from tests.unit.agent.teams import task, team

ROLES = (RoleCard(name="researcher", tags=("researcher", "research"), description="Finds facts"),)
PLAN = '{"goal": "g", "tasks": [{"id": "a", "description": "find x", "tag": "research", "dependencies": []}]}'


@asynccontextmanager
async def claude(*script: CannedReply, price: Price | None = None) -> AsyncGenerator[tuple[Claude, MessagesServer]]:
    async with running_messages_server(*script) as server:
        model = Claude("claude-sonnet-5-5", "sk-test", base_url=server.url, price=price)
        yield model, server
        await model.close()


def refine() -> Ask:
    return Ask(RefineBrief("find x", "there are two x"))


def ignore(*_: object) -> None:
    """Publish nothing."""


def double(number: int) -> int:
    """Twice a number."""
    return 2 * number


async def test_a_plan_comes_through_a_closed_schema_and_after_a_thinking_block():
    async with claude(message(thinking("hm"), text(PLAN))) as (model, server):
        reply = await model.ask(Ask(PlanBrief("find x", ROLES)))

    assert Plan.model_validate_json(require_complete(reply).text).tasks[0].tag == "research"
    assert server.requests[0]["output_config"]["format"]["type"] == "json_schema"


async def test_a_judge_chooses_through_a_closed_schema():
    async with claude(message(text('{"best": "b", "reason": "x"}'))) as (model, server):
        await model.ask(Ask(JudgeBrief("g", {"a": 1, "b": 2}, "be strict", ("a says 1",))))

    sent = server.requests[0]
    assert sorted(sent["output_config"]["format"]["schema"]["required"]) == ["best", "reason"]
    assert "Names to choose from: a, b" in sent["messages"][0]["content"][0]["text"]


async def test_what_is_wrong_with_an_answer_is_sent_with_its_schema():
    async with claude(message(text("{}")), message(text("short"))) as (model, server):
        await model.ask(
            Ask(ComposeBrief("g", {"a": 1}, schema={"type": "object"}, draft="[]", mistakes=("no object",)))
        )
        await model.ask(Ask(ReduceBrief("g", {"a": "long"})))

    mended, reduced = (sent["messages"][0]["content"][0]["text"] for sent in server.requests)
    assert '{"type": "object"}' in mended
    assert "- no object" in mended
    assert "long" in reduced


async def test_usage_is_priced_by_the_table():
    async with claude(message(text("ok"), read=1_000_000, written=500_000), price=Price(input=2, output=10)) as (m, _):
        usage = (await m.ask(refine())).usage

    assert (usage.input_tokens, usage.output_tokens, usage.model_calls) == (1_000_000, 500_000, 1)
    assert usage.usd == pytest.approx(7.0)


async def test_thinking_and_tool_calls_go_back_unchanged_and_all_tools_are_answered_in_one_message():
    calls = (thinking("two at once"), tool_use("t1", "double", number=4), tool_use("t2", "double", number="many"))
    meter = Meter()
    async with claude(message(*calls, stop="tool_use"), message(text("eight"))) as (model, server):
        answer = await work(model, WorkBrief("double it"), {"double": tool_of(double)}, meter, ignore)

    assert answer == "eight"
    results = server.requests[1]["messages"][2]["content"]
    assert [(result["tool_use_id"], result["is_error"]) for result in results[:2]] == [("t1", False), ("t2", True)]
    assert "8" in results[0]["content"]
    assert "bad arguments: number" in results[1]["content"]
    assert meter.usage.model_calls == 2


@pytest.mark.parametrize(("status", "kind"), [(429, "rate_limit_error"), (500, "api_error"), (529, "overloaded_error")])
async def test_a_busy_provider_is_a_retryable_error(status: int, kind: str):
    async with claude(refusal(status, kind, "slow down", retry_after="7")) as (model, _):
        with pytest.raises(ModelAway, match="slow down") as caught:
            await model.ask(refine())

    assert caught.value.retry_after_seconds == 7


async def test_a_busy_provider_may_give_a_date_in_place_of_seconds():
    said = {"retry_after": "Fri, 15 Jan 2027 08:00:09 GMT", "date": "Fri, 15 Jan 2027 08:00:00 GMT"}
    async with claude(refusal(429, "rate_limit_error", "slow down", **said)) as (model, _):
        with pytest.raises(RateLimited) as caught:
            await model.ask(refine())

    assert caught.value.retry_after_seconds == 9


async def test_a_refused_key_is_final_and_names_the_way_out():
    async with running_messages_server(key="sk-other") as server:
        model = Claude("claude-sonnet-5-5", "sk-test", base_url=server.url)
        with pytest.raises(KeyRefused, match="ANTHROPIC_API_KEY"):
            await model.ask(refine())
        await model.close()


@pytest.mark.parametrize(
    ("status", "kind"), [(400, "invalid_request_error"), (402, "billing_error"), (404, "not_found")]
)
async def test_a_refused_request_is_a_terminal_error(status: int, kind: str):
    async with claude(refusal(status, kind, "no")) as (model, _):
        with pytest.raises(Terminal):
            await model.ask(refine())


async def test_a_connection_cut_in_the_middle_of_the_reply_is_a_retryable_error():
    whole = message(text("ok"))
    async with claude(CannedReply(whole.body, is_cut=True)) as (model, _):
        with pytest.raises(ModelAway):
            await model.ask(refine())


async def test_html_instead_of_json_is_a_retryable_error():
    async with claude(CannedReply("<html>proxy</html>")) as (model, _):
        with pytest.raises(ModelAway):
            await model.ask(refine())


async def test_a_refused_connection_is_a_retryable_error():
    async with running_messages_server() as server:
        url = server.url
    model = Claude("claude-sonnet-5-5", "sk-test", base_url=url)
    with pytest.raises(ModelAway, match=r"127\.0\.0\.1"):
        await model.ask(refine())
    await model.close()


@pytest.mark.parametrize(
    ("stop", "error"), [("max_tokens", BadOutput), ("refusal", Refused), ("pause_turn", BadOutput)]
)
async def test_an_incomplete_reply_is_an_error_and_is_charged(stop: str, error: type[Exception]):
    meter = Meter()
    async with claude(message(text("half a sent"), stop=stop)) as (model, _):
        with pytest.raises(error):
            await work(model, WorkBrief("write"), {}, meter, ignore)

    assert meter.usage.tokens == 120


async def test_a_budget_limits_the_tokens_that_are_asked_for():
    async with claude(message(text("ok"))) as (model, server):
        await work(model, WorkBrief("write"), {}, Meter(Limit(tokens=1000)), ignore)
        with pytest.raises(OutOfBudget, match="budget is used up"):
            await work(model, WorkBrief("write"), {}, Meter(Limit(tokens=100)), ignore)

    assert server.requests[0]["max_tokens"] < 1000


async def test_the_strict_server_refuses_what_the_real_one_refuses():
    async with running_messages_server() as server:
        good = {"anthropic-version": "2026-10-21"}
        turn = {"role": "user", "content": "hi"}
        body = {"max_tokens": 5, "messages": [turn]}
        assert not server.wrong_with("/v1/messages", good, body)
        assert server.wrong_with("/v1/messages", good, {**body, "temperature": 1})
        assert server.wrong_with("/v1/messages", good, {**body, "tool_choice": {"type": "any"}})
        assert server.wrong_with("/v1/messages", good, {**body, "messages": [turn, turn]})
        assert server.wrong_with("/v1/messages", {}, body)


async def test_choose_model_reaches_the_server_named_in_the_environment():
    async with running_messages_server(message(text("a better description"))) as server:
        env = {"ANTHROPIC_API_KEY": "sk-test", "ANTHROPIC_BASE_URL": server.url}
        model = choose_model("auto", env)
        assert (await model.ask(refine())).text == "a better description"
        assert isinstance(model, Claude)
        await model.close()


@guards("libs/agent/muster_agent/models/wire/messages_api.py", 'messages[-1]["content"].append', rule="I10")
@guards("libs/agent/muster_agent/models/wire/messages_api.py", 'request["tool_choice"] = {"type": "none"}', rule="I10")
async def test_the_last_turn_is_told_that_it_is_the_last_and_gets_no_tools():
    script = (message(tool_use("t1", "double", number=4), stop="tool_use"), message(text("eight")))
    async with claude(*script) as (model, server):
        bounds = Bounds(max_tokens=300, max_turns=2)
        answer = await work(model, WorkBrief("double it"), {"double": tool_of(double)}, Meter(), ignore, bounds)

    assert answer == "eight"
    assert [request["max_tokens"] for request in server.requests] == [300, 300]
    first, last = server.requests
    assert "tool_choice" not in first
    assert last["tool_choice"] == {"type": "none"}
    assert last["tools"] == first["tools"]
    assert [block["type"] for block in last["messages"][-1]["content"]] == ["tool_result", "text"]
    assert "This is your last turn" in last["messages"][-1]["content"][-1]["text"]
    assert "last turn" not in str(first["messages"])


@guards("libs/agent/muster_agent/loop.py", "if not ask.is_last:", rule="I10", replace="if True:")
async def test_a_model_that_calls_tools_in_its_only_turn_is_unfinished_and_no_tool_is_run():
    used: list[str] = []

    def note(name: str, *_: object) -> None:
        used.append(name)

    async with claude(message(tool_use("t1", "double", number=4), stop="tool_use")) as (model, server):
        with pytest.raises(Unfinished, match="no answer after 1 turns of tool calls; raise the role's max_turns"):
            await work(
                model,
                WorkBrief("double it"),
                {"double": tool_of(double)},
                Meter(),
                note,
                Bounds(max_turns=1),
            )

    assert used == []
    assert "This is your last turn" in str(server.requests[0]["messages"])


@pytest.mark.parametrize("blocks", [(), (text(""),), (text(" \n"),), (thinking("hm"),)])
@guards("libs/agent/muster_agent/models/port.py", "if not reply.tool_calls and not reply.text.strip():", rule="I10")
async def test_an_empty_reply_is_bad_output_and_is_charged(blocks: tuple[dict[str, Any], ...]):
    meter = Meter()
    async with claude(message(*blocks)) as (model, _):
        with pytest.raises(BadOutput, match="reply is empty") as caught:
            await work(model, WorkBrief("write"), {}, meter, ignore)

    assert caught.value.error_class == "bad_output"
    assert meter.usage.tokens == 120


async def test_a_role_s_bounds_in_the_team_file_reach_the_model():
    script = (message(tool_use("t1", "calculate", expression="1+1"), stop="tool_use"), message(text("2")))
    async with running_messages_server(*script) as server:
        role = {"name": "a", "model": "claude-sonnet-5-5", "tools": ["calculate"], "max_tokens": 700, "max_turns": 2}
        executor = Executor(team(role), server.environment)
        outcome = await executor.run(task("a", "add"), Context({}))

    assert outcome.output == "2"
    assert [request["max_tokens"] for request in server.requests] == [700, 700]
    assert "tool_choice" in server.requests[1]


async def test_the_offline_model_answers_in_its_last_turn():
    found = team({"name": "a", "model": "offline", "tools": ["format_document"], "max_turns": 1})

    outcome = await Executor(found, {}).run(task("a", "write"), Context({}))

    assert outcome.error is None
    assert outcome.tool_calls == ()
