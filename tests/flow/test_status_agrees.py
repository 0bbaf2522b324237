"""Status and reason of a request are the same, word for word, in the API and on the command line.

They are compared at moments at which the request stands still: nobody has taken it, or a task or the model waits for
the test. The supervisor of the first test runs in this process, because the test decides when its model answers.
"""

import asyncio
import json
import re
import subprocess
import sys
import urllib.request
from collections.abc import AsyncGenerator, Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import pytest_asyncio

from muster_agent.models.port import FREE, Ask, ComposeBrief, PlanBrief, RefineBrief, Reply
from muster_cli.local.folder import Address, Lock, write_address
from muster_protocol.plan import Plan, TaskSpec
from muster_supervisor.steps import refine
from muster_testing import until_asked
from tests.flow.command_line import Here
from tests.flow.in_process import supervising
from tests.harness import Muster, running
from tests.thinking_role import THINKER

LIFE = "life"  # the id of the request that is watched from the queue to its answer
PLAN = Plan(
    goal="life",
    tasks=(
        TaskSpec(id="flaky", description='{"until": "fail", "fail": "the disk is full"}', tag="thinker"),
        TaskSpec(id="held", description='{"until": "go"}', tag="thinker"),
        TaskSpec(id="last", description="{}", tag="second", dependencies=("held",)),
    ),
)

RUN_EACH = """\
import contextlib, io, json, sys
from muster_cli.main import run
printed = []
for words in json.loads(sys.argv[1]):
    with contextlib.redirect_stdout(io.StringIO()) as text:
        code = run(words)
    assert code == 0, f"{words} ends with {code}"
    printed.append(text.getvalue())
print(json.dumps(printed))
"""


class Gated:
    """A model that answers each kind of question once the test has opened the gate for it."""

    name = "gated"
    notice = ""
    is_llm = True
    provider = ""
    price = FREE

    def __init__(self) -> None:
        self.gates: dict[type, asyncio.Event] = {
            kind: asyncio.Event() for kind in (PlanBrief, RefineBrief, ComposeBrief)
        }

    async def ask(self, ask: Ask) -> Reply:
        await self.gates[type(ask.brief)].wait()
        return Reply(PLAN.model_dump_json() if isinstance(ask.brief, PlanBrief) else "")


class Shown(NamedTuple):
    """How a request stands, as every place says."""

    status: str
    reason: str
    tasks: dict[str, tuple[str, str]]  # status and reason of each


class Places:
    """Everywhere that the status of a request is shown."""

    def __init__(self, api: str, here: Here) -> None:
        self._api = api
        self._here = here

    async def get(self, path: str) -> Any:
        return json.loads(await asyncio.to_thread(_read, f"{self._api}{path}"))

    async def until(self, request_id: str, is_so: Callable[[dict[str, str]], bool]) -> None:
        """Wait until the API shows these statuses of tasks."""

        async def ask() -> bool:
            tasks = (await self.get(f"/v1/requests/{request_id}"))["tasks"]
            return is_so({task["id"]: task["status"] for task in tasks})

        await until_asked(ask, f"the tasks of {request_id} get there")

    async def until_listed(self, request_id: str) -> None:
        async def ask() -> bool:
            return request_id in {row["id"] for row in (await self.get("/v1/requests"))["requests"]}

        await until_asked(ask, f"{request_id} is listed")

    async def shown(self, request_id: str) -> Shown:
        """What all places say about a request; fails where one says something else."""
        commands = ((), (request_id,), ("--json",), (request_id, "--json"))
        listed, one, (lines, text, overview, document) = await asyncio.gather(
            self.get("/v1/requests"),
            self.get(f"/v1/requests/{request_id}"),
            asyncio.to_thread(self._print, commands),
        )
        shown = _of(one)
        assert _of(json.loads(document)) == shown
        (row,) = [row for row in listed["requests"] if row["id"] == request_id]
        assert (row["status"], row["reason"]) == shown[:2]
        (row,) = _rows(json.loads(overview), request_id)
        assert (row["status"], row["reason"]) == shown[:2]
        sentence = f"{shown.status}: {shown.reason}"
        assert _listed(lines, request_id).endswith(sentence)
        assert text.splitlines()[-1] == sentence
        for task_id, (status, reason) in shown.tasks.items():
            (line,) = [line for line in text.splitlines() if re.match(rf"{task_id} +\S {status} ", line)]
            assert status == "done" or reason in line  # of a finished task the seconds are a column of their own
        return shown

    def _print(self, commands: tuple[tuple[str, ...], ...]) -> list[str]:
        """What `muster status` prints with each of these words; one process, because most of its time is its start."""
        words = json.dumps([["status", *words] for words in commands])
        printed: list[str] = json.loads(_python(self._here, "-c", RUN_EACH, words))
        return ["\n".join(line.rstrip() for line in text.splitlines()) for text in printed]


def _of(document: dict[str, Any]) -> Shown:
    tasks = {task["id"]: (task["status"], task["reason"]) for task in document["tasks"]}
    return Shown(document["status"], document["reason"], tasks)


def _listed(lines: str, request_id: str) -> str:
    """The words of a request in the list: its line, and the indented lines below it."""
    (found,) = re.findall(rf"^{request_id} .*(?:\n +.*)*", lines, re.MULTILINE)
    return " ".join(found.split())


def _rows(overview: dict[str, Any], request_id: str) -> list[dict[str, Any]]:
    return [
        row for row in overview["requests"] + overview["ended"] if request_id in (row.get("request_id"), row.get("id"))
    ]


