"""A worker whose process stands still cannot say so: the supervisor and `muster status` name it."""

import asyncio
import re
from pathlib import Path

import pytest

from tests.flow.command_line import Here
from tests.harness import Muster


@pytest.mark.sweep
async def test_a_role_that_holds_the_interpreter_is_named_by_the_others(muster: Muster, tmp_path: Path) -> None:
    (tmp_path / "here").mkdir()
    here = Here(tmp_path / "here", MUSTER_NATS_URL=muster.broker.url)
    team = muster.folder / "team.yaml"
    team.write_text(team.read_text().replace("muster_testing.roles:scripted", "tests.misbehaving_role:hold"))
    await asyncio.gather(muster.start("supervisor", "s1"), muster.start("worker", "w1"))
    request_id = await muster.submit([{"id": "one"}])

    await muster.until_logged("s1", "has given no sign for")
    shown = await asyncio.to_thread(here.document, "status", request_id)

    who = rf"worker-w1  has given no sign for \d+ s, while role 'scripted' \({request_id}\.one\.1\) is awaited"
    assert re.search(who, muster.service_log("s1"))
    assert "has blocked this worker" not in muster.service_log("w1")  # its own watchdog cannot run
    assert "worker-w1 has given no sign for" in shown["reason"]
    assert "worker-w1 has given no sign for" in shown["tasks"][0]["reason"]
