"""What Claude is asked beside the prompt: cache, effort, thinking, schemas, streams, and the clouds it is asked in."""

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from muster_agent.budget import Meter
from muster_agent.errors import KeyRefused, ModelAway
from muster_agent.fake_model.canned import encoded
from muster_agent.fake_model.http import serving
from muster_agent.loop import work
from muster_agent.models.choose import choose_model
from muster_agent.models.claude import Claude
from muster_agent.models.port import Ask, Price, Reply, Style, ToolCall, ToolOutput, Turn, WorkBrief
from muster_agent.team.providers import ProviderSpec
from muster_agent.tools.cannot_do import CANNOT_DO_TOOL
from muster_agent.tools.tool import tool_of
from muster_protocol.errors import Misconfigured
from muster_testing.messages_server import (
    CannedReply,
    MessagesServer,
    message,
    running_messages_server,
    text,
    thinking,
    tool_use,
)
from tests.guards import guards

MESSAGES = "libs/agent/muster_agent/models/wire/messages_api.py"
LONG = "You are careful. " * 300
SCHEMA: dict[str, Any] = {"type": "object", "properties": {"aws": {"type": "number", "minimum": 0}}}


@asynccontextmanager
async def claude(
    *script: CannedReply, price: Price | None = None, **capabilities: bool
) -> AsyncGenerator[tuple[Claude, MessagesServer]]:
    async with running_messages_server(*script) as server:
        env = {"OWN_KEY": "sk-test"}
        fields = {"kind": "anthropic", "base_url": server.url, "api_key_env": "OWN_KEY", "capabilities": capabilities}
        providers = {"own": ProviderSpec.model_validate(fields)}
        model = choose_model("own/claude-x", env, {"claude-x": price} if price else {}, providers=providers)
        assert isinstance(model, Claude)
        yield model, server
        await model.close()


def ignore(*_: object) -> None:
    """Publish nothing."""


def double(number: int) -> int:
    """Twice a number."""
    return 2 * number


@guards(MESSAGES, "cut = len(system) if at < 0", rule="I10")
async def test_persona_and_tools_are_cached_for_an_hour_and_are_the_same_for_every_task():
    async with claude(message(text("a")), message(text("b"))) as (model, server):
        for task in ("one", "two"):
            await work(model, WorkBrief(task, persona=LONG), {"double": tool_of(double)}, Meter(), ignore)

    first, second = (request["system"] for request in server.requests)
    assert first[0] == second[0]
    assert first[0]["cache_control"] == {"type": "ephemeral", "ttl": "1h"}
    assert first[0]["text"].startswith("You are careful.")
    assert first[1] != second[1], "the boundary of a prompt is not cached"
    assert server.requests[0]["tools"] == server.requests[1]["tools"]


async def test_each_turn_caches_the_conversation_so_far_but_for_the_last():
    script = (message(tool_use("t1", "double", number=4), stop="tool_use"), message(text("eight")))
    async with claude(*script) as (model, server):
        await work(model, WorkBrief("x", persona=LONG), {"double": tool_of(double)}, Meter(), ignore)

    marked = [
        [number for number, turn in enumerate(request["messages"]) if "cache_control" in str(turn)]
        for request in server.requests
    ]
    assert marked == [[0], [2]]
    assert "cache_control" not in server.requests[1]["messages"][2]["content"][-1], "what is left changes each turn"


async def test_a_short_prompt_and_a_server_without_a_cache_are_asked_plainly():
    async with claude(message(text("a"))) as (model, server):
        await model.ask(Ask(WorkBrief("x")))
    assert isinstance(server.requests[0]["system"], str)
    async with claude(message(text("a")), cache=False) as (model, server):
        await model.ask(Ask(WorkBrief("x", persona=LONG), tools=(tool_of(double).spec,)))
    assert "cache_control" not in json.dumps(server.requests)


async def test_what_is_cached_is_counted_and_priced():
    canned = message(text("a"), read=1000, written=100, cache_read_input_tokens=10_000, cache_creation_input_tokens=500)
    async with claude(canned, price=Price(input=2, output=10)) as (model, _):
        usage = (await model.ask(Ask(WorkBrief("x")))).usage

    assert (usage.input_tokens, usage.cache_read_tokens, usage.cache_write_tokens) == (11_500, 10_000, 500)
    assert usage.usd == pytest.approx((1000 * 2 + 10_000 * 0.2 + 500 * 4 + 100 * 10) / 1e6)


async def test_effort_and_thinking_of_a_role_are_asked_for():
    async with claude(message(text("a")), message(text("b"))) as (model, server):
        await model.ask(Ask(WorkBrief("x"), style=Style(effort="xhigh", thinking=True)))
        await model.ask(Ask(WorkBrief("x"), style=Style(thinking=False)))

    first, second = server.requests
    assert (first["output_config"], first["thinking"]) == ({"effort": "xhigh"}, {"type": "adaptive"})
    assert second["thinking"] == {"type": "disabled"}


async def test_an_output_with_a_schema_is_bound_to_it_and_an_open_one_is_only_told():
    async with claude(message(text("{}")), message(text("{}"))) as (model, server):
        await model.ask(Ask(WorkBrief("x", expected_output=SCHEMA)))
        await model.ask(Ask(WorkBrief("x", expected_output={"type": "object"})))

    bound, told = server.requests
    assert bound["output_config"]["format"]["schema"]["properties"] == {"aws": {"type": "number"}}
    assert "output_config" not in told
    assert '{"type": "object"}' in told["messages"][0]["content"][0]["text"]


