"""I1: a bug in the attendance of a request costs a lease, not the request."""

from muster_agent.model import FREE, Ask, Reply
from muster_protocol.messages import AnswerStatus, ResultStatus
from tests.flow.inside import put_result, supervising
from tests.harness import Muster


class Buggy:
    """A model that breaks, where nobody expects it, whoever looks at it first."""

    name = "buggy"
    said = ""
    price = FREE

    def __init__(self) -> None:
        self._has_broken = False

    @property
    def is_llm(self) -> bool:
        if not self._has_broken:
            self._has_broken = True
            raise RuntimeError("a bug")
        return False

    async def ask(self, ask: Ask) -> Reply:
        raise AssertionError(ask)


async def test_a_request_whose_attendance_breaks_is_taken_again(muster: Muster) -> None:
    async with supervising(muster, Buggy()):
        request = await muster.submit([{"id": "a"}])
        await muster.until_log(request, lambda state: state.in_flight == 1)
        await put_result(muster, request, "a", ResultStatus.DONE)
        answer = await muster.answer(request, within=6)

    assert answer.status is AnswerStatus.DONE
    assert (await muster.state(request)).delivery == 2
