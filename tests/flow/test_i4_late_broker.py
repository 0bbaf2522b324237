"""A broker that has no JetStream yet is waited for: services stay alive and unready, and an init step goes on."""

import asyncio
import sys
from pathlib import Path

from muster_bus.broker.embedded import Server
from muster_client import Client
from muster_protocol.status_words import RequestStatus
from muster_testing.services import Services, environment
from tests.flow.three_services import SERVICES, Three
from tests.guards import guards
from tests.harness import TEAM

PLAN = {"goal": "a test", "tasks": [{"id": "a", "tag": "scripted", "description": "{}"}]}
WITHOUT = "the broker did not look up"


@guards("libs/bus/muster_bus/process/health.py", "return bus.lacking or", rule="I4", replace="return", seconds=90)
async def test_services_and_provisioning_wait_for_a_broker_that_starts_without_jetstream(tmp_path: Path):
    (tmp_path / "team.yaml").write_text(TEAM % ("", 8))
    early = Server(tmp_path / "broker", extra="jetstream: disabled\n")
    await early.start()
    services = Services(tmp_path / "team.yaml", tmp_path, early.url)
    words = ("provision", "--wait", "forever", "--team", str(services.team_file))
    provisioning = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "muster_cli", *words, env=environment(tmp_path, early.url)
    )
    three = Three(services)
    late = Server(tmp_path / "broker", early.port)
    try:
        three.spawn()
        await three.until_unready(WITHOUT)
        assert provisioning.returncode is None

        await early.stop()
        await late.start()
        async with asyncio.timeout(60):
            assert await provisioning.wait() == 0
        await three.until_ready()

        async with await Client.connect(early.url) as client:
            answer = await client.answer(await client.submit(plan=PLAN), timeout=60)
        assert answer.status == RequestStatus.DONE
        for service in SERVICES:
            assert services.service_log(service).count(f"not ready: {WITHOUT}") == 1, "now and then, not each time"
    finally:
        services.kill_all()
        if provisioning.returncode is None:
            provisioning.kill()
        await early.stop()
        await late.stop()
