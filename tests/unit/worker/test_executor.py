"""One attempt of one role has an outcome, whatever the role does."""

import asyncio
import time
from pathlib import Path
from typing import Any

import pytest

from muster_agent.functions import Context
from muster_agent.team.file import load_team
from muster_protocol.errors import Invalid
from muster_protocol.messages import ResultStatus
from muster_worker.executor import Executor
from muster_worker.outcome import Outcome
from muster_worker.runners.model import output_of
from tests.guards import guards
from tests.unit.agent.teams import FUNCTIONS, task, team

HANDLERS = """
import asyncio, datetime, sys
from muster_protocol.errors import Retryable, Terminal

async def noop(task, ctx): return None
def asks(task, ctx):
    ctx.progress("half way")
    return {"outputs": dict(ctx.outputs), "description": task.description}
async def final(task, ctx): raise Terminal("there is no such thing")
async def later(task, ctx): raise Retryable("come back")
async def bug(task, ctx): return {}["key"]
async def net(task, ctx): raise ConnectionRefusedError("nobody there")
async def own_timeout(task, ctx): raise TimeoutError("the database")
async def leaves(task, ctx): sys.exit(3)
async def hangs(task, ctx): await asyncio.Event().wait()
async def date(task, ctx): return datetime.date(2026, 1, 1)
async def nan(task, ctx): return [float("nan")]
async def surrogate(task, ctx): return "\\ud800"
async def loop(task, ctx):
    a = []
    a.append(a)
    return a
"""
NAMES = ("noop", "asks", "final", "later", "bug", "net", "own_timeout", "leaves", "hangs")
UNFIT = ("date", "nan", "surrogate", "loop")


@pytest.fixture
def executor(tmp_path: Path) -> Executor:
    module = f"handlers_{tmp_path.name.replace('-', '_')}"
    (tmp_path / f"{module}.py").write_text(HANDLERS)
    return Executor(team(*({"name": n, "run": f"{module}:{n}"} for n in (*NAMES, *UNFIT)), folder=tmp_path), {})


async def run(executor: Executor, tag: str, **fields: Any) -> Outcome:
    return await executor.run(task(tag, **fields), Context({}))


async def test_a_function_gets_its_task_and_context_and_can_publish_progress(executor: Executor):
    published: list[str] = []
    outcome = await executor.run(task("asks", "count"), Context({"a": 1}, progress=published.append))
    await asyncio.sleep(0)

    assert outcome.status is ResultStatus.DONE
    assert outcome.role == "asks"
    assert outcome.output == {"outputs": {"a": 1}, "description": "count"}
    assert published == ["half way"]


@guards(
    "services/worker/muster_worker/executor.py",
    "timer = asyncio.timeout(task.timeout_seconds)",
    rule="I4",
    replace="timer = asyncio.timeout(None)",
    case="hangs-timeout-False-no result within 0.01 s",
)
@pytest.mark.parametrize(
    ("name", "error_class", "is_final", "text"),
    [
        ("final", "logic", True, "there is no such thing"),
        ("later", "logic", False, "come back"),
        ("bug", "logic", False, "KeyError: 'key'"),
        ("net", "network", False, "nobody there"),
        ("own_timeout", "timeout", False, "the database"),
        ("leaves", "logic", False, "SystemExit: 3"),
        ("hangs", "timeout", False, "no result within 0.01 s"),
        ("date", "bad_output", False, "not JSON"),
        ("nan", "bad_output", False, "not JSON"),
        ("surrogate", "bad_output", False, "not JSON"),
        ("loop", "bad_output", False, "not JSON"),
        ("nobody", "logic", False, "no role with the tag 'nobody'"),
    ],
)
async def test_whatever_a_function_does_is_its_own_failure(
    executor: Executor, name: str, error_class: str, is_final: bool, text: str
):
    outcome = await run(executor, name, timeout_seconds=0.01 if name == "hangs" else 5)

    assert outcome.status is ResultStatus.FAILED
    assert outcome.error
    assert (outcome.error.error_class, outcome.error.is_final) == (error_class, is_final)
    assert text in outcome.error.message
    assert outcome.output is None


