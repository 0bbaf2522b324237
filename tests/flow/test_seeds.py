"""The names of Kaizen's example do what they say, over a team that runs: every task is done once."""

import asyncio
import json
import time
from collections import Counter
from collections.abc import AsyncGenerator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import pytest_asyncio

from muster_client.seeds import (
    CoordinatorAgent,
    SharedMemoryPool,
    SupervisorAgent,
    WorkerAgent,
    supervisor_worker_workflow,
)
from muster_protocol.errors import Invalid
from muster_testing import running_team
from muster_testing.waiting import LIMIT_SECONDS
from tests.flow.code_blocks import BLOCKS, blocks_of

ROLES = """\
import os
import time

def work(task, ctx):
    with open(os.path.join(os.environ["MUSTER_TEST_FOLDER"], "done"), "a") as done:
        done.write(f"{task.request_id} {task.task_id}\\n")
    while task.inputs["request"].startswith("Wait") and not os.path.exists(os.environ["MUSTER_TEST_FOLDER"] + "/go"):
        time.sleep(0.01)
    if task.inputs["request"].startswith("Fail"):
        raise ValueError("the mill is broken")
    return f"did part {task.inputs['part']} of {task.inputs['of']}"

def mend(task, ctx):
    return f"mended part {task.inputs['part']}"
"""
TEAM = {
    "team": "crew",
    "supervisor": {"model": "offline"},
    "retry": {"max_attempts": 1},
    "roles": [
        {"name": "worker", "tags": [f"worker_{n}" for n in range(11)], "run": "roles:work", "slots": 10},
        {"name": "worker_backup", "run": "roles:mend"},
    ],
}


def done(folder: Path) -> Counter[str]:
    """How often each task was done."""
    return Counter((folder / "done").read_text().splitlines())