async def test_a_stream_gives_its_text_in_parts_and_the_same_reply():
    parts: list[str] = []
    canned = message(thinking("hm"), text("a text in many parts"), tool_use("t1", "double", number=4), stop="tool_use")
    async with claude(canned, canned) as (model, _):
        streamed = await model.ask(Ask(WorkBrief("x"), style=Style(wrote=parts.append)))
        whole = await model.ask(Ask(WorkBrief("x")))

    assert "".join(parts) == "a text in many parts"
    assert len(parts) > 1
    assert (streamed.text, streamed.tool_calls, streamed.stop) == (whole.text, whole.tool_calls, whole.stop)
    assert streamed.usage.tokens == whole.usage.tokens
    assert json.loads(json.dumps(streamed.native)) == whole.native


@guards("libs/agent/muster_agent/models/claude.py", 'if fields.get("stop_reason") is None:', rule="I10")
@guards("libs/agent/muster_agent/models/claude.py", "if error.status_code < 400:", rule="I10")
async def test_a_stream_that_is_cut_ends_early_or_breaks_off_is_a_retryable_error():
    whole = message(text("a text of which only a part comes"))
    page = encoded(whole, is_stream=True).decode().partition("\r\n\r\n")[2]
    begun = page[: page.index("event: content_block_stop")]
    error = 'event: error\ndata: {"type": "error", "error": {"type": "overloaded_error", "message": "busy"}}\n\n'
    kind = {"content-type": "text/event-stream"}
    for canned in (
        CannedReply(whole.body, is_cut=True),
        CannedReply(begun, headers=kind),
        CannedReply(begun + error, headers=kind),
    ):
        async with claude(canned) as (model, _):
            with pytest.raises(ModelAway):
                await model.ask(Ask(WorkBrief("x"), style=Style(wrote=ignore)))


@guards(MESSAGES, 'if native.get("model") == model', rule="I10", replace='if native.get("model")')
async def test_the_thinking_of_another_model_is_left_out_of_what_goes_back():
    native = {"model": "gpt", "content": [{"type": "thinking", "thinking": "hm", "signature": "s"}]}
    reply = Reply("let me see", (ToolCall("a.b:1", "double", {"number": 4}),), native=native)
    turn = Turn(reply, (ToolOutput("a.b:1", "8"),))
    async with claude(message(text("eight"))) as (model, server):
        server.sent += [{"type": "text", "text": "let me see"}, tool_use("a_b_1", "double", number=4)]
        await model.ask(Ask(WorkBrief("x"), transcript=(turn,)))

    assert [block["type"] for block in server.requests[0]["messages"][1]["content"]] == ["text", "tool_use"]


def requested(kind: str, **fields: str) -> Any:
    """The client of a kind, whose request is looked at without a server."""
    spec = ProviderSpec.model_validate({"kind": kind, **fields})
    return choose_model("cloud/claude-sonnet-5-5", {"OWN_KEY": "secret-of-mine"}, providers={"cloud": spec})


@pytest.mark.parametrize(
    ("kind", "fields", "path"),
    [
        ("bedrock", {"region": "eu-west-1"}, "/model/claude-sonnet-5-5/invoke"),
        (
            "vertex",
            {"region": "eu", "project": "p"},
            "/projects/p/locations/eu/publishers/anthropic/models/claude-sonnet-5-5:rawPredict",
        ),
        ("foundry", {}, "/v1/messages"),
    ],
)
async def test_a_cloud_is_asked_under_its_own_path_with_its_own_version(kind: str, fields: dict[str, str], path: str):
    seen: list[tuple[str, Any, Any]] = []

    async def answer(asked: str, headers: Any, body: Any) -> CannedReply:
        seen.append((asked, headers, body))
        return message(text("from the cloud"))

    async with serving(answer, asyncio.Event()) as url:
        model = requested(kind, base_url=url, api_key_env="OWN_KEY", **fields)
        reply = await model.ask(Ask(WorkBrief("x"), style=Style(effort="low")))
        await model.close()

    asked, headers, body = seen[0]
    assert (reply.text, asked, model.provider) == ("from the cloud", path, "cloud")
    assert any("secret-of-mine" in headers.get(name, "") for name in ("authorization", "x-api-key", "api-key"))
    assert body["output_config"] == {"effort": "low"}
    assert ("model" in body, "anthropic_version" in body) == (kind == "foundry", kind != "foundry")


def test_clouds_have_their_own_addresses():
    bedrock = requested("bedrock", region="eu-west-1", api_key_env="OWN_KEY")
    vertex = requested("vertex", region="europe-west1", project="p")
    foundry = requested("foundry", resource="mine", api_key_env="OWN_KEY")

    clients: list[Any] = [vars(model)["_client"] for model in (bedrock, vertex, foundry)]
    hosts = [str(client.base_url.host) for client in clients]
    assert hosts == [
        "bedrock-runtime.eu-west-1.amazonaws.com",
        "europe-west1-aiplatform.googleapis.com",
        "mine.services.ai.azure.com",
    ]


async def test_a_cloud_whose_package_is_missing_says_which():
    model = requested("vertex", region="eu", project="p", base_url="http://127.0.0.1:1")
    with pytest.raises(Misconfigured, match=r"cloud.*cannot be asked"):
        await model.ask(Ask(WorkBrief("x")))


def test_a_key_that_is_missing_is_named():
    with pytest.raises(KeyRefused, match="FOUNDRY_KEY"):
        requested("foundry", resource="mine", api_key_env="FOUNDRY_KEY")


@pytest.mark.parametrize("can", [True, False])
async def test_who_has_no_tools_is_offered_none_not_even_the_one_that_every_role_has(can: bool):
    async with claude(message(text("done")), tools=can) as (model, server):
        await work(model, WorkBrief("do it"), {"cannot_do": CANNOT_DO_TOOL}, Meter(), ignore)

    (request,) = server.requests
    assert ("tools" in request) is can
