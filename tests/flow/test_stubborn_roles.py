"""Roles that block a thread or refuse to be cancelled keep neither a slot of others nor a worker that stops."""

import signal

import pytest

from tests.flow.misbehaving_team import orders, start_misbehaving
from tests.harness import Muster


async def test_a_role_that_blocks_a_thread_does_not_keep_a_worker_from_leaving(muster: Muster) -> None:
    await start_misbehaving(muster, grace_seconds=5)
    request = await muster.submit([{"id": "a", "tag": "second", "description": orders(seconds=60)}])
    await muster.until(lambda: muster.executions(request)["a"] == 1, "the task runs")

    muster.signal("w1", signal.SIGTERM)

    assert await muster.ended("w1") == 0


@pytest.mark.sweep
async def test_a_role_that_refuses_to_be_cancelled_does_not_keep_a_worker_from_leaving(muster: Muster) -> None:
    await start_misbehaving(muster, grace_seconds=5)
    request = await muster.submit([{"id": "a", "description": orders(action="stay")}])
    await muster.until(lambda: muster.executions(request)["a"] == 1, "the task runs")

    muster.signal("w1", signal.SIGTERM)

    assert await muster.ended("w1") == 0


async def test_every_slot_can_hold_a_role_that_blocks(muster: Muster) -> None:
    await start_misbehaving(muster, "--slots", "40", "--role", "second")
    tasks = [{"id": f"a{n}", "tag": "second", "description": orders(seconds=90)} for n in range(32)]

    request = await muster.submit(tasks)

    await muster.until(lambda: len(muster.executions(request)) == 32, "all run at once")