async def test_a_bug_comes_with_its_stack(executor: Executor):
    outcome = await run(executor, "bug")

    assert outcome.error
    assert 'return {}["key"]' in (outcome.error.stack or "")


async def test_a_cancellation_of_the_attempt_is_raised(executor: Executor):
    running = asyncio.create_task(run(executor, "hangs"))
    await asyncio.sleep(0)
    running.cancel()

    with pytest.raises(asyncio.CancelledError):
        await running


async def test_an_empty_task_takes_less_than_100_microseconds(executor: Executor):
    nothing = task("noop")
    ctx = Context({})
    best = float("inf")
    for _ in range(5):
        started = time.process_time()
        for _ in range(1000):
            await executor.run(nothing, ctx)
        best = min(best, (time.process_time() - started) / 1000)

    assert best < 100e-6  # the aim is half of it; the machines are noisy


async def test_the_example_functions_run():
    example = Executor(load_team(FUNCTIONS), {}, ["word_count", "longest"])

    counted = await run(example, "word_count", inputs={"text": "to be or not to be"})
    texts = [{"item": {"text": text}, "status": "done", "output": None} for text in ("one three", "five")]
    longest = await example.run(task("longest"), Context({"items": texts}))
    nothing = await run(example, "word_count", description="prose is not read")

    assert counted.output == {"words": 6, "different": 4}
    assert longest.output == "three"
    assert nothing.error is not None
    assert (nothing.error.error_class, nothing.error.message) == ("input", "inputs.text: there are no words")


async def test_a_model_role_that_must_fill_a_schema_gives_an_object():
    solo = Executor(team({"name": "solo", "model": "offline"}), {})
    wanted = {"type": "object", "properties": {"summary": {"type": "string"}}, "required": ["summary"]}
    number = {"type": "object", "properties": {"size": {"type": "number"}}, "required": ["size"]}

    outcome = await run(solo, "solo", expected_output=wanted, context={"a": "tall"})
    refused = await run(solo, "solo", expected_output=number)

    assert "tall" in outcome.output["summary"]
    assert refused.error
    assert refused.error.is_final
    assert output_of('```json\n{"size": 3}\n```', number) == {"size": 3}


@pytest.mark.parametrize("role", ["fixed", "solo"])
async def test_an_output_that_does_not_fit_its_schema_fails_with_the_place_of_each_mistake(role: str, tmp_path: Path):
    module = f"fixed_{tmp_path.name.replace('-', '_')}"
    (tmp_path / f"{module}.py").write_text('def fixed(task, ctx): return {"summary": "tall", "more": [{"size": "3"}]}')
    roles = team({"name": "fixed", "run": f"{module}:fixed"}, {"name": "solo", "model": "offline"}, folder=tmp_path)
    sizes = {"type": "array", "items": {"properties": {"size": {"type": "number"}}}}
    wanted: dict[str, Any] = {"summary": {"type": "string", "enum": ["high"]}}
    schema = {"type": "object", "properties": wanted, "required": ["summary"]}
    if role == "fixed":
        wanted["more"] = sizes  # the offline model cannot fill that

    outcome = await run(Executor(roles, {}), role, expected_output=schema)

    assert outcome.error
    assert (outcome.status, outcome.error.error_class) == (ResultStatus.FAILED, "bad_output")
    assert "the output does not fit its schema: " in outcome.error.message
    assert "is not one of ['high']" in outcome.error.message
    assert role == "solo" or "more.0.size: '3' is not of type 'number'" in outcome.error.message


async def test_a_model_by_task_replaces_that_of_the_role_and_a_missing_key_is_final():
    solo = Executor(team({"name": "solo", "model": "offline"}), {})

    outcome = await run(solo, "solo", model="claude-opus-5-5")

    assert outcome.error
    assert outcome.error.is_final
    assert "ANTHROPIC_API_KEY" in outcome.error.message


def test_an_executor_lists_its_tags_and_refuses_roles_that_are_not_in_the_team():
    found = team({"name": "a", "tags": ["x"]}, {"name": "b", "tags": ["x"]})

    assert Executor(found, {}, ["b"]).tags == ("b", "x")
    assert "not an LLM" in Executor(found, {}).notice[0]
    with pytest.raises(Invalid, match="no role 'c'"):
        Executor(found, {}, ["c"])
