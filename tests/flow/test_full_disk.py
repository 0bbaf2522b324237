"""A broker with a full disk is named by every service, and everything that was asked is answered after its restart."""

from pathlib import Path

import pytest

from muster_agent.team.file import load_team
from muster_bus.broker.topology import Provisioning, provision
from muster_bus.connection import Bus
from muster_client import Client
from muster_protocol import subjects
from muster_protocol.sender import Sender
from muster_testing import running_broker, until_asked
from muster_testing.services import Services
from tests.flow.three_services import Three
from tests.harness import TEAM
from tests.small_disk import SIZE

TASK = {"id": "a", "tag": "scripted", "description": '{"output": "found"}'}
COUNT = 10
DISK = "the broker answers but stores nothing; its disk is probably full"


@pytest.mark.sweep
async def test_a_full_disk_is_named_by_all_and_everything_is_answered_after_a_restart(tmp_path: Path, small_disk: Path):
    (tmp_path / "team.yaml").write_text(TEAM % ("", 8))
    team = load_team(tmp_path / "team.yaml")
    async with running_broker(small_disk / "broker") as broker:
        bus = await Bus.connect(broker.url, Sender("tests", "observer"))
        await provision(bus, Provisioning(lease_seconds=2, ack_wait_seconds=2), [team.team], team.tags)
        services = Services(tmp_path / "team.yaml", tmp_path, broker.url)
        three = Three(services)
        try:
            await three.start()
            async with await Client.connect(broker.url) as client:
                plan = {"goal": "a test", "tasks": [TASK]}
                asked = [await client.submit(plan=plan, deadline_seconds=600) for _ in range(COUNT)]
                junk = small_disk / "junk"
                with pytest.raises(OSError, match="No space left"):
                    junk.write_bytes(b"x" * SIZE)
                await three.until_unready(DISK, 120)

                junk.unlink()
                await broker.stop()
                await broker.start()
                await three.until_ready()
                asked.append(await client.submit(plan=plan))
                for request_id in asked:
                    assert (await client.answer(request_id, timeout=120)).status.value == "done"

                async def is_empty() -> bool:
                    return not await bus.read(subjects.ALL_REQUESTS, from_leader=True)

                await until_asked(is_empty, "the requests are settled")
        finally:
            services.kill_all()
            await bus.close()
