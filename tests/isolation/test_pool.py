"""The processes that a worker keeps warm: for whom, how many, and what they know."""

import asyncio
import os
import resource

import pytest

from muster_agent.isolation import pool as pools
from muster_agent.isolation.errors import UsedTooMuch
from tests.guards import guards
from tests.isolation.calls import Calls, all_gone

SECRETS = {
    "ANTHROPIC_API_KEY": "sk-ant-very-secret",
    "MUSTER_CALLBACK_SECRET": "a-very-long-secret",
    "MUSTER_NATS_CREDS": "/run/secrets/worker.creds",
    "SHOP_TOKEN": "token-of-the-shop",
    "SHOP_PASSWORD_FILE": "/run/secrets/shop",
}


async def test_calls_of_a_role_share_a_process_and_those_of_another_do_not(calls: Calls):
    assert [await calls.use("count") for _ in range(3)] == [1, 2, 3]
    assert await calls.use("count", role="till") == 1
    assert await calls.use("count") == 4


async def test_async_functions_are_awaited(calls: Calls):
    assert await calls.use("echo_later", text="a") == "a"


async def test_there_are_no_more_processes_than_slots():
    calls = Calls(slots=2)
    try:
        found = await asyncio.gather(*(calls.use("pid", role=f"role-{number % 3}") for number in range(6)))
        assert len(set(found)) >= 3  # a process of one role is no other's
        assert 0 < calls.pool.idle <= 2
    finally:
        await calls.pool.close()


@guards(
    "libs/agent/muster_agent/isolation/environment.py",
    "if name in wanted",
    replace="if name",
    rule="I10",
    seconds=30,
)
async def test_a_process_knows_no_variable_that_is_not_named():
    calls = Calls(variables=SECRETS)
    try:
        usual = await calls.use("variables")
        assert not SECRETS.keys() & usual.keys()
        assert "PATH" in usual

        named = await calls.use("variables", env=("SHOP_TOKEN", "NOT_SET"))
        assert named.keys() & (SECRETS.keys() | {"NOT_SET"}) == {"SHOP_TOKEN"}
    finally:
        await calls.pool.close()


async def test_a_process_is_replaced_after_many_calls(calls: Calls, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(pools, "CALLS_EACH", 2)

    assert [await calls.use("count") for _ in range(5)] == [1, 2, 1, 2, 1]


async def test_a_process_that_nobody_needs_gives_its_memory_back(calls: Calls, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(pools, "IDLE_SECONDS", 0.05)

    await all_gone([await calls.use("pid")])


async def test_where_no_process_can_be_started_the_call_fails_and_a_later_one_is_served():
    """All descriptors of this process are taken for a while, as on a machine that is full."""
    calls = Calls(slots=1)
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    lowest = os.dup(0)
    os.close(lowest)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (lowest + 1, hard))
        with pytest.raises(UsedTooMuch, match=r"there is no room for its process: .*Too many open files"):
            await calls.use("echo", text="a")
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))

        assert await calls.use("echo", text="a") == "a"
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        await calls.pool.close()
