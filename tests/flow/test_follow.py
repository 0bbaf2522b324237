"""What `muster submit` shows of a request that nobody takes, or whose log cannot be read."""

import asyncio
from pathlib import Path

import pytest

from muster_testing import until
from tests.bus.broker_tools import api
from tests.flow.command_line import Here, plan
from tests.harness import Muster


@pytest.mark.sweep
async def test_a_log_that_cannot_be_read_ends_the_watch_and_not_the_request(muster: Muster, tmp_path: Path) -> None:
    (tmp_path / "here").mkdir()
    here = Here(tmp_path / "here", MUSTER_NATS_URL=muster.broker.url)
    (here.folder / "plan.json").write_text(plan(("a", "scripted")))
    with here.start("submit", "--plan", "plan.json", "--team", "default") as follower:
        await until(lambda: "request " in here.printed("submit"), "it was sent")
        await api(muster.bus, "STREAM.DELETE.RESULTS")
        code = await asyncio.to_thread(follower.wait, 60)

    printed = here.printed("submit")
    request_id = printed.split()[1]
    assert code == 5
    assert f"the request goes on: `muster status {request_id}` shows it" in printed
    assert printed.splitlines()[-1] == "muster: RESULTS could not be read: the broker answers with status 503"
