"""`muster trace`: the waterfall, the document and the comparison with Jaeger, of requests that real processes ran."""

import asyncio
import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from muster_bus.broker.embedded import free_port
from muster_bus.tracing.context import trace_id_of
from muster_protocol import subjects
from muster_testing.fixtures import StartTeam
from muster_testing.waiting import until_asked
from tests.flow.command_line import Here
from tests.harness import ROOT, Muster
from tests.jaeger_server import SpanOf, jaeger, trace_of


class Tracing:
    """`muster trace` in a folder of its own."""

    def __init__(self, folder: Path, url: str) -> None:
        folder.mkdir()
        self.here = Here(folder, MUSTER_NATS_URL=url)

    async def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        return await asyncio.to_thread(self.here.run, "trace", *words)

    async def drawn(self, *words: str) -> str:
        ran = await self.run(*words)
        assert ran.returncode == 0, ran.stderr
        return ran.stdout

    async def document(self, request_id: str) -> dict[str, Any]:
        return await asyncio.to_thread(self.here.document, "trace", request_id)


@pytest.fixture
def tracing(muster: Muster, tmp_path: Path) -> Tracing:
    return Tracing(tmp_path / "here", muster.broker.url)


def ran(document: dict[str, Any], task: str) -> list[tuple[int, str, str]]:
    """Attempt, worker and status of each run of a task."""
    steps = [step for step in document["steps"] if step["what"] == "attempt" and step["task"] == task]
    return [(step["attempt"], step["worker"], step["status"]) for step in steps]


async def until_started(muster: Muster, request_id: str, worker: str) -> None:
    """Wait until the broker has stored that a worker began."""

    async def is_stored() -> bool:
        stored = await muster.bus.read(subjects.events(request_id), from_leader=True)
        return any(raw.headers.get("worker") == worker for raw in stored)

    await until_asked(is_stored, f"{worker} said that it started")


async def test_a_request_with_a_retry_and_a_killed_worker_is_told_while_it_runs_and_afterwards(
    muster: Muster, tracing: Tracing
) -> None:
    await muster.start("supervisor", "s1")
    await muster.start("worker", "w1")
    request = await muster.submit(
        [
            {"id": "flaky", "orders": {"fail": "no route", "times": 1}},
            {"id": "held", "orders": {"until": "go"}},
            {"id": "last", "dependencies": ["flaky", "held"]},
        ]
    )
    await until_started(muster, request, "w1")
    await muster.until_log(request, lambda state: len(state.tasks["flaky"].attempts) == 2 and state.in_flight == 1)
    running = await tracing.drawn(request)

    muster.kill("w1")
    await muster.start("worker", "w2")
    await until_started(muster, request, "w2")
    muster.release("go")
    await muster.answer(request)
    document, drawn = await tracing.document(request), await tracing.drawn(request)

    assert f"◐ {request}  running: 1 of 3 tasks done, held running" in running
    assert "▶" in running
    assert ran(document, "flaky") == [(1, "w1", "failed"), (2, "w1", "done")]
    assert ran(document, "held") == [(1, "w1", "lost"), (1, "w2", "done")]
    assert (document["totals"]["retries"], document["totals"]["lost"]) == (1, 1)
    assert document["critical_path"] == ["plan", "held", "last", "answer"]
    kinds = [step["what"] for step in document["steps"]]
    assert {"request", "plan", "dispatch", "revision", "retry_wait", "answer"} <= set(kinds)
    assert "↳ logic: no route" in drawn
    assert "↳ lost: its worker said nothing more; the task was delivered again" in drawn
    assert "3 of 3 tasks done · 4 attempts · 1 retry · 1 lost worker" in drawn


async def test_the_tool_calls_of_a_model_are_told_with_their_arguments_and_outputs(
    start_team: StartTeam, tmp_path: Path
) -> None:
    team = await start_team(ROOT / "examples" / "cloud" / "team.yaml")
    answer = await team.ask("Compare AWS and Azure")
    tracing = Tracing(tmp_path / "here", team.url)

    document = await tracing.document(answer.request_id)

    calls = [step for step in document["steps"] if step["what"] == "tool"]
    runs = {(step["task"], step["attempt"]): step for step in document["steps"] if step["what"] == "attempt"}
    assert {"search_corpus", "query_database", "calculate"} <= {call["details"]["tool"] for call in calls}
    for call in calls:
        run = runs[call["task"], call["attempt"]]
        assert run["begin"] <= call["begin"] <= call["end"] <= run["end"]
        assert call["details"]["cut"] or isinstance(json.loads(call["details"]["arguments"]), dict)
        assert call["details"]["output"]
    assert [step["details"]["status"] for step in document["steps"] if step["what"] == "answer"] == ["done"]
    assert "└ ✓ search_corpus" in await tracing.drawn(answer.request_id)


async def test_the_comparison_with_jaeger_says_what_is_missing_and_ends_with_its_code(
    muster: Muster, tracing: Tracing
) -> None:
    await muster.start("supervisor", "s1")
    await muster.start("worker", "w1")
    request = await muster.submit([{"id": "a"}])
    await muster.answer(request)
    trace_id = trace_id_of(request)
    about = {"muster.task.id": "a", "muster.task.attempt": 1, "muster.delivery": 1}
    spans = [
        SpanOf("invoke_workflow default", "01"),
        SpanOf("plan default", "02", "01"),
        SpanOf("publish tasks", "03", "01", attributes={"messaging.batch.message_count": 1}),
        SpanOf("compose", "04", "01"),
        SpanOf("answer done", "05", "01"),
    ]
    attempt = SpanOf("invoke_agent scripted", "06", "01", "muster-worker", about)

    with jaeger({trace_id: trace_of(*spans, attempt)}) as url:
        whole = await tracing.run(request, "--jaeger", url)
    with jaeger({trace_id: trace_of(*spans)}) as url:
        partly = await tracing.run(request, "--jaeger", url, "--json")
    away = await tracing.run(request, "--jaeger", f"http://127.0.0.1:{free_port()}")

    assert (whole.returncode, "✓ the trace is complete" in whole.stdout) == (0, True), whole.stdout
    assert partly.returncode == 1
    assert json.loads(partly.stdout)["jaeger"]["missing"] == ["attempt 1 of a (worker-w1 as scripted)"]
    assert (away.returncode, "no Jaeger answers at" in away.stderr) == (5, True)


async def test_what_cannot_be_traced_is_refused_as_status_refuses_it(muster: Muster, tracing: Tracing) -> None:
    unknown = await tracing.run("nobody")
    status = await asyncio.to_thread(tracing.here.run, "status", "nobody")
    request = await muster.submit([{"id": "a"}])  # nobody is there to take it
    nowhere = await tracing.run(request, "--jaeger")

    assert (unknown.returncode, unknown.stderr) == (status.returncode, status.stderr)
    assert (nowhere.returncode, "MUSTER_JAEGER_URL" in nowhere.stderr) == (2, True)
    assert f"◐ {request}  queued: no supervisor has taken it" in await tracing.drawn(request)
