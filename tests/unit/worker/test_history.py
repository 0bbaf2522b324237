"""Which tasks a worker looks up in the log before it runs them, and which it does not run."""

from typing import Any

import pytest

from muster_bus.broker.nats_fast import FastClient
from muster_bus.connection import Bus
from muster_bus.lease import Delivery, Lease, LeaseKeeper
from muster_protocol.sender import Sender
from muster_worker.history import LOOK_UP_AFTER_SECONDS, History, Verdict, has_other_id, may_be_copy
from tests.flow.in_process import task_of

TASK = task_of("t").model_copy(update={"reserved_at": 100.0})
FIRST: dict[str, Any] = {"delivery": 1, "now": 100.5, "connected_at": 90.0, "ack_wait": 30.0}


def test_a_first_delivery_soon_after_its_reservation_is_not_looked_up():
    assert not may_be_copy(TASK, **FIRST)


@pytest.mark.parametrize(
    "why",
    [
        pytest.param({"delivery": 2}, id="it was delivered before"),
        pytest.param({"connected_at": 100.1}, id="the connection is newer than the reservation"),
        pytest.param({"now": 100.1 + LOOK_UP_AFTER_SECONDS}, id="it arrived late"),
        pytest.param({"now": 101.1, "ack_wait": 1.0}, id="it arrived after its ack wait"),
    ],
)
def test_a_task_that_may_be_a_second_copy_is_looked_up(why: dict[str, Any]):
    assert may_be_copy(TASK, **{**FIRST, **why})


@pytest.mark.parametrize(
    ("seconds_left", "cancelled", "verdict"),
    [
        (60.0, set[str](), Verdict.RUN),
        (60.0, {"r1"}, Verdict.CANCELLED),
        (60.0, {"r2"}, Verdict.RUN),
        (-1.0, {"r1"}, Verdict.CANCELLED),
    ],
)
async def test_a_cancelled_or_new_task_is_judged_without_the_broker(
    seconds_left: float, cancelled: set[str], verdict: Verdict
):
    bus = Bus(FastClient(), Sender("worker", "w1"))  # not connected: a read of the log would fail
    history = History(bus, cancelled.__contains__)
    now = bus.clock.now()
    task = task_of("t", deadline=now + seconds_left).model_copy(update={"reserved_at": now})

    lease = Lease(LeaseKeeper(bus.nc, 30.0), "")
    headers = {"Nats-Msg-Id": str(task.attempt_id)}

    assert await history.judge(task, Delivery("", headers, b"", "", "", 1, 7, now, lease)) is verdict


@pytest.mark.parametrize(("number", "message_id"), [(2, "r1.t.1"), (1, "by hand")])
async def test_a_suspect_task_is_not_run_before_the_log_was_looked_at(number: int, message_id: str):
    bus = Bus(FastClient(), Sender("worker", "w1"))  # not connected, so that nothing can be looked at
    history, now = History(bus, set[str]().__contains__), bus.clock.now()
    task = task_of("t", deadline=now + 60.0).model_copy(update={"reserved_at": now})
    headers, lease = {"Nats-Msg-Id": message_id}, Lease(LeaseKeeper(bus.nc, 30.0), "")

    with pytest.raises(AssertionError):  # in this way nats-py says that it is not connected
        await history.judge(task, Delivery("", headers, b"", "", "", number, 7, now, lease))


@pytest.mark.parametrize("headers", [None, {}, {"Nats-Msg-Id": "by hand"}, {"Nats-Msg-Id": f"{TASK.attempt_id}.2"}])
def test_a_message_with_another_id_than_its_attempts_is_suspect(headers: dict[str, str] | None):
    assert has_other_id(TASK, headers)
    assert not has_other_id(TASK, {"Nats-Msg-Id": str(TASK.attempt_id)})
