"""Model calls and tool calls as spans: one for each, whatever the model, exported for real."""

from dataclasses import replace

import pytest

from muster_agent.budget import Meter
from muster_agent.errors import ModelAway
from muster_agent.loop import work
from muster_agent.models.claude import Claude
from muster_agent.models.port import Ask, Model, Price, Reply, ToolCall, WorkBrief
from muster_agent.models.retry import ask_with_retry
from muster_agent.models.scripted import Scripted
from muster_agent.tools.tool import tool_of
from muster_bus.process.settings import TraceSettings
from muster_bus.tracing.tracing import Tracing
from muster_testing.messages_server import message, refusal, running_messages_server, text, tool_use
from muster_testing.otlp import Collector, ExportedSpan
from tests.flow.trees import check_conventions


@pytest.fixture
def settings(collector: Collector, monkeypatch: pytest.MonkeyPatch) -> TraceSettings:
    for name, value in collector.environment.items():
        monkeypatch.setenv(name, value)
    return TraceSettings(collector.environment)


async def worked(model: Model, settings: TraceSettings, collector: Collector) -> list[ExportedSpan]:
    """The spans of a role that has two tools, one of which breaks; without the span that they hang under."""

    def double(number: int) -> int:
        return 2 * number

    def breaks() -> None:
        raise ConnectionError("gone")

    tracing, tools = Tracing.start("test", "t1", settings), {"double": tool_of(double), "breaks": tool_of(breaks)}
    try:
        with tracing.under(tracing.request("r1", None)), tracing.span("lint", {"muster.plan.findings": 0}):
            await work(model, WorkBrief("do it"), tools, Meter(), ignore)
    finally:
        await tracing.stop()
    for span in collector.spans:
        check_conventions(span)
    return sorted((span for span in collector.spans if span.name != "lint"), key=lambda span: span.start)


def ignore(*_: object) -> None:
    """Publish nothing."""


async def test_a_call_of_claude_is_one_span_with_its_cost_and_the_wait_for_a_limit(
    settings: TraceSettings, collector: Collector
) -> None:
    limited = refusal(429, "rate_limit_error", "slow down", retry_after_ms="20")
    script = (limited, message(tool_use("t1", "double", number=2), stop="tool_use"), message(text("4")))
    async with running_messages_server(*script) as server:
        model = Claude("claude-sonnet-5-5", "sk-test", base_url=server.url, price=Price(input=1, output=10))
        first, tool, last = await worked(model, settings, collector)
        await model.close()

    assert [first.name, tool.name, last.name] == ["chat claude-sonnet-5-5", "execute_tool double", first.name]
    assert first.attributes["gen_ai.provider.name"] == "anthropic"
    assert (first.attributes["gen_ai.usage.input_tokens"], first.attributes["gen_ai.usage.output_tokens"]) == (100, 20)
    assert first.attributes["muster.cost.usd"] == pytest.approx(0.0003)
    assert [first.attributes["gen_ai.response.finish_reasons"], last.attributes["gen_ai.response.finish_reasons"]] == [
        ["tools"],
        ["end"],
    ]
    (retry,) = first.events
    assert (retry.name, retry.attributes) == ("rate limit", {"muster.seconds": 0.02})  # no word of the provider's
    assert tool.attributes["gen_ai.tool.call.id"] == "t1"
    assert not {key for span in (first, tool, last) for key in span.attributes if key.endswith(("messages", "result"))}


@pytest.mark.parametrize(("status", "event"), [(429, "rate limit"), (529, "retry")])
async def test_what_a_busy_provider_wrote_is_shown_only_with_leave(
    settings: TraceSettings, collector: Collector, status: int, event: str
) -> None:
    for is_wanted in (False, True):
        busy = refusal(status, "error", "not now, my friend", retry_after_ms="1")
        async with running_messages_server(busy, message(text("4"))) as server:
            model = Claude("claude-sonnet-5-5", "sk-test", base_url=server.url)
            await worked(model, replace(settings, has_content=is_wanted), collector)
            await model.close()

    events = [event for span in collector.spans for event in span.events]
    assert [found.name for found in events] == [event, event]
    assert ["my friend" in str(found.attributes) for found in events] == [False, True]


async def test_a_failed_tool_and_a_failed_call_have_the_class_of_their_error(
    settings: TraceSettings, collector: Collector
) -> None:
    both = (ToolCall("c1", "breaks", {}), ToolCall("c2", "unknown", {}))
    model = Scripted([Reply(tool_calls=both, stop="tools"), ModelAway("busy", 300)])

    with pytest.raises(ModelAway):
        await worked(model, settings, collector)

    assert {span.name: span.error_type for span in collector.spans if span.is_failed} == {
        "execute_tool breaks": "network",
        "execute_tool unknown": "logic",
        "chat scripted": "network",
        "lint": "network",
    }


async def test_without_a_span_above_them_model_calls_open_none() -> None:
    assert (await ask_with_retry(Scripted([Reply("here")]), Ask(WorkBrief("x")))).text == "here"
