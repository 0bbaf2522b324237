"""Tells the owner of a request to try a task again, or to give it to somebody else, and waits for what it says.

As with replies, an order is kept as soon as it is stored on `control`; the owner writes into the log what it became.
"""

from muster_bus.connection import Bus
from muster_bus.log import RequestLog
from muster_client.queue import check_known
from muster_client.saying import TAKEN_IN_SECONDS, raise_refused, say, taken_in
from muster_protocol.errors import Terminal
from muster_protocol.fold import RequestState
from muster_protocol.messages import Decision, ReassignTask, RetryTask


class Answered(Terminal):
    """The request has its answer, and nothing changes it any more."""

    def __init__(self, state: RequestState) -> None:
        status = state.answer.status.value if state.answer else "over"
        super().__init__(
            f"{state.request_id} is answered already ({status}), and an answer does not change; ask again for what is "
            "missing: an attempt more is for a failure while other tasks still run"
        )


async def order(bus: Bus, said: RetryTask | ReassignTask, within: float = TAKEN_IN_SECONDS) -> Decision | None:
    """Say it; the decision that it became. None: nobody has taken it in yet, and it is kept.

    Raises Answered, and Invalid with the reason why it cannot be done.
    """
    known = RequestLog(bus, said.request_id)
    await known.open()
    try:
        await known.refresh(from_leader=True)
        if not known.state.last_sequence:
            await check_known(bus, said.request_id)
        if known.state.answer is not None:
            raise Answered(known.state)
        sequence = await say(bus, said)
        return await taken_in(known, lambda state: _outcome(state, sequence), within)
    finally:
        await known.close()


def _outcome(state: RequestState, sequence: int) -> Decision | None:
    done = next((one for one in state.orders if one.control_sequence == sequence), None)
    if done is None:
        raise_refused(state, sequence)
        if state.answer is not None:
            raise Answered(state)
    return done
