"""What a person reads in a trace: who did what, why it failed, and what was said, if that is wanted."""

import asyncio
import json
import re
import urllib.request
from pathlib import Path

from muster_bus.tracing import names
from muster_bus.tracing.content import MAX_CONTENT
from muster_protocol.messages import AnswerStatus
from muster_testing.otlp import Collector
from tests.flow.command_line import Here
from tests.flow.trees import Tree, has, tree_of
from tests.harness import Muster

TEXT = "Compare AWS and Azure for a small company: research each provider, analyse price and write a report"
SECRET = "small company"


async def failed(muster: Muster, collector: Collector, request: str, **counts: int) -> Tree:
    answer = await muster.answer(request)
    assert answer.status is AnswerStatus.FAILED
    tree = await tree_of(collector, answer.trace_id or "", has(**counts))
    (answered,) = tree.named("answer failed")
    assert answered.is_failed
    assert answered.attributes["muster.status"] == "failed"
    assert answered.attributes["muster.seconds"] == answer.seconds
    return tree


def error_of_request(tree: Tree) -> str:
    (answered,) = tree.named("answer failed")
    return answered.error_type


async def test_a_failed_request_is_red_and_says_the_class_of_what_ended_it(
    muster: Muster, collector: Collector
) -> None:
    await muster.start("supervisor", "s1", env=collector.environment)
    await muster.start("worker", "w1", env=collector.environment)
    nonsense, unroutable = b"{", [{"id": "a", "tag": "nobody", "description": "x"}]

    late = await muster.submit([{"id": "a", "orders": {"until": "never"}}], deadline_seconds=3)
    await muster.until(lambda: muster.executions(late)["a"] == 1, "the task was begun")
    broken = await muster.submit([{"id": "a", "orders": {"fail": "the mill is broken", "final": True}}])
    invalid = muster.id_of(await muster.publish("requests.default", nonsense, None), nonsense)
    refused = await muster.client.submit(plan={"tasks": unroutable})

    tree = await failed(muster, collector, broken, invoke_agent=1)
    assert error_of_request(tree) == "logic"
    (task,) = tree.named("invoke_agent")
    assert (task.is_failed, task.error_type) == (True, "logic")
    assert "mill" not in "".join(span.reason for span in tree.spans.values())  # an error may quote an output
    assert error_of_request(await failed(muster, collector, invalid)) == "invalid"
    tree = await failed(muster, collector, refused, compose=1)
    assert error_of_request(tree) == "invalid"
    assert {span.name for span in tree.spans.values() if span.is_failed} == {"plan default", "lint", "answer failed"}
    tree = await failed(muster, collector, late, invoke_agent=1)
    assert error_of_request(tree) == "deadline"
    (task,) = tree.named("invoke_agent")
    assert (task.error_type, task.events[-1].name) == ("cancelled", "stopped")


async def test_a_partial_and_a_cancelled_request_have_whole_trees_that_say_so(
    muster: Muster, collector: Collector
) -> None:
    await muster.start("supervisor", "s1", env=collector.environment)
    await muster.start("worker", "w1", env=collector.environment)

    cancelled = await muster.submit([{"id": "a", "orders": {"until": "never"}}])
    await muster.until(lambda: muster.executions(cancelled)["a"] == 1, "the task was begun")
    await muster.client.cancel(cancelled)
    partly = await muster.submit([{"id": "a"}, {"id": "b", "orders": {"fail": "no", "final": True}}])

    for request, status, reason, errors in (
        (partly, "partial", None, ["", "logic"]),
        (cancelled, "cancelled", "cancelled", ["cancelled"]),
    ):
        answer = await muster.answer(request)
        tree = await tree_of(collector, answer.trace_id or "", has(invoke_agent=len(errors), compose=1))
        (answered,) = tree.named("answer")
        assert (answered.name, answered.is_failed) == (f"answer {status}", False)
        assert answered.attributes.get("muster.reason") == reason
        assert sorted(span.error_type for span in tree.named("invoke_agent")) == errors
        assert {span.name for span in tree.spans.values()} >= {"plan default", "publish tasks", "compose"}


async def test_muster_up_is_three_services_and_shows_models_tools_and_with_leave_what_they_said(
    collector: Collector, tmp_path: Path
) -> None:
    here = Here(tmp_path, **collector.environment, MUSTER_TRACE_CONTENT="1", SHOP_API_KEY=SECRET)
    (tmp_path / "team.yaml").unlink()  # so that the sample team runs, whose roles have tools

    answer = await asyncio.to_thread(_ask, here, f"{TEXT}. Remember: {'very ' * 1000}")
    tree = await tree_of(collector, answer["trace_id"], has(chat=3, compose=1))

    assert {span.service for span in tree.spans.values()} == {"muster-client", "muster-supervisor", "muster-worker"}
    assert {span.name for span in collector.spans if span.service == "muster-coordinator"} == {"GET /v1/overview"}
    paths = {path.rpartition("invoke_workflow default > ")[2] for path in tree.paths()}
    assert {
        "plan default > chat offline",
        "plan default > lint",
        "grow review > chat offline",
        "invoke_agent researcher > chat offline",
        "invoke_agent researcher > execute_tool search_corpus",
    } <= paths
    said = [span.attributes[name] for span in tree.spans.values() for name in names.CONTENT if name in span.attributes]
    assert not any(SECRET in text for text in said)
    assert any("[redacted" in text for text in said)
    assert any("cut off after" in text for text in said)
    assert all(len(text) < 3 * MAX_CONTENT for text in said)
    plan, _review = [span for span in tree.named("chat") if span.service == "muster-supervisor"]
    assert plan.attributes["gen_ai.response.finish_reasons"] == ["end"]
    for tool in tree.named("execute_tool search_corpus"):
        assert json.loads(tool.attributes["gen_ai.tool.call.arguments"])["query"]
        assert tool.attributes["gen_ai.tool.call.result"]


def _ask(here: Here, text: str) -> dict[str, str]:
    with here.up() as (_, said):
        (address,) = set(re.findall(r"http://127.0.0.1:\d+", said))
        for path in ("healthz", "v1/overview"):
            with urllib.request.urlopen(f"{address}/{path}", timeout=30) as reply:
                assert reply.status == 200
        return here.document("ask", text)
