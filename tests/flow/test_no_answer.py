"""With nobody there to answer, whoever asked is told so after the deadline, and the request goes on."""

import asyncio
import json
import time
from pathlib import Path

import pytest

from muster_client import NoAnswer
from muster_protocol.errors import Invalid
from tests.flow.command_line import Here
from tests.guards import guards
from tests.harness import Muster

DEADLINE = "0.5"


@guards("libs/client/muster_client/overdue.py", "if await expected.is_overdue():", rule="I4", seconds=100)
async def test_without_a_supervisor_asking_ends_after_the_deadline_and_says_what_is_missing(
    muster: Muster, tmp_path: Path
) -> None:
    (tmp_path / "here").mkdir()
    here = Here(tmp_path / "here", MUSTER_NATS_URL=muster.broker.url)
    await muster.client.submit("who is there?", id="left", deadline_seconds=0.5)
    began = time.monotonic()

    asked, waited, read, answered = await asyncio.gather(
        asyncio.to_thread(here.run, "ask", "hello", "--deadline", DEADLINE),
        asyncio.to_thread(here.run, "wait", "left"),
        asyncio.to_thread(here.run, "wait", "left", "--json"),
        asyncio.gather(muster.client.answer("left"), return_exceptions=True),
    )

    assert time.monotonic() - began < 30
    for ran in (asked, waited):
        assert (ran.returncode, ran.stdout) == (6, ""), ran.stderr
        assert "no answer in time: no supervisor of team 'default' has taken it" in ran.stderr
        assert "`muster wait " in ran.stderr
    assert read.returncode == 6
    assert json.loads(read.stdout) == {
        "request_id": "left",
        "no_answer": "no supervisor of team 'default' has taken it",
    }
    assert isinstance(answered[0], NoAnswer)
    assert answered[0].missing == "no supervisor of team 'default' has taken it"


async def test_a_request_that_got_no_answer_in_time_is_followed_to_its_late_one(muster: Muster, tmp_path: Path) -> None:
    (tmp_path / "here").mkdir()
    here = Here(tmp_path / "here", MUSTER_NATS_URL=muster.broker.url)
    request_id = await muster.submit([{"id": "one"}])
    waiting = asyncio.create_task(asyncio.to_thread(here.run, "wait", request_id, "--json"))

    await asyncio.gather(muster.start("supervisor", "s1"), muster.start("worker", "w1"))
    waited = await waiting

    assert waited.returncode == 0, waited.stderr
    assert '"status": "done"' in waited.stdout


async def test_a_request_that_is_unknown_is_not_waited_for(muster: Muster) -> None:
    with pytest.raises(Invalid, match="no request 'never' is known here"):
        await muster.client.answer("never")
