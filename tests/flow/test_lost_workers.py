"""A worker that is killed is missed: who waits is told, and when its task is tried again. Leases are the file's."""

import asyncio
import json
import os
import re
import signal
from pathlib import Path

import pytest

from muster_bus.broker.queues import ack_wait_of, request_queue, task_queue
from muster_bus.connection import Bus
from muster_protocol.sender import Sender
from tests.flow.command_line import TEAM, Here, plan, wait_for_words
from tests.guards import guards
from tests.harness import Muster

LEASES = "limits: {request_lease_seconds: 7, task_lease_seconds: 17}\n"


def here_with_leases(folder: Path, **env: str) -> Here:
    folder.mkdir()
    here = Here(folder, **env)
    (folder / "team.yaml").write_text(TEAM + LEASES)
    return here


async def leases_at(url: str) -> tuple[float, float]:
    bus = await Bus.connect(url, Sender("tests", "leases"))
    try:
        return await ack_wait_of(bus, request_queue("small")), await ack_wait_of(bus, task_queue(["slow"]))
    finally:
        await bus.close()


@guards(
    "cli/muster_cli/local/provisioning.py",
    "ack_wait_seconds=team.limits.task_lease_seconds,",
    rule="I4",
    replace="",
    seconds=60,
)
async def test_the_leases_of_the_team_file_reach_the_consumers_that_provision_makes(
    muster: Muster, tmp_path: Path
) -> None:
    here = here_with_leases(tmp_path / "here", MUSTER_NATS_URL=muster.broker.url)

    assert (await asyncio.to_thread(here.run, "provision")).returncode == 0
    assert await leases_at(muster.broker.url) == (7, 17)


@guards(
    "cli/muster_cli/view/follow.py",
    "seen = await seen_with(client.bus, board.state, board.seen(client.bus.clock.now()), signs)",
    rule="I4",
    replace="seen = board.seen(client.bus.clock.now())",
    seconds=90,
)
@pytest.mark.sweep
def test_who_waits_for_a_killed_worker_is_told_when_its_task_is_tried_again(tmp_path: Path) -> None:
    here = here_with_leases(tmp_path / "here", MUSTER_GRACE_SECONDS="2")
    with here.up():
        address = json.loads((here.folder / ".muster" / "address.json").read_text())
        assert asyncio.run(leases_at(address["nats_url"])) == (7, 17)
        (worker,) = here.document("status")["workers"]
        (here.folder / "slow.json").write_text(json.dumps({"id": "r1", "plan": json.loads(plan(("one", "slow")))}))
        with here.start("submit", "--request", "slow.json") as follower:
            wait_for_words(here.folder / "submit.txt", f"{worker['name']} as slow")
            os.kill(_pid_of(worker["name"]), signal.SIGKILL)
            wait_for_words(here.folder / "up.txt", "is gone (killed by SIGKILL)")
            task = here.document("status", "r1")["tasks"][0]
            wait_for_words(
                here.folder / "submit.txt", f"running: one: its worker is gone ({worker['name']}); tried again"
            )
            follower.kill()

    assert task["status"] == "running"
    again = re.fullmatch(rf"its worker is gone \({worker['name']}\); tried again in (\d+) s", task["reason"])
    assert again is not None, task
    assert 5 <= int(again[1]) <= 17


def _pid_of(worker: str) -> int:
    """The process of a worker of `muster up`, which is started with its name."""
    name = worker.removeprefix("worker-").encode()
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = path.read_bytes().split(b"\0")
        except OSError:  # it has ended
            continue
        if name in words and b"worker" in words:
            return int(path.parent.name)
    raise AssertionError(f"no process of {worker} is found")
