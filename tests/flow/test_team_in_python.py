"""A team that is written in Python: it runs in its own process, is served for a broker, and leaves nothing behind."""

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from muster import Client, Context, Invalid, Plan, Role, Task, Team, role, tool
from muster_protocol.messages import AnswerStatus
from muster_testing import running_broker
from muster_testing.waiting import until_asked
from tests.flow.command_line import LIMIT_SECONDS, is_alive, read_until
from tests.guards import guards

PROGRAM = """\
import asyncio, tempfile
from muster import Plan, Team, role

@role
async def slow(task, ctx):
    print("begun", flush=True)
    await asyncio.Event().wait()

plan = Plan()
plan.task("Wait", tag="slow")
team = Team("patient", [slow], supervisor={"model": "offline"})
asyncio.run(team.run(plan))
"""
SERVED = """\
import asyncio
from muster import Role, Team, role

@role(tags=["greeting"])
def greet(task, ctx):
    return f"Hello, {task.inputs['name']}!"

asyncio.run(Team("greeters", [greet], supervisor={"model": "offline"}).serve())
"""


def shop(seen: list[str]) -> Team:
    """Its functions are closures: nobody could import them."""

    @tool
    def stock_of(article: str) -> str:
        """How many pieces of an article are in the shop."""
        seen.append(article)
        return "120 apples"

    @role(tags=["worth"])
    async def till(task: Task, ctx: Context) -> dict[str, Any]:
        """Computes what the stock is worth."""
        return {"of": list(ctx.outputs), "usd": task.inputs.get("price", 1) * 120}

    clerk = Role("clerk", tags=["stock"], description="Looks into the shop.", model="offline", tools=[stock_of])
    return Team("shop", [clerk, till], supervisor={"model": "offline"})


async def test_a_plan_runs_with_closures_and_its_answer_comes_back():
    seen: list[str] = []
    plan = Plan("What are the apples worth?")
    look = plan.task("How many apples are there?", tag="stock")
    plan.task("What are they worth?", tag="worth", after=[look], inputs={"price": 0.5})

    answer = await shop(seen).run(plan)

    assert (answer.status, answer.output) == (AnswerStatus.DONE, {"of": [look], "usd": 60.0})
    assert seen == ["How many apples are there?"]


async def test_a_text_is_planned_and_several_requests_may_share_one_start():
    seen: list[str] = []
    async with shop(seen).up() as client:
        ids = [await client.submit(f"How many apples are in shop {n}?") for n in range(2)]
        answers = [await client.answer(request_id) for request_id in ids]

    assert [answer.status for answer in answers] == [AnswerStatus.DONE] * 2
    assert all('"usd": 120' in answer.text for answer in answers)
    assert len(seen) == 2


async def test_one_role_is_tried_without_a_broker():
    trial = await shop([]).try_role("till", "Add up", inputs={"price": 2}, outputs={"look": "120 apples"})

    assert trial.output == {"of": ["look"], "usd": 240}
    with pytest.raises(Invalid, match="no role 'tille' in team 'shop'; did you mean 'till'"):
        await shop([]).try_role("tille")


async def test_a_team_file_runs_as_it_stands(tmp_path: Path):
    (tmp_path / "team.yaml").write_text("team: t\nroles: [{name: adder, tools: [calculate], model: offline}]\n")

    answer = await Team.from_file(tmp_path / "team.yaml").offline().run("What is 2 + 3?")

    assert answer.status is AnswerStatus.DONE
    assert [task.role for task in answer.tasks] == ["adder"]


@guards(
    "libs/muster/muster/running.py",
    "stack.push_async_callback(server.stop)",
    rule="I12",
    replace="stack.callback(bool)",
)
async def test_nothing_is_left_when_a_run_is_cancelled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    begun, ended = asyncio.Event(), asyncio.Event()

    @role
    async def slow(task: Task, ctx: Context) -> str:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()
        return f"{task} {ctx}"

    plan = Plan()
    plan.task("Wait", tag="slow")
    running = asyncio.create_task(Team("patient", [slow], supervisor={"model": "offline"}).run(plan))
    async with asyncio.timeout(LIMIT_SECONDS):
        await begun.wait()
        (broker,) = brokers_in(tmp_path)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running

    assert ended.is_set()
    assert not is_alive(broker)
    assert files_in(tmp_path) == []


def files_in(folder: Path) -> list[Path]:
    return list(folder.iterdir())


def brokers_in(folder: Path) -> list[int]:
    """The processes of nats-server whose files are in this folder."""
    found = subprocess.run(["ps", "-ww", "-eo", "pid=,args="], capture_output=True, text=True, check=True).stdout
    lines = [line.split(None, 1) for line in found.splitlines()]
    return [int(pid) for pid, command in lines if "nats-server" in command and str(folder) in command]


@contextmanager
def program(source: str, folder: Path, **env: str) -> Generator[subprocess.Popen[str]]:
    ours = ("MUSTER_", "ANTHROPIC_", "OTEL_")
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
    (folder / "program.py").write_text(source)
    (folder / "temporary").mkdir(exist_ok=True)
    with subprocess.Popen(
        [sys.executable, "program.py"],
        cwd=folder,
        env={**inherited, "TMPDIR": str(folder / "temporary"), **env},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=interruptible,
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def interruptible() -> None:
    """A shell that starts a process in the background has it ignore Ctrl-C."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


def test_ctrl_c_ends_everything_and_removes_its_files(tmp_path: Path):
    with program(PROGRAM, tmp_path) as process:
        read_until(process, "begun")
        (broker,) = brokers_in(tmp_path)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=LIMIT_SECONDS)

    assert "KeyboardInterrupt" in errors
    assert "never awaited" not in errors
    assert "Task was destroyed" not in errors
    assert not is_alive(broker)
    assert files_in(tmp_path / "temporary") == []


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere the broker of a killed program lives on")
async def test_a_program_that_is_killed_takes_its_broker_with_it(tmp_path: Path):
    with program(PROGRAM, tmp_path) as process:
        read_until(process, "begun")
        (broker,) = brokers_in(tmp_path)
        process.kill()
        process.wait(LIMIT_SECONDS)

    async def is_gone() -> bool:
        return not is_alive(broker)

    await until_asked(is_gone, "the broker has ended")


async def test_a_team_is_served_for_a_broker_and_ends_cleanly(tmp_path: Path):
    async with running_broker(tmp_path / "broker") as broker:
        with program(SERVED, tmp_path, MUSTER_NATS_URL=broker.url, MUSTER_GRACE_SECONDS="5") as process:
            await asyncio.to_thread(read_until, process, "team greeters is ready")
            async with await Client.connect(broker.url, team="greeters") as client:
                plan = Plan()
                plan.task("Greet Ada", tag="greeting", inputs={"name": "Ada"})
                answer = await client.answer(await client.submit(plan=plan.spec), timeout=LIMIT_SECONDS)
            process.send_signal(signal.SIGTERM)
            code = await asyncio.to_thread(process.wait, LIMIT_SECONDS)

    assert answer.text == "Hello, Ada!"
    assert code == 0, process.stderr and process.stderr.read()
