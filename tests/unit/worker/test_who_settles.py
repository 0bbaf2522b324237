"""Whose word ends a task: the owner's answer, an abort of those who may order, a request that was cancelled."""

import pytest

from muster_bus.broker.nats_fast import FastClient
from muster_bus.connection import Bus, Incoming
from muster_bus.lease import Delivery, Lease, LeaseKeeper
from muster_protocol.fold import Entry
from muster_protocol.fold.counting import settled_by
from muster_protocol.headers import headers_of
from muster_protocol.messages import Abort, Answer, AnswerStatus
from muster_protocol.sender import Origin, Sender
from muster_worker.control import Control
from muster_worker.history import History, Verdict
from tests.flow.in_process import task_of
from tests.guards import guards

COUNTING = "libs/protocol/muster_protocol/fold/counting.py"
HISTORY = "services/worker/muster_worker/history.py"
ANSWER = Answer(request_id="r1", status=AnswerStatus.DONE, text="")


@guards(COUNTING, "case Answer() if by_owner:", rule="I3", replace="case Answer():")
@pytest.mark.parametrize(("sender", "is_settled"), [("supervisor/s1", True), ("worker/w2/role", False)])
def test_only_the_answer_of_a_supervisor_settles_a_task(sender: str, is_settled: bool):
    found = settled_by([Entry(5, 1.0, sender, 0, ANSWER)], task_of("t").attempt_id)

    assert (found is not None) is is_settled


@guards(
    "services/worker/muster_worker/control.py",
    "return control if sender.startswith(MAY_ORDER) else None",
    rule="I6",
    replace="return control",
)
@pytest.mark.parametrize(
    ("sender", "is_obeyed"),
    [
        (Sender("supervisor", "s1"), True),
        (Sender("coordinator", "c1"), True),
        (Sender("worker", "w2"), False),
        (Sender("client", "cli"), False),
    ],
)
def test_only_supervisors_and_coordinators_may_say_abort(sender: Sender, is_obeyed: bool):
    control, abort = Control({}), Abort(request_id="r1")

    control.on_message(Incoming("control.r1", "", abort.body(), headers_of(abort, Origin("r1", sender))))

    assert control.is_cancelled("r1") is is_obeyed


@guards(HISTORY, "if self._is_cancelled(task.request_id):", rule="I3")
async def test_a_task_of_a_cancelled_request_that_arrives_later_is_settled_without_being_run():
    bus = Bus(FastClient(), Sender("worker", "w1"))  # not connected: it is known without the broker
    now, task = bus.clock.now(), task_of("t")
    headers = {"Nats-Msg-Id": str(task.attempt_id)}
    delivery = Delivery("", headers, b"", "", "", 1, 7, now, Lease(LeaseKeeper(bus.nc, 30.0), ""))

    assert await History(bus, {"r1"}.__contains__).judge(task, delivery) is Verdict.CANCELLED
    assert await History(bus, {"r2"}.__contains__).judge(task, delivery) is Verdict.RUN
