"""Control messages that must stop nothing: on another request's subject, or never stored."""

import json

from muster_protocol.messages import AnswerStatus
from tests.guards import guards
from tests.harness import Muster


@guards("libs/bus/muster_bus/receive.py", "if about != last_token(message.subject):", rule="I10")
async def test_an_abort_on_another_request_s_subject_stops_nothing(muster: Muster) -> None:
    await muster.start("supervisor", "s1")
    await muster.start("worker", "w1")
    request = await muster.submit([{"id": "a", "orders": {"until": "go"}}])
    await muster.until(lambda: muster.executions(request)["a"] == 1, "it runs")

    abort = json.dumps({"request_id": request}).encode()
    await muster.publish("control.another", abort, {"sender": "supervisor/s9", "kind": "abort"})
    await muster.answer(await muster.submit([{"id": "later"}]))  # by now the worker has heard it
    muster.release("go")

    assert (await muster.answer(request)).status is AnswerStatus.DONE
    assert muster.executions(request) == {"a": 1}


async def test_a_cancel_that_was_never_stored_stops_nothing(muster: Muster) -> None:
    await muster.client.cancel("nobody")
    await muster.leave_room_for("CONTROL", messages=1)
    await muster.start("supervisor", "s1")
    await muster.start("worker", "w1")
    request = await muster.submit([{"id": "a", "orders": {"until": "go"}}])
    await muster.until(lambda: muster.executions(request)["a"] == 1, "it runs")

    cancel = json.dumps({"request_id": request}).encode()
    await muster.bus.nc.publish(f"control.{request}", cancel, headers={"sender": "client/c1", "kind": "cancel"})
    await muster.bus.flush()
    await muster.answer(await muster.submit([{"id": "later"}]))  # by now the worker has heard it
    muster.release("go")

    assert (await muster.answer(request)).status is AnswerStatus.DONE
    assert muster.executions(request) == {"a": 1}