def _python(here: Here, *words: str) -> str:
    ran = subprocess.run(
        [sys.executable, *words], cwd=here.folder, env=here.env, capture_output=True, text=True, timeout=60, check=False
    )
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


def _read(url: str) -> bytes:
    with urllib.request.urlopen(url, timeout=60) as reply:
        return reply.read()


@pytest_asyncio.fixture
async def muster(tmp_path: Path) -> AsyncGenerator[Muster]:
    async with running(tmp_path, roles=THINKER % "obey") as muster:
        yield muster


@pytest_asyncio.fixture
async def places(muster: Muster, tmp_path: Path) -> AsyncGenerator[Places]:
    """A running coordinator, and a folder whose commands find it and the broker."""
    await muster.start("coordinator", "c1")
    api = muster.http_url("c1")
    folder = tmp_path / "here"
    folder.mkdir()
    with ExitStack() as held:
        held.enter_context(Lock(folder / ".muster", "the test"))
        write_address(folder / ".muster", Address(muster.broker.url, api, "default", 0))
        yield Places(api, Here(folder))


@pytest.mark.sweep
async def test_all_places_agree_on_a_request_from_the_queue_to_its_answer(
    muster: Muster, places: Places, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(refine, "REFINE_SECONDS", 300.0)  # how long the test may hold the model while it refines
    model = Gated()
    await muster.client.submit("life", id=LIFE)
    await places.until_listed(LIFE)
    assert await places.shown(LIFE) == ("queued", "no supervisor has taken it", {})

    async with supervising(muster, model):
        await muster.until_log(LIFE, lambda state: state.owner is not None)
        assert await places.shown(LIFE) == ("planning", "supervisor-here has taken it and makes a plan", {})
    handed_back = "its supervisor stopped and handed it back; no other has taken it"
    assert await places.shown(LIFE) == ("queued", handed_back, {})

    async with supervising(muster, model):
        model.gates[PlanBrief].set()
        await _agree_while_nobody_serves_a_tag(muster, places)
        await _agree_while_a_task_is_retried(muster, places, model)
        await _agree_at_the_end(muster, places, model)


async def _agree_while_nobody_serves_a_tag(muster: Muster, places: Places) -> None:
    await muster.until_log(LIFE, lambda state: state.in_flight == 2)
    unserved = "no live worker serves the tag 'thinker'"
    assert await places.shown(LIFE) == (
        "running",
        "flaky waits for tag 'thinker', which no live worker serves",
        {"flaky": ("queued", unserved), "held": ("queued", unserved), "last": ("waiting", "for held")},
    )


async def _agree_while_a_task_is_retried(muster: Muster, places: Places, model: Gated) -> None:
    await muster.start("worker", "w1", "--role", "thinker", "--slots", "1")
    await places.until(LIFE, lambda tasks: tasks["flaky"] == "running")
    shown = await places.shown(LIFE)
    assert shown[:2] == ("running", "0 of 3 tasks done, flaky running, held queued")

    muster.release("fail")
    await places.until(LIFE, lambda tasks: tasks["flaky"] == "retrying" and tasks["held"] == "running")
    shown = await places.shown(LIFE)
    status, reason = shown.tasks["flaky"]
    assert (status, reason[:12], reason[-16:]) == ("retrying", "in 0.0 s aft", "the disk is full")

    model.gates[RefineBrief].set()
    await places.until(LIFE, lambda tasks: tasks["flaky"] == "queued")
    shown = await places.shown(LIFE)
    assert shown.tasks["flaky"] == ("queued", "dispatched, no worker has said that it started, attempt 2")


async def _agree_at_the_end(muster: Muster, places: Places, model: Gated) -> None:
    muster.release("go")
    await muster.start("worker", "w2", "--role", "second")
    await muster.until_log(LIFE, lambda state: state.open_tasks == 0)
    shown = await places.shown(LIFE)
    assert shown[:2] == ("answering", "supervisor-here composes the answer")

    model.gates[ComposeBrief].set()
    answer = await muster.answer(LIFE)
    shown = await places.shown(LIFE)
    assert shown[:2] == ("done", f"answered in {answer.seconds:.1f} s")
    assert {status for status, _ in shown.tasks.values()} == {"done"}


async def test_all_places_agree_on_requests_that_did_not_end_well(muster: Muster, places: Places) -> None:
    await muster.start("supervisor", "s1")
    await muster.start("worker", "w1")
    partial = await muster.submit(
        [
            {"id": "good"},
            {"id": "bad", "orders": {"fail": "no such file", "final": True}},
            {"id": "after", "dependencies": ["bad"]},
        ],
        id="partial",
    )
    cancelled = await muster.submit([{"id": "held", "orders": {"until": "never"}}], id="cancelled")
    twice = {"id": "a", "description": "x", "tag": "scripted"}
    failed = await muster.client.submit(plan={"tasks": [twice, twice]}, id="failed")
    await places.until(cancelled, lambda tasks: tasks.get("held") == "running")
    await muster.client.cancel(cancelled, "changed my mind")
    for request in (partial, cancelled, failed):
        await muster.answer(request)

    shown = await places.shown(partial)
    assert shown[:2] == ("partial", "bad failed: no such file")
    assert shown.tasks["after"] == ("skipped", "bad failed: no such file")
    shown = await places.shown(cancelled)
    assert (shown.status, shown.tasks["held"][0]) == ("cancelled", "cancelled")
    assert shown.reason.endswith(": changed my mind")
    shown = await places.shown(failed)
    assert shown.status == "failed"
    assert "tasks.a: 2 tasks have this id" in shown.reason
