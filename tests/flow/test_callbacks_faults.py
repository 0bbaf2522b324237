"""Answered without its callback stored is never acknowledged; stored without being delivered is never forgotten."""

import signal
from pathlib import Path

import pytest

from muster_protocol import subjects
from muster_protocol.messages import Answer
from tests.flow.calling import ENV, called_back, calling, calling_back, until_called
from tests.guards import guards
from tests.receiver import receiving

STEPS = [
    "before:answer",
    "after:answer",
    "before:callback",
    "after:callback",
    "before:called_back",
    "after:called_back",
]
CASES = [(fault, step, peer) for fault in ("kill", "stop", "term") for step in STEPS for peer in (True, False)]
QUICK = [("kill", "before:callback", False), ("kill", "before:called_back", True)]


@guards(
    "services/supervisor/muster_supervisor/taking/answered.py",
    "await callbacks.store(delivery, state)  # before the ack",
    rule="I1",
    case="kill-before:callback-False",
    seconds=30,
)
@pytest.mark.parametrize(
    ("fault", "step", "has_peer"),
    [pytest.param(*case, marks=() if case in QUICK else pytest.mark.sweep) for case in CASES],
)
async def test_no_fault_of_a_supervisor_loses_a_callback(tmp_path: Path, fault: str, step: str, has_peer: bool) -> None:
    async with calling(tmp_path) as muster, receiving() as receiver:
        await muster.start("supervisor", "s1", die_at=step if fault == "kill" else f"{fault}@{step}", env=ENV)
        request = await muster.submit([{"id": "a"}], callback_url=receiver.url())
        if fault != "stop":
            assert await muster.ended("s1") == (137 if fault == "kill" else 0)
        if has_peer:
            await muster.start("supervisor", "s2", env=ENV)
        if fault == "stop":
            await muster.past_lease()
            muster.signal("s1", signal.SIGCONT)
        elif not has_peer:
            await muster.start("supervisor", "s1", env=ENV)
        await receiver.until(1)
        await until_called(muster)

        assert {got.headers["Muster-Request-Id"] for got in receiver.got} == {request}
        assert len(await muster.entries(request, Answer)) == 1
        may_be_twice = "called_back" in step or fault == "stop"
        assert len(receiver.got) <= (2 if may_be_twice else 1)
        assert (await called_back(muster, request))[-1].outcome == "delivered"


@pytest.mark.parametrize("is_killed", [pytest.param(True, marks=pytest.mark.sweep), False])
async def test_callbacks_outlive_a_restart_of_the_broker(tmp_path: Path, *, is_killed: bool) -> None:
    async with calling(tmp_path) as muster:
        async with receiving() as away:
            url, port = away.url(), away.port
        await muster.start("supervisor", "s1", env=ENV)
        request = await muster.submit([{"id": "a"}], callback_url=url)
        await muster.until_logged("s1", "waits, tried again in")
        if is_killed:
            muster.broker.kill()
        else:
            await muster.broker.stop()
        await muster.broker.start()
        async with receiving(port=port) as receiver:
            await receiver.until(1)
            await until_called(muster)

        assert (await called_back(muster, request))[-1].outcome == "delivered"


async def test_two_supervisors_deliver_each_callback_once(tmp_path: Path) -> None:
    async with calling_back(tmp_path) as (muster, receiver):
        await muster.start("supervisor", "s2", env=ENV)
        asked = [await muster.submit([{"id": "a"}], callback_url=receiver.url()) for _ in range(20)]
        await receiver.until(20)
        await until_called(muster)

        assert sorted(got.headers["Muster-Request-Id"] for got in receiver.got) == sorted(asked)


async def test_a_full_stream_of_callbacks_keeps_the_request_until_there_is_room(tmp_path: Path) -> None:
    async with calling(tmp_path) as muster, receiving(503) as away, receiving() as receiver:
        await muster.start("supervisor", "s1", env=ENV)
        await muster.submit([{"id": "a"}], callback_url=away.url())
        await away.until(1)
        await muster.leave_room_for("CALLBACKS", messages=1)
        request = await muster.submit([{"id": "a"}], callback_url=receiver.url())
        await muster.answer(request)
        assert await muster.bus.read(subjects.requests("default"), from_leader=True)
        await muster.leave_room_for("CALLBACKS", messages=-1)

        await receiver.until(1)
        await muster.until_settled(subjects.requests("default"))