@pytest_asyncio.fixture(loop_scope="module", scope="module")
async def crew(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[Path]:
    """The folder of a team that runs, with which the environment leads to it."""
    folder = tmp_path_factory.mktemp("crew")
    (folder / "team.yaml").write_text(json.dumps(TEAM))
    (folder / "roles.py").write_text(ROLES)
    with pytest.MonkeyPatch.context() as patch:
        async with running_team(folder / "team.yaml", folder) as team:
            patch.setenv("MUSTER_NATS_URL", team.broker.url)
            patch.setenv("MUSTER_TEAM", "crew")
            yield folder
            await asyncio.to_thread(SharedMemoryPool().close)


pytestmark = pytest.mark.asyncio(loop_scope="module")


async def test_six_tasks_on_three_workers_are_six_executions(crew: Path):
    names = ["worker_1", "worker_2", "worker_3"]

    def delegate_and_do() -> tuple[str, list[list[str]], list[str]]:
        pool = SharedMemoryPool()
        supervisor = SupervisorAgent(None, pool, "supervisor_1")
        workers = [WorkerAgent(None, pool, name) for name in names]
        request_id = supervisor.delegate("Count the sheep", available_workers=names, num_tasks=6)[0]["request_id"]
        assigned = [worker.get_assigned_tasks() for worker in workers]
        ended = [worker.execute_task(task) for worker, own in zip(workers, assigned, strict=True) for task in own]
        assert supervisor.check_all_tasks_completed(request_id)
        assert [worker.get_assigned_tasks() for worker in workers] == [[], [], []]
        return request_id, [[task["task_id"] for task in own] for own in assigned], [one["status"] for one in ended]

    request_id, assigned, statuses = await asyncio.to_thread(delegate_and_do)

    assert assigned == [["task_1", "task_4"], ["task_2", "task_5"], ["task_3", "task_6"]]
    assert statuses == ["completed"] * 6
    assert {line: count for line, count in done(crew).items() if line.startswith(request_id)} == {
        f"{request_id} task_{n}": 1 for n in range(1, 7)
    }


async def test_the_blocks_of_kaizens_example_run_and_each_of_their_tasks_once(crew: Path):
    batches = [SimpleNamespace(id=number, items=[*range(number)]) for number in (2, 3)]
    space: dict[str, Any] = {"batches": batches}

    def run_all() -> None:
        for block in blocks_of(BLOCKS / "kaizen.md"):
            if "task_groups" in block:
                given = space["supervisor"].delegate("Sort the letters", ["worker_0", "worker_1"], 4)
                space["task_groups"] = [given[0::2], given[1::2]]
            exec(compile(block, "kaizen.md", "exec"), space)

    await asyncio.to_thread(run_all)

    assert [failure["tags"][:2] for failure in space["failures"]] == [["error", "failed"]] * 2
    mended = await asyncio.to_thread(space["supervisor"].aggregate_results, space["request_id"])
    assert [result["result"] for result in mended["task_results"]] == ["mended part 1", "mended part 2"]
    assert await asyncio.to_thread(space["supervisor"].check_failures, space["request_id"]) == []
    assert await asyncio.to_thread(space["supervisor"].check_all_tasks_completed, space["request_id"])
    assert space["final_result"].count("did part") == 3
    assert space["result"]["stats"]["segment_distribution"] == {"tasks": 3, "results": 3, "errors": 0}
    assert space["progress"]["pending_tasks"] == 0
    assert space["progress"]["completed_tasks"] >= 100 + 10 + 5 + 50 + 2 + 3
    assert space["conflicts"] == {"conflicts_found": 0, "resolutions": []}
    assert set(done(crew).values()) == {1}


async def test_a_task_that_runs_is_given_to_somebody_else_where_it_is(crew: Path):
    def reassign_one() -> tuple[str, dict[str, Any]]:
        pool = SharedMemoryPool()
        supervisor, coordinator = SupervisorAgent(None, pool, "supervisor_1"), CoordinatorAgent(None, pool, "c")
        first, _ = supervisor.delegate("Wait for the sheep", ["worker_1"], 2)
        moved = supervisor.reassign_task(first, "worker_backup")
        limit = time.monotonic() + LIMIT_SECONDS
        while coordinator.monitor_progress()["completed_tasks"] == 0:  # else the first to have it may be done first
            assert time.monotonic() < limit
        (crew / "go").touch()
        return moved["assigned_to"], dict(supervisor.aggregate_results(first["request_id"]))

    assigned_to, found = await asyncio.to_thread(reassign_one)

    assert assigned_to == "worker_backup"
    assert [result["result"] for result in found["task_results"]] == ["mended part 1", "did part 2 of 2"]
    assert found["summary"] == "2 of 2 tasks done"


@pytest.mark.usefixtures("crew")
async def test_a_failed_task_says_why():
    found = await asyncio.to_thread(supervisor_worker_workflow, "Fail at all of it", 2, 2)

    assert [(one["status"], one["result"]) for one in found["results"]] == [
        ("failed", "ValueError: the mill is broken")
    ] * 2
    assert found["stats"]["segment_distribution"] == {"tasks": 2, "results": 0, "errors": 2}


@pytest.mark.usefixtures("crew")
async def test_a_worker_that_nobody_is_is_refused_with_those_that_there_are():
    supervisor = await asyncio.to_thread(lambda: SupervisorAgent(None, SharedMemoryPool(), "s"))

    with pytest.raises(Invalid, match=r"no live worker has the tag 'worker_x'; did you mean 'worker_"):
        await asyncio.to_thread(supervisor.delegate, "Count the sheep", ["worker_x"])


@pytest.mark.usefixtures("crew")
async def test_without_names_the_teams_supervisor_plans_and_chooses():
    supervisor = await asyncio.to_thread(lambda: SupervisorAgent(None, SharedMemoryPool(), "s"))

    tasks = await asyncio.to_thread(supervisor.delegate, "Count the sheep and the goats", None, 2)

    assert len(tasks) == 2
    assert {task["assigned_to"] for task in tasks} <= {"worker", "worker_backup"}
