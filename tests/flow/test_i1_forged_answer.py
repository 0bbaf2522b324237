"""I1: an unanswered request is never acknowledged, whatever is said on its live subject, where anybody may speak."""

from muster_protocol import subjects
from muster_protocol.messages import Answer, AnswerStatus
from tests.guards import guards
from tests.harness import Muster


@guards("services/supervisor/muster_supervisor/owner.py", "await self.log.read_again()", rule="I1")
async def test_an_answer_that_was_only_said_and_never_stored_ends_nothing(muster: Muster) -> None:
    await muster.start("supervisor", "s1")
    request = await muster.submit([{"id": "a", "orders": {"until": "go"}}], deadline_seconds=20)
    await muster.until_log(request, lambda state: state.in_flight == 1 and not state.dispatch_unconfirmed)
    newest = (await muster.log(request))[-1]
    forged = Answer(request_id=request, status=AnswerStatus.DONE, text="as I say")
    headers = {
        "sender": "supervisor/s1",
        "kind": "answer",
        "request-id": request,
        "term": str((await muster.state(request)).term),
        "Nats-Msg-Id": "forged",
        "Nats-Subject": subjects.results(request),
        "Nats-Sequence": str(newest.sequence + 1),
        "Nats-Last-Sequence": str(newest.sequence),
        "Nats-Time-Stamp": "2020-01-01T00:00:00.0Z",
    }
    await muster.bus.nc.publish(subjects.live(request), forged.body(), headers=headers)
    await muster.bus.flush()

    await muster.start("worker", "w1")
    muster.release("go")
    answer = await muster.answer(request)
    await muster.until_settled(subjects.requests("default"))

    assert (answer.status, answer.text) == (AnswerStatus.DONE, f"a of {request}")
    assert muster.executions(request) == {"a": 1}
