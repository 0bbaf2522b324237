"""What a request waited for is seen in its trace under its own name, and has its length."""

import asyncio
import time
from pathlib import Path

import pytest

from muster_protocol.messages.people import APPROVE
from muster_testing import RunningTeam
from muster_testing.messages_server import message, refusal, running_messages_server, text
from muster_testing.otlp import Collector
from muster_testing.waiting import LIMIT_SECONDS
from tests.flow.trees import has, tree_of
from tests.guards import guards
from tests.harness import Muster

TEAM = """\
team: default
supervisor: {model: offline}
roles:
  - {name: writer, description: Writes, model: claude-sonnet-5-5}
"""


async def test_a_rate_limit_of_the_provider_is_an_event_of_the_call_without_a_word_of_the_provider(
    tmp_path: Path, collector: Collector
) -> None:
    (tmp_path / "team.yaml").write_text(TEAM)
    limited = refusal(429, "rate_limit_error", "you asked to write about Ada", retry_after="1")
    async with (
        running_messages_server(limited, message(text("done"))) as provider,
        RunningTeam.provisioned(tmp_path / "team.yaml", tmp_path) as team,
    ):
        await team.start("supervisor", "s1", env=collector.environment)
        await team.start("worker", "w1", env=collector.environment | provider.environment)
        tasks = [{"id": "a", "tag": "writer", "description": "Write about Ada"}]

        answer = await team.ask(plan={"tasks": tasks})
        tree = await tree_of(collector, answer.trace_id or "", has(chat=1))

    (chat,) = tree.named("chat")
    assert tree.path(chat) == "invoke_workflow default > invoke_agent writer > chat claude-sonnet-5-5"
    (wait,) = chat.events
    assert wait.name == "rate limit"
    assert wait.attributes["muster.seconds"] >= 1.0
    assert wait.attributes["muster.reason"] == "waits for anthropic-base-url, which says that it is asked too often"
    assert chat.end - chat.start >= 1.0


async def test_a_wait_for_a_person_is_a_span_from_the_question_to_the_decision(
    muster: Muster, collector: Collector
) -> None:
    await muster.start("supervisor", "s1", env=collector.environment)
    await muster.start("worker", "w1")
    request = await muster.submit([{"id": "a"}], approve=True)
    await muster.until_log(request, lambda state: bool(state.open_questions))
    await muster.client.reply(request, APPROVE)

    answer = await muster.answer(request)
    tree = await tree_of(collector, answer.trace_id or "", has(**{"wait for person": 1}))

    (wait,) = tree.named("wait for person")
    (asked,) = (await muster.state(request)).questions.values()
    assert tree.path(wait) == "invoke_workflow default > wait for person plan"
    assert wait.attributes["muster.choice"] == APPROVE
    assert asked.ended_at is not None
    assert (wait.start, wait.end) == (pytest.approx(asked.asked_at), pytest.approx(asked.ended_at))


@guards(
    "services/supervisor/muster_supervisor/steps/dispatch.py",
    "with publish_span(owner, messages, chosen):\n            return",
    replace="with publish_span(owner, messages, chosen):\n            pass\n        if True:\n            return",
    rule="I8",
    seconds=40,
)
async def test_the_span_of_a_publish_lasts_until_the_broker_has_acknowledged_it(
    muster: Muster, collector: Collector
) -> None:
    await muster.publish("tasks.second", b"{}", None)
    await muster.leave_room_for("TASKS", messages=1)  # so the broker acknowledges no task until there is room
    sent = asyncio.Event()
    await muster.bus.subscribe("tasks.scripted", lambda _: sent.set())  # it passes, and is not stored
    await muster.start("supervisor", "s1", env=collector.environment)
    await muster.start("worker", "w1", "--role", "scripted")
    request = await muster.submit([{"id": "a"}])
    async with asyncio.timeout(LIMIT_SECONDS):
        await sent.wait()

    opened = time.time()
    await muster.leave_room_for("TASKS", messages=1000)
    answer = await muster.answer(request)
    tree = await tree_of(collector, answer.trace_id or "", has(**{"publish tasks": 1}))

    (published,) = tree.named("publish tasks")
    assert published.end >= opened
