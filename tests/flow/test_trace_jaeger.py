"""What Jaeger would have of a real request is compared with its log: everything is found, and what is lost is named."""

import asyncio
from pathlib import Path
from typing import NamedTuple

import pytest

from muster_cli.jaeger.compare import Comparison, compare
from muster_cli.jaeger.fetch import fetch_spans
from muster_testing.messages_server import message, running_messages_server, text, tool_use
from muster_testing.otlp import Collector
from muster_testing.waiting import until_asked
from tests.flow.conflict_tools import Contest
from tests.guards import guards
from tests.jaeger_server import SpanOf, jaeger, trace_of

TEAM = """\
team: default
supervisor: {model: offline}
roles:
  - {name: scripted, run: "muster_testing.roles:scripted"}
  - {name: second, run: "muster_testing.roles:scripted"}
  - {name: writer, description: Counts, model: claude-sonnet-5-5, tools: [calculate]}
limits: {deadline_seconds: 300}
"""
SERVICES = {"s1": "supervisor", "w1": "worker", "c1": "coordinator"}
TASKS = [
    {"id": "flaky", "tag": "second", "orders": {"fail": "not today", "times": 1}},
    {"id": "held", "orders": {"until": "go"}},
    {"id": "sum", "tag": "writer", "description": "add"},
]
NAMED = {  # what is said when one span of a kind is gone
    "invoke_workflow": "request",
    "plan": "plan",
    "publish tasks": "published tasks",
    "invoke_agent writer": "attempt 1 of sum (worker-",
    "chat claude": "model calls",
    "execute_tool": "call of calculate",
    "try again": "revision of attempt 2 of flaky",
    "take over": "takeover",
    "conflict": "conflict of attempt 1 of held",
    "compose": "compose",
    "answer": "answer",
}


class Traced(NamedTuple):
    """One request whose spans were exported."""

    team: Contest
    collector: Collector
    request_id: str
    trace_id: str

    async def compared(self, without: str = "") -> Comparison:
        """With all that was exported, but for the first span of a name."""
        spans = {span.id: span for span in self.collector.spans if span.trace == self.trace_id}
        lost = next((span.id for span in spans.values() if without and span.name.startswith(without)), "")
        kept = [SpanOf.exported(span) for span in spans.values() if span.id != lost]
        if without == "conflict":  # it is exported when it is found, and when it is decided
            kept = [span for span in kept if span.name != without]
        timeline = await self.team.client.timeline(self.request_id)
        with jaeger({self.trace_id: trace_of(*kept)}) as url:
            return compare(timeline, url, await fetch_spans(url, self.trace_id))


@pytest.mark.sweep
@guards(
    "services/supervisor/muster_supervisor/steps/refine.py",
    "with back_off_span(owner, step):",
    replace="if True:",
    rule="I8",
    seconds=90,
)
async def test_every_kind_of_span_is_found_in_what_is_really_exported_and_named_when_it_is_lost(
    tmp_path: Path, collector: Collector
) -> None:
    (tmp_path / "team.yaml").write_text(TEAM)
    replies = (message(tool_use("t1", "calculate", expression="1 + 1"), stop="tool_use"), message(text("2")))
    async with (
        running_messages_server(*replies) as provider,
        Contest.provisioned(tmp_path / "team.yaml", tmp_path, lease_seconds=1.0) as team,
    ):
        env = collector.environment | provider.environment
        await asyncio.gather(*(team.start(kind, name, env=env) for name, kind in SERVICES.items()))
        request_id = await team.submit(TASKS)
        await team.until_log(request_id, lambda state: state.open_tasks == 1)  # the held one
        await team.copy(await team.task_message())
        await team.conflict(request_id)  # the same worker refuses the copy
        assert await team.stop("s1") == 0
        await team.start("supervisor", "s2", env=env)
        await team.until_log(request_id, lambda state: state.owner == "s2")
        team.release("go")
        answer = await team.answer(request_id)
        traced = Traced(team, collector, request_id, answer.trace_id or "")

        await _until_complete(traced)

        for kind, name in NAMED.items():
            found = await traced.compared(without=kind)
            assert any(check.what.startswith(name) for check in found.missing), (kind, found.missing)


async def _until_complete(traced: Traced) -> None:
    async def ask() -> bool:
        return (await traced.compared()).is_complete

    try:
        await until_asked(ask, "the trace is complete", within=20)
    except AssertionError:
        raise AssertionError((await traced.compared()).as_json()) from None
